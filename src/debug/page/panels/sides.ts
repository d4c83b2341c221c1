/** Loads the two sides of a changed file, and describes differences that a text comparison does not show. */
import * as TextDiff from "effect/TextDiff"
import type { DiffEntry, FileContent } from "../../model.ts"
import * as Api from "../api.ts"

export interface Sides {
  readonly before: FileContent | undefined
  readonly after: FileContent | undefined
}

const undefinedIfMissing = async (asked: Promise<FileContent>): Promise<FileContent | undefined> => {
  try {
    return await asked
  } catch (error) {
    if (error instanceof Api.ApiError && error.status === 404) return undefined
    throw error
  }
}

export const sidesOf = async (
  { change, from_path, path }: DiffEntry,
  from: string | undefined,
  to: string | undefined,
  signal: AbortSignal
): Promise<Sides> => {
  const [before, after] = await Promise.all([
    change === "added" ? undefined : undefinedIfMissing(Api.file(from_path ?? path, from, signal)),
    change === "deleted" ? undefined : undefinedIfMissing(Api.file(path, to, signal))
  ])
  return { before, after }
}

/** The largest sum of both texts to compare, in characters. Larger ones take too long. */
const maxComparedCharacters = 3_000_000

/** The step budget of one comparison, whose cost is lines times differences. */
const maxSteps = 20_000_000

/** A range that differs, in characters of both texts. The ends are exclusive. */
export interface Difference {
  readonly fromA: number
  readonly toA: number
  readonly fromB: number
  readonly toB: number
}

/** Returns the ranges of lines that differ. Beyond the budget, more lines count as changed than were. */
export const differences = (before: string, after: string): ReadonlyArray<Difference> => {
  const lines = before.split("\n").length + after.split("\n").length
  const edits = TextDiff.lines(before, after, { maxEdits: Math.ceil(maxSteps / lines) })
  const found: Array<Difference> = []
  let [fromA, toA, fromB, toB] = [0, 0, 0, 0]
  for (const { _tag, items } of [...edits, { _tag: "Equal", items: [] } as const]) {
    const length = items.reduce((sum, line) => sum + line.length, 0)
    if (_tag !== "Insert") toA += length
    if (_tag !== "Delete") toB += length
    if (_tag !== "Equal") continue
    const [endA, endB] = [toA - length, toB - length]
    if (endA > fromA || endB > fromB) found.push({ fromA, toA: endA, fromB, toB: endB })
    ;[fromA, fromB] = [toA, toB]
  }
  return found
}

/** The explanation for binary content: empty, because the content itself is shown. */
export const noExplanation = ""

export const whyNotComparable = ({ after, before }: Sides): string | undefined => {
  const all = [before, after].filter((side) => side !== undefined)
  if (all.some(({ content }) => content === null)) return "It is too large to be compared here."
  if (all.some(({ encoding }) => encoding === "base64")) return noExplanation
  if (all.some(({ truncated }) => truncated)) return "It is too large to be compared here: only its beginning can be read."
  if (all.reduce((sum, { content }) => sum + content!.length, 0) > maxComparedCharacters)
    return "It is too large to be compared here."
  return undefined
}

const endingsOf = (text: string): string => {
  const [pairs, feeds, returns] = [/\r\n/.test(text), /(?:^|[^\r])\n/.test(text), /\r(?!\n)/.test(text)]
  const kinds = [pairs && "CRLF", feeds && "LF", returns && "CR"].filter(Boolean)
  return kinds.length === 0 ? "none" : kinds.join(" and ")
}

export const describeOtherDifferences = ({ after, before }: Sides): ReadonlyArray<string> => {
  if (before === undefined || after === undefined) return []
  const remarks: Array<string> = []
  if (before.kind !== after.kind) remarks.push(`It was ${before.kind}, and is ${after.kind}.`)
  if (before.mode !== undefined && after.mode !== undefined && before.mode !== after.mode) {
    remarks.push(`Mode ${before.mode} → ${after.mode}.`)
  }
  const [a, b] = [before.content ?? "", after.content ?? ""]
  if (before.encoding !== "utf-8" || after.encoding !== "utf-8" || a === b) return remarks
  const [was, is] = [endingsOf(a), endingsOf(b)]
  if (was !== is && was !== "none" && is !== "none") remarks.push(`Line endings: ${was} → ${is}.`)
  const [ended, ends] = [/[\r\n]$/.test(a), /[\r\n]$/.test(b)]
  if (a !== "" && b !== "" && ended !== ends)
    remarks.push(ends ? "A newline at the end was added." : "The newline at the end is gone.")
  return remarks
}
