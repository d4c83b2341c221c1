import { explain } from "../../engine/nearest.ts"
import { atOnce, type Steps } from "../../runtime/steps.ts"
import { type Refused, refused } from "../definition.ts"
import { linesOf, type Lines } from "./lines.ts"
import { type FilePatch, type Hunk, newLines, oldLines, quoted } from "./model.ts"
import { finder } from "./place.ts"

export interface Where {
  readonly path: string
  readonly patch: FilePatch
  readonly index: number
  readonly lines: Lines
  readonly from: number
  readonly shift: number
}

const hunkOf = ({ index, patch }: Where): Hunk => patch.hunks[index]!

const subject = (where: Where): string => {
  const { index, patch, path } = where
  return `Hunk ${index + 1} of ${patch.hunks.length} for ${path} (line ${hunkOf(where).at} of the patch)`
}

const readAgain = ({ path }: Where, line: number): string =>
  `Nothing was changed. Read ${path} from line ${line} on (offset ${line - 1}), and write the hunk again from these lines.`

const failed = (where: Where, why: string, advice: string): Refused =>
  refused(`${subject(where)} does not apply: ${why}.`, advice)

export const tooMuch = (where: Where): Refused =>
  failed(
    where,
    "too many places resemble its lines, so the search for the right one was stopped",
    "Nothing was changed. Send fewer hunks at a time, with lines of context that are rare in the file, or overwrite the file."
  )

export const ambiguous = (where: Where, places: ReadonlyArray<number>, anchor?: string): Refused => {
  const what = anchor === undefined ? "its lines occur" : `the line ${quoted(`@@ ${anchor}`)} occurs`
  const at = places.map((line) => line + 1).join(" and at line ")
  const remedy = "Give more lines of context"
  return failed(
    where,
    `${what} both at line ${at}, and the hunk does not say which one it means`,
    `Nothing was changed. ${remedy}${where.patch.form === "v4a" ? ", or add an @@ line that quotes a unique line above the right place" : ", or the right line number in @@"}.`
  )
}

const stated = (where: Where): string | undefined => {
  const { above } = hunkOf(where)
  if (above === undefined) return undefined
  const at = above + where.shift
  const old = oldLines(hunkOf(where))
  for (const [index, { text }] of old.entries()) {
    const line = at + index
    if (line >= where.lines.count)
      return `the file ends at line ${where.lines.count}, but the hunk expects ${quoted(text)} on line ${line + 1}`
    const stands = line < 0 ? "" : where.lines.body(line)
    if (stands !== text.replace(/\r$/, ""))
      return `line ${line + 1} of the file is ${quoted(stands)}, but the hunk expects ${quoted(text)}`
  }
  return undefined
}

/** Searches the whole file for the lines of a hunk, without regard to its stated place. */
const anywhere = function* (where: Where, lines: Hunk["lines"]): Steps<number | undefined> {
  if (lines.length === 0) return undefined
  const found = yield* finder(where.lines, where.patch.form).find({ at: 0, lines, anchors: [], atEnd: false }, 0, 0)
  return found._tag === "At" ? found.line + 1 : found._tag === "Several" ? found.places[0]! + 1 : undefined
}

const asOld = (lines: Hunk["lines"]): Hunk["lines"] => lines.map(({ text }) => ({ sign: "-", text }))

export const misplaced = function* (where: Where, anchor?: string): Steps<Refused> {
  const hunk = hunkOf(where)
  const { count, text } = where.lines
  const old = oldLines(hunk)
  if (anchor !== undefined) {
    const below = where.from === 0 ? "" : ` below line ${where.from}, where the hunk before it ends`
    return failed(where, `no line${below} is ${quoted(anchor)}, which its @@ names`, readAgain(where, where.from + 1))
  }
  if (old.length === 0) {
    const place = hunk.above === undefined ? "in the file" : `below line ${hunk.above + where.shift}`
    const above = where.from > 0 ? `the hunk before it ends at line ${where.from} and ` : ""
    const end = hunk.lines.some(({ open }) => open) ? " and says that these are the end of the file" : ""
    const what = `it adds lines ${place}${end}, and ${above}the file has ${count} lines`
    return failed(where, what, readAgain(where, Math.max(1, count)))
  }
  const earlier = yield* anywhere(where, asOld(old))
  if (earlier !== undefined) {
    const why = hunk.lines.some(({ open }) => open)
      ? `its lines occur at line ${earlier}, but the hunk says that they are the end of the file, which has ${count} lines`
      : hunk.anchors.length > 0
        ? `its lines occur at line ${earlier}, but not below ${quoted(`@@ ${hunk.anchors.at(-1)!}`)}${where.from > 0 ? ` and the hunk before it, which ends at line ${where.from}` : ""}`
        : `its lines occur at line ${earlier}, but the hunk before it ends at line ${where.from}; hunks go down the file and do not overlap`
    return failed(where, why, readAgain(where, earlier))
  }
  const done = newLines(hunk).length > 0 ? yield* anywhere(where, asOld(newLines(hunk))) : undefined
  if (done !== undefined) {
    return failed(where, `its result is already in the file, at line ${done}`, readAgain(where, done))
  }
  const there = stated(where)
  const sought = old.map((line) => line.text).join("\n")
  const why = `${there === undefined ? "" : `${there}; `}its text was looked for, and ${yield* explain(text, sought)}`
  return failed(where, why, readAgain(where, nearby(where, why)))
}

const nearby = (where: Where, why: string): number => {
  const { above } = hunkOf(where)
  const named = /\blines? (\d+)/.exec(why)
  const line = above === undefined ? Number(named?.[1] ?? where.from + 1) : above + 1
  return Math.max(1, Math.min(line, where.lines.count) - 3)
}

/** Refuses to remove a file that has lines the patch does not contain. */
export const remains = (path: string, patch: FilePatch, text: string): Refused => {
  const { body, count } = atOnce(linesOf(text))
  return refused(
    `${path} (line ${patch.at} of the patch) is to be removed, but ${count} of its lines are not in the patch, the first of them ${quoted(body(0))}.`,
    `Nothing was changed. Read ${path} again, and remove it with *** Delete File in a *** Begin Patch, or with rm.`
  )
}
