/** Where a text differs from what it was, in the line numbers of what it is now, so that a model knows what to read again. */
import * as TextDiff from "effect/TextDiff"

const maxEdits = 2000
const mostRanges = 3

interface Range {
  readonly from: number
  readonly to: number
}

/** 1-based and inclusive; where lines are only gone, the one before them and the one after. */
const rangesOf = (before: string, after: string): ReadonlyArray<Range> => {
  const ranges: Array<Range> = []
  const last = after === "" ? 0 : after.split("\n").length - (after.endsWith("\n") ? 1 : 0)
  let line = 1
  let isOpen = false
  for (const { _tag, items } of TextDiff.lines(before, after, { maxEdits })) {
    if (_tag === "Equal") {
      line += items.length
      isOpen = false
      continue
    }
    const end = _tag === "Insert" ? line + items.length - 1 : line
    const start = _tag === "Insert" || line <= last ? line : Math.max(1, last)
    const previous = ranges.at(-1)
    if (isOpen && previous !== undefined) ranges[ranges.length - 1] = { from: previous.from, to: Math.max(previous.from, end) }
    else ranges.push({ from: start, to: Math.max(start, Math.min(end, Math.max(last, 1))) })
    if (_tag === "Insert") line += items.length
    isOpen = true
  }
  return ranges
}

/** "lines 3-5 and 9 changed"; `undefined` where nothing has. */
export const changedLines = (before: string, after: string): string | undefined => {
  const ranges = rangesOf(before, after)
  if (ranges.length === 0) return undefined
  const shown = ranges.length > mostRanges ? [{ from: ranges[0]!.from, to: ranges.at(-1)!.to }] : ranges
  const words = shown.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`))
  const isOne = shown.length === 1 && shown[0]!.from === shown[0]!.to
  return `${isOne ? "line" : "lines"} ${listed(words, "and")} changed`
}

/** "a, b and c". */
export const listed = (words: ReadonlyArray<string>, conjunction: "and" | "or"): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} ${conjunction} ${words.at(-1)}`
