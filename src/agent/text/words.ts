import type { Skipped } from "../../model/Entry.ts"

export { plural, size } from "../../model/words.ts"

/** Joins items as `a`, `a and b`, `a, b and c`. */
export const listed = (items: ReadonlyArray<string>): string =>
  items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]!}`

const named = 3

const naming = (paths: ReadonlyArray<string>, count: number): string => {
  const shown = paths.slice(0, named)
  const more = count - shown.length
  return shown.length === 0 ? "" : ` (${listed(more > 0 ? [...shown, `${more} more`] : shown)})`
}

export const skipped = ({ binary, ignored, tooLarge, unreadable, unreadablePaths }: Skipped): string => {
  const reasons = [
    ignored > 0 ? `${ignored} ignored` : "",
    binary > 0 ? `${binary} binary` : "",
    tooLarge > 0 ? `${tooLarge} too large` : "",
    unreadable > 0 ? `${unreadable} unreadable${naming(unreadablePaths, unreadable)}` : ""
  ].filter((reason) => reason !== "")
  return reasons.length === 0 ? "" : `skipped: ${reasons.join(", ")}`
}
