/**
 * A message has a budget, and is cut between lines, never in one. What is measured is the whole message with its last line, which says
 * how to get the rest: so what is sent is within the budget, whatever measures it.
 */
import type { ToolSettingsShape } from "../ToolSettings.ts"

export type Budget = Pick<ToolSettingsShape, "budget" | "measure">

/**
 * With how many of `count` items, counted from the first, the text still fits. 1 where not even that does: whoever follows the hints has to
 * get on.
 */
export const fit = (count: number, render: (shown: number) => string, { budget, measure }: Budget): number => {
  const fits = (shown: number): boolean => measure(render(shown)) <= budget
  // All of them need no hint how to get the rest, so they may fit where fewer do not.
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

/** For texts that are nice to have, such as a diff: as much as fits, and how many lines that leaves out. */
export const cutAtLine = (text: string, settings: Budget): string => {
  const all = text.split("\n")
  return fitted(all, settings, (shown) => `[cut: ${shown} of ${all.length} lines]`)
}
