import { findCommonBlocks, type Lines, makeLineNumbering } from "../engine/lineDiff.ts"
import { listed } from "../model/words.ts"
import type { Steps } from "../runtime/steps.ts"

/**
 * The step budget of a comparison, whose cost is lines times differences. Beyond this budget more lines are reported as changed
 * than were.
 */
const maxSteps = 4_000_000
const maxEdits = 2000
const maxRanges = 3

interface Range {
  readonly from: number
  readonly to: number
}

/**
 * Returns the changed ranges, 1-based and inclusive. For lines that were only removed, the range is the line at that position.
 */
const rangesOf = function* (before: string, after: string): Steps<ReadonlyArray<Range>> {
  const number = makeLineNumbering()
  const oldLines: Lines = yield* number(before)
  const newLines: Lines = yield* number(after)
  const last = newLines.ids.length
  const maxDifferences = Math.min(maxEdits, Math.ceil(maxSteps / (oldLines.ids.length + last + 1)))
  const common = yield* findCommonBlocks(oldLines.ids, newLines.ids, maxDifferences)
  const ranges: Array<Range> = []
  let [oldLine, line] = [0, 0]
  for (const block of [...common, { before: oldLines.ids.length, after: last, length: 0 }]) {
    if (block.after > line) ranges.push({ from: line + 1, to: block.after })
    else if (block.before > oldLine) {
      const from = Math.min(line + 1, Math.max(1, last))
      ranges.push({ from, to: from })
    }
    oldLine = block.before + block.length
    line = block.after + block.length
  }
  return ranges
}

/** Yields a text such as "lines 3-5 and 9 changed", or `undefined` if no line changed. */
export const changedLines = function* (before: string, after: string): Steps<string | undefined> {
  const ranges = yield* rangesOf(before, after)
  if (ranges.length === 0) return undefined
  const shown = ranges.length > maxRanges ? [{ from: ranges[0]!.from, to: ranges.at(-1)!.to }] : ranges
  const words = shown.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`))
  const isOne = shown.length === 1 && shown[0]!.from === shown[0]!.to
  return `${isOne ? "line" : "lines"} ${listed(words)} changed`
}
