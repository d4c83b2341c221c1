/**
 * Fits messages into the budget. The last line, which says how to get the rest of the result, is part of the measured message.
 */
import { type Steps, unitsPerItem } from "../../runtime/steps.ts"
import type { ToolSettingsShape } from "../ToolSettings.ts"
import type { Call } from "../definition.ts"

export const maxLineLength = 2000

export interface Excerpt {
  readonly shown: string
  readonly start: number
  readonly end: number
  readonly isCut: boolean
}

const isHighSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xd800
const isLowSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00
export const splitsPair = (text: string, at: number): boolean =>
  at > 0 && at < text.length && isLowSurrogate(text, at) && isHighSurrogate(text, at - 1)

/** Returns at most `width` UTF-16 units of the line, beginning at column `from`, and a note of the range if the line is cut. */
export const excerpt = (text: string, width: number = maxLineLength, from = 0): Excerpt => {
  if (text.length <= width) return { shown: text, start: 0, end: text.length, isCut: false }
  const first = Math.max(0, Math.min(from, text.length - width))
  const start = splitsPair(text, first) ? first - 1 : first
  // Never split a surrogate pair, even if only half of the first pair fits.
  const last = Math.min(text.length, Math.max(start + width, start + 1))
  const end = splitsPair(text, last) ? (last - 1 > start ? last - 1 : last + 1) : last
  const shown = `${text.slice(start, end)} [cut: characters ${start + 1}-${end} of ${text.length}]`
  return { shown, start, end, isCut: true }
}

/** Formats a line as `   7 | text`, with a 1-based number. The mark distinguishes a match from the lines around it. */
export const numberLine = (line: number, text: string, mark: "|" | "-" = "|"): string =>
  `${String(line).padStart(4)} ${mark} ${text}`

export const numberLines = (texts: ReadonlyArray<string>, offset = 0): ReadonlyArray<string> =>
  texts.map((text, index) => numberLine(offset + index + 1, excerpt(text).shown))

type Budget = Pick<ToolSettingsShape, "budget" | "measure">

export type PageBudget = Budget & Pick<Call, "sent">

/**
 * Returns how many of the first `count` items fit: at least 1 unless `count` is 0, even if the first item is too large. So a model
 * that reads page after page makes progress.
 */
export const countFitting = (count: number, render: (shown: number) => string, { budget, measure }: Budget): number => {
  const fits = (shown: number): boolean => measure(render(shown)) <= budget
  // The complete text needs no hint about the rest, so it may fit even if a part does not.
  if (count <= 1 || fits(count)) return count
  // Start with few items. The search then renders at most about twice as many items as fit.
  let low = 1
  let high = 2
  while (high < count && fits(high)) {
    low = high
    high *= 2
  }
  high = Math.min(high, count)
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (fits(middle)) low = middle
    else high = middle
  }
  return low
}

export const joinLines = (lines: ReadonlyArray<string>, end: string): string =>
  (end === "" ? lines : [...lines, end]).join("\n")

export const joinFitting = (lines: ReadonlyArray<string>, settings: Budget, rest: (shown: number) => string): string => {
  const render = (shown: number): string =>
    joinLines(shown === lines.length ? lines : lines.slice(0, shown), shown === lines.length ? "" : rest(shown))
  return render(countFitting(lines.length, render, settings))
}

/** The largest size of a shown diff, in UTF-16 units. */
const maxDiffLength = 48_000

interface ShownDiff {
  readonly lines: ReadonlyArray<string>
  readonly totalLines: number
}

/** Returns the first lines of the diff, up to 48,000 characters. Lines over 2,000 characters are cut, with a note. */
export const excerptDiff = function* (diff: string): Steps<ShownDiff> {
  const lines: Array<string> = []
  let totalLines = 0
  let length = 0
  for (let at = 0; at < diff.length;) {
    const newline = diff.indexOf("\n", at)
    const end = newline === -1 ? diff.length : newline
    if (length <= maxDiffLength) {
      const { shown } = excerpt(diff.slice(at, end))
      length += shown.length + 1
      if (length <= maxDiffLength) lines.push(shown)
    }
    at = end + 1
    if (++totalLines % 1024 === 0) yield 1024 * unitsPerItem
  }
  return { lines, totalLines }
}

const cutMark = (shown: number, totalLines: number, advice = ""): string =>
  shown === totalLines ? "" : `[cut: ${shown} of ${totalLines} lines${advice}]`

export const diffText = ({ lines, totalLines }: ShownDiff): string => {
  const mark = cutMark(lines.length, totalLines)
  return [...lines, ...(mark === "" ? [] : [mark])].map((line) => `${line}\n`).join("")
}

export const withDiff = (head: ReadonlyArray<string>, diff: ShownDiff, settings: Budget, advice = ""): string => {
  const lines = [...head, ...diff.lines]
  const render = (shown: number): string =>
    joinLines(lines.slice(0, shown), cutMark(shown, head.length + diff.totalLines, advice))
  return render(countFitting(lines.length, render, settings))
}
