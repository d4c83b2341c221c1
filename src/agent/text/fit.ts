/**
 * A message has a budget, and is cut between lines, never in one. What is measured is the whole message with its last line, which says
 * how to get the rest: so what is sent is within the budget, whatever measures it.
 */
import { perItem, type Steps } from "../../runtime/steps.ts"
import type { Call } from "../definition.ts"
import type { ToolSettingsShape } from "../ToolSettings.ts"
import { excerpt } from "./lines.ts"

export type Budget = Pick<ToolSettingsShape, "budget" | "measure">

/** A budget for a page whose value is sent beside its message, where values are sent. */
export type PageBudget = Budget & Pick<Call, "sent">

/**
 * With how many of `count` items, counted from the first, the text still fits. 1 where not even that does: whoever follows the hints has to
 * get on.
 */
export const fit = (count: number, render: (shown: number) => string, { budget, measure }: Budget): number => {
  const fits = (shown: number): boolean => measure(render(shown)) <= budget
  // The whole needs no hint how to get the rest, so it may fit where a part does not.
  if (count <= 1 || fits(count)) return count
  // From few items on: of a million no more are rendered again than about twice of what fits.
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

/** The lines as one text, with `end` as the last where it says something. */
export const joined = (lines: ReadonlyArray<string>, end: string): string => (end === "" ? lines : [...lines, end]).join("\n")

/** The lines as one text; where they do not fit, those that do, and `rest`, which says how to get the others. */
export const fitted = (lines: ReadonlyArray<string>, settings: Budget, rest: (shown: number) => string): string => {
  const render = (shown: number): string =>
    joined(shown === lines.length ? lines : lines.slice(0, shown), shown === lines.length ? "" : rest(shown))
  return render(fit(lines.length, render, settings))
}

/** UTF-16 units of a diff that are looked at to be shown. */
const maxDiff = 48_000

/** The beginning of a diff, for a model. */
export interface ShownDiff {
  /** Long lines are cut, with a mark. */
  readonly lines: ReadonlyArray<string>
  /** The lines of the whole diff. */
  readonly total: number
}

/** Returns as many lines of the diff as are within 48,000 characters. Lines over 2,000 characters are cut, with a mark. */
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

/** Returns the shown diff as a text that ends in a newline, with a mark where lines are left out. */
export const diffText = ({ lines, total }: ShownDiff): string => {
  const mark = cut(lines.length, total)
  return [...lines, ...(mark === "" ? [] : [mark])].map((line) => `${line}\n`).join("")
}

/** Returns the lines and the diff below them, as much as fits, and says how many lines are left out. */
export const withDiff = (head: ReadonlyArray<string>, diff: ShownDiff, settings: Budget, advice = ""): string => {
  const lines = [...head, ...diff.lines]
  const render = (shown: number): string => joined(lines.slice(0, shown), cut(shown, head.length + diff.total, advice))
  return render(fit(lines.length, render, settings))
}
