/**
 * Context lines are only compared, so they keep their bytes. Added lines end as in the patch if patch and file agree on line
 * endings, and otherwise as the lines that they replace or follow.
 */
import type { Replacement } from "../../engine/diff.ts"
import { unitsPerItem, type Steps } from "../../runtime/steps.ts"
import type { Refused } from "../definition.ts"
import { ambiguous, misplaced, tooMuch } from "./explain.ts"
import { type Level, type Lines, linesOf, withoutCr } from "./lines.ts"
import { type FilePatch, type Hunk, type Line, oldLines } from "./model.ts"
import { finder } from "./place.ts"

/** A hunk that was applied at another place, or to lines that differ in blanks. */
export interface Deviation {
  /** The number of the hunk, from 1; the line counts from 1 too. */
  readonly hunk: number
  readonly line: number
  /** The level of the match; above 1, blanks were ignored. */
  readonly level: Level
  /** True if the added lines were indented like the lines around them. */
  readonly indented: boolean
}

export interface Applied {
  /** The replacements, in order and without overlap. */
  readonly replacements: ReadonlyArray<Replacement>
  readonly addedLines: number
  readonly removedLines: number
  readonly deviations: ReadonlyArray<Deviation>
}

type Endings = "as the patch" | "as the file"

const endingsOf = (lines: Lines, hunk: Hunk, level: Level, hasCarriageReturns: boolean): Endings => {
  const isAddition = hunk.lines.every(({ sign }) => sign === "+")
  const usesPatchEndings = isAddition ? hasCarriageReturns || lines.count === 0 : level === 0
  return usesPatchEndings ? "as the patch" : "as the file"
}

/** The difference in indentation between the file and the hunk: text that only the file has, or only the hunk. */
interface Indent {
  readonly extraIndent: string
  readonly missingIndent: string
}

const noIndent: Indent = { extraIndent: "", missingIndent: "" }

const indentOf = (lines: Lines, hunk: Hunk, at: number): Indent | undefined => {
  let indent: Indent | undefined
  for (const [index, { text }] of oldLines(hunk).entries()) {
    const [hunkLine, fileLine] = [text.trimEnd(), lines.lineText(at + index).trimEnd()]
    if (hunkLine === "") continue
    const [extraIndent, missingIndent] = [
      fileLine.slice(0, -hunkLine.trimStart().length),
      hunkLine.slice(0, -hunkLine.trimStart().length)
    ]
    const own: Indent | undefined = extraIndent.endsWith(missingIndent)
      ? { extraIndent: extraIndent.slice(0, extraIndent.length - missingIndent.length), missingIndent: "" }
      : missingIndent.endsWith(extraIndent)
        ? { extraIndent: "", missingIndent: missingIndent.slice(0, missingIndent.length - extraIndent.length) }
        : undefined
    indent ??= own
    if (own === undefined || own.extraIndent !== indent!.extraIndent || own.missingIndent !== indent!.missingIndent)
      return undefined
  }
  return indent
}

const indented = (hunk: Hunk, { missingIndent, extraIndent }: Indent): Hunk => ({
  ...hunk,
  lines: hunk.lines.map((line) =>
    line.sign !== "+" || line.text.trim() === "" || !line.text.startsWith(missingIndent)
      ? line
      : { ...line, text: extraIndent + line.text.slice(missingIndent.length) }
  )
})

interface LineReplacement {
  readonly from: number
  readonly to: number
  readonly added: ReadonlyArray<Line>
}

const modelEnding = (lines: Lines, { from, to }: LineReplacement, index: number): string => {
  const model = from < to ? Math.min(from + index, to - 1) : from > 0 ? from - 1 : 0
  const ending = lines.count === 0 ? "\n" : lines.lineEnding(model)
  return ending !== "" ? ending : lines.count > 1 ? lines.lineEnding(lines.count - 2) : "\n"
}

const textAsFile = (lines: Lines, run: LineReplacement, marksEnd: boolean): string => {
  const { added, from, to } = run
  const lackedFinalNewline = lines.count > 0 && lines.lineEnding(lines.count - 1) === ""
  const reachesEnd = to === lines.count && lackedFinalNewline
  // The added lines follow a last line that has no newline and stays.
  let out = reachesEnd && from === to && added.length > 0 ? modelEnding(lines, run, 0) : ""
  for (const [index, { lacksNewline: open, text }] of added.entries()) {
    const isOpen = marksEnd ? open === true : reachesEnd && index === added.length - 1
    out += withoutCr(text) + (isOpen ? "" : modelEnding(lines, run, index))
  }
  return out
}

const textAsPatch = (added: ReadonlyArray<Line>): string =>
  added.map(({ lacksNewline: open, text }) => (open === true ? text : `${text}\n`)).join("")

const lineReplacementsOf = (hunk: Hunk, at: number): ReadonlyArray<LineReplacement> => {
  const lineReplacements: Array<LineReplacement> = []
  let from = at
  let to = at
  let added: Array<Line> = []
  const close = (): void => {
    if (added.length > 0 || from < to) lineReplacements.push({ from, to, added })
    added = []
    from = ++to
  }
  for (const line of hunk.lines) {
    if (line.sign === " ") close()
    else if (line.sign === "-") to++
    else added.push(line)
  }
  close()
  return lineReplacements
}

const count = (patch: FilePatch, sign: string): number =>
  patch.hunks.reduce((sum, { lines }) => sum + lines.reduce((n, line) => n + (line.sign === sign ? 1 : 0), 0), 0)

/** Removes a final empty context line. Some models write the newline at the end of the file as such a line. */
const withoutNewlineLine = (patch: FilePatch, hunk: Hunk): Hunk | undefined => {
  const last = hunk.lines.at(-1)!
  const isNewline = patch.form === "v4a" && last.sign === " " && last.text === "" && hunk.lines.length > 1
  return isNewline ? { ...hunk, lines: hunk.lines.slice(0, -1), isAtEnd: true } : undefined
}

/** Applies all hunks. If a hunk has no place, yields a refusal that says why; `path` is for its message. */
export const applyHunks = function* (patch: FilePatch, text: string, path: string): Steps<Applied | Refused> {
  const all = patch.hunks.flatMap((hunk) => hunk.lines)
  const lines = yield* linesOf(text, all.some((line) => line.text.startsWith("\uFEFF")) ? "within" : "apart")
  const hasCarriageReturns = all.some((line) => line.text.endsWith("\r"))
  const { find } = finder(lines, patch.form)
  const replacements: Array<Replacement> = []
  const deviations: Array<Deviation> = []
  let from = 0
  let shift = 0
  for (const [index, statedHunk] of patch.hunks.entries()) {
    let hunk = statedHunk
    let found = yield* find(hunk, from, shift)
    const shorter = found._tag === "Nowhere" ? withoutNewlineLine(patch, hunk) : undefined
    if (shorter !== undefined) {
      const other = yield* find(shorter, from, shift)
      if (other._tag === "At" && other.line + oldLines(shorter).length === lines.count) [hunk, found] = [shorter, other]
    }
    const where = { path, patch, index, lines, from, shift }
    if (found._tag === "TooMuch") return tooMuch(where)
    if (found._tag === "Several") return ambiguous(where, found.places, found.anchor)
    if (found._tag === "Nowhere") return yield* misplaced(where, found.anchor)
    const indent = found.level === 3 ? indentOf(lines, hunk, found.line) : undefined
    const put = indented(hunk, indent ?? noIndent)
    const endings = endingsOf(lines, hunk, found.level, hasCarriageReturns)
    const marksEnd = hunk.lines.some(({ lacksNewline: open }) => open)
    for (const run of lineReplacementsOf(put, found.line)) {
      const text = endings === "as the patch" ? textAsPatch(run.added) : textAsFile(lines, run, marksEnd)
      replacements.push({ start: lines.lineStart(run.from), end: lines.lineStart(run.to), text })
    }
    yield 8 * unitsPerItem * hunk.lines.length
    from = found.line + oldLines(hunk).length
    if (hunk.linesAbove !== undefined) shift = found.line - hunk.linesAbove
    if (found.level > 1 || (hunk.linesAbove !== undefined && found.line !== hunk.linesAbove)) {
      deviations.push({ hunk: index + 1, line: found.line + 1, level: found.level, indented: indent !== undefined })
    }
  }
  return { replacements, deviations, addedLines: count(patch, "+"), removedLines: count(patch, "-") }
}

export const applyReplacements = (text: string, replacements: ReadonlyArray<Replacement>): string => {
  let out = ""
  let at = 0
  for (const { end, start, text: put } of replacements) {
    out += text.slice(at, start) + put
    at = end
  }
  return out + text.slice(at)
}
