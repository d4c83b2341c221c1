/**
 * The whole message is measured, with the last line that says how to get the rest, so the message sent is always within the
 * budget.
 */
import { perItem, type Steps } from "../../runtime/steps.ts"
import type { Call } from "../definition.ts"
import type { ToolSettingsShape } from "../ToolSettings.ts"
import { excerpt } from "./lines.ts"

export type Budget = Pick<ToolSettingsShape, "budget" | "measure">

/** The budget of a page; its `sent` adds the value if values are sent. */
export type PageBudget = Budget & Pick<Call, "sent">

/**
 * Returns how many of `count` items, from the first, fit. Returns 1 even if that does not fit, so that a model that follows the
 * hints makes progress.
 */
export const fit = (count: number, render: (shown: number) => string, { budget, measure }: Budget): number => {
  const fits = (shown: number): boolean => measure(render(shown)) <= budget
  // The complete text needs no hint about the rest, so it may fit even if a part does not.
  if (count <= 1 || fits(count)) return count
  // Start with few items: the search then renders at most about twice the items that fit.
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

export const joined = (lines: ReadonlyArray<string>, end: string): string => (end === "" ? lines : [...lines, end]).join("\n")

/** Joins the lines. If they do not fit, joins those that fit and `rest`, which says how to get the others. */
export const fitted = (lines: ReadonlyArray<string>, settings: Budget, rest: (shown: number) => string): string => {
  const render = (shown: number): string =>
    joined(shown === lines.length ? lines : lines.slice(0, shown), shown === lines.length ? "" : rest(shown))
  return render(fit(lines.length, render, settings))
}

/** The largest part of a diff that is shown, in UTF-16 units. */
const maxDiff = 48_000

export interface ShownDiff {
  readonly lines: ReadonlyArray<string>
  readonly total: number
}

/** Yields the first lines of the diff, up to 48,000 characters. Lines over 2,000 characters are cut, with a mark. */
export const shownDiff = function* (diff: string): Steps<ShownDiff> {
  const lines: Array<string> = []
  let total = 0
  let length = 0
  for (let at = 0; at < diff.length;) {
    const newline = diff.indexOf("\n", at)
    const end = newline === -1 ? diff.length : newline
    if (length <= maxDiff) {
      const { shown } = excerpt(diff.slice(at, end))
      length += shown.length + 1
      if (length <= maxDiff) lines.push(shown)
    }
    at = end + 1
    if (++total % 1024 === 0) yield 1024 * perItem
  }
  return { lines, total }
}

const cut = (shown: number, total: number, advice = ""): string =>
  shown === total ? "" : `[cut: ${shown} of ${total} lines${advice}]`

/** Returns the shown diff as a text that ends in a newline, with a mark if lines are omitted. */
export const diffText = ({ lines, total }: ShownDiff): string => {
  const mark = cut(lines.length, total)
  return [...lines, ...(mark === "" ? [] : [mark])].map((line) => `${line}\n`).join("")
}

/** Returns the lines and the diff below them, as much as fits, and says how many lines are omitted. */
export const withDiff = (head: ReadonlyArray<string>, diff: ShownDiff, settings: Budget, advice = ""): string => {
  const lines = [...head, ...diff.lines]
  const render = (shown: number): string => joined(lines.slice(0, shown), cut(shown, head.length + diff.total, advice))
  return render(fit(lines.length, render, settings))
}
