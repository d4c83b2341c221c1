import { explainAbsent } from "../../engine/nearest.ts"
import { runAtOnce, type Steps } from "../../runtime/steps.ts"
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

const subject = (hunkContext: Where): string => {
  const { index, patch, path } = hunkContext
  return `Hunk ${index + 1} of ${patch.hunks.length} for ${path} (line ${hunkOf(hunkContext).patchLine} of the patch)`
}

const readAgain = ({ path }: Where, line: number): string =>
  `Nothing was changed. Read ${path} from line ${line} on (offset ${line - 1}), and write the hunk again from these lines.`

const refuseHunk = (hunkContext: Where, why: string, advice: string): Refused =>
  refused(`${subject(hunkContext)} does not apply: ${why}.`, advice)

export const tooMuch = (hunkContext: Where): Refused =>
  refuseHunk(
    hunkContext,
    "too many places resemble its lines, so the search for the right one was stopped",
    "Nothing was changed. Send fewer hunks at a time, with lines of context that are rare in the file, or overwrite the file."
  )

export const ambiguous = (hunkContext: Where, places: ReadonlyArray<number>, anchor?: string): Refused => {
  const what = anchor === undefined ? "its lines occur" : `the line ${quoted(`@@ ${anchor}`)} occurs`
  const at = places.map((line) => line + 1).join(" and at line ")
  const remedy = "Give more lines of context"
  return refuseHunk(
    hunkContext,
    `${what} both at line ${at}, and the hunk does not say which one it means`,
    `Nothing was changed. ${remedy}${hunkContext.patch.form === "v4a" ? ", or add an @@ line that quotes a unique line above the right place" : ", or the right line number in @@"}.`
  )
}

const describeStatedPlace = (hunkContext: Where): string | undefined => {
  const { linesAbove: above } = hunkOf(hunkContext)
  if (above === undefined) return undefined
  const at = above + hunkContext.shift
  const old = oldLines(hunkOf(hunkContext))
  for (const [index, { text }] of old.entries()) {
    const line = at + index
    if (line >= hunkContext.lines.count)
      return `the file ends at line ${hunkContext.lines.count}, but the hunk expects ${quoted(text)} on line ${line + 1}`
    const stands = line < 0 ? "" : hunkContext.lines.lineText(line)
    if (stands !== text.replace(/\r$/, ""))
      return `line ${line + 1} of the file is ${quoted(stands)}, but the hunk expects ${quoted(text)}`
  }
  return undefined
}

/** Searches the whole file for the lines of a hunk, without regard to its stated place. */
const findAnywhere = function* (hunkContext: Where, lines: Hunk["lines"]): Steps<number | undefined> {
  if (lines.length === 0) return undefined
  const found = yield* finder(hunkContext.lines, hunkContext.patch.form).find(
    { patchLine: 0, lines, anchors: [], isAtEnd: false },
    0,
    0
  )
  return found._tag === "At" ? found.line + 1 : found._tag === "Several" ? found.places[0]! + 1 : undefined
}

const asRemovedLines = (lines: Hunk["lines"]): Hunk["lines"] => lines.map(({ text }) => ({ sign: "-", text }))

export const misplaced = function* (hunkContext: Where, anchor?: string): Steps<Refused> {
  const hunk = hunkOf(hunkContext)
  const { count, text } = hunkContext.lines
  const old = oldLines(hunk)
  if (anchor !== undefined) {
    const below = hunkContext.from === 0 ? "" : ` below line ${hunkContext.from}, where the hunk before it ends`
    return refuseHunk(
      hunkContext,
      `no line${below} is ${quoted(anchor)}, which its @@ names`,
      readAgain(hunkContext, hunkContext.from + 1)
    )
  }
  if (old.length === 0) {
    const place = hunk.linesAbove === undefined ? "in the file" : `below line ${hunk.linesAbove + hunkContext.shift}`
    const above = hunkContext.from > 0 ? `the hunk before it ends at line ${hunkContext.from} and ` : ""
    const end = hunk.lines.some(({ lacksNewline: open }) => open) ? " and says that these are the end of the file" : ""
    const what = `it adds lines ${place}${end}, and ${above}the file has ${count} lines`
    return refuseHunk(hunkContext, what, readAgain(hunkContext, Math.max(1, count)))
  }
  const foundLine = yield* findAnywhere(hunkContext, asRemovedLines(old))
  if (foundLine !== undefined) {
    const why = hunk.lines.some(({ lacksNewline: open }) => open)
      ? `its lines occur at line ${foundLine}, but the hunk says that they are the end of the file, which has ${count} lines`
      : hunk.anchors.length > 0
        ? `its lines occur at line ${foundLine}, but not below ${quoted(`@@ ${hunk.anchors.at(-1)!}`)}${hunkContext.from > 0 ? ` and the hunk before it, which ends at line ${hunkContext.from}` : ""}`
        : `its lines occur at line ${foundLine}, but the hunk before it ends at line ${hunkContext.from}; hunks go down the file and do not overlap`
    return refuseHunk(hunkContext, why, readAgain(hunkContext, foundLine))
  }
  const appliedLine = newLines(hunk).length > 0 ? yield* findAnywhere(hunkContext, asRemovedLines(newLines(hunk))) : undefined
  if (appliedLine !== undefined) {
    return refuseHunk(
      hunkContext,
      `its result is already in the file, at line ${appliedLine}`,
      readAgain(hunkContext, appliedLine)
    )
  }
  const statedPlace = describeStatedPlace(hunkContext)
  const oldText = old.map((line) => line.text).join("\n")
  const why = `${statedPlace === undefined ? "" : `${statedPlace}; `}its text was looked for, and ${yield* explainAbsent(text, oldText)}`
  return refuseHunk(hunkContext, why, readAgain(hunkContext, lineToRead(hunkContext, why)))
}

const lineToRead = (hunkContext: Where, why: string): number => {
  const { linesAbove: above } = hunkOf(hunkContext)
  const named = /\blines? (\d+)/.exec(why)
  const line = above === undefined ? Number(named?.[1] ?? hunkContext.from + 1) : above + 1
  return Math.max(1, Math.min(line, hunkContext.lines.count) - 3)
}

/** Refuses to remove a file that has lines the patch does not contain. */
export const refuseRemainingLines = (path: string, patch: FilePatch, text: string): Refused => {
  const { lineText: body, count } = runAtOnce(linesOf(text))
  return refused(
    `${path} (line ${patch.patchLine} of the patch) is to be removed, but ${count} of its lines are not in the patch, the first of them ${quoted(body(0))}.`,
    `Nothing was changed. Read ${path} again, and remove it with *** Delete File in a *** Begin Patch, or with rm.`
  )
}
