import type { Skipped } from "../../model/Entry.ts"

import { listed } from "../../model/words.ts"

export { listed, formatCount as plural, formatSize as size } from "../../model/words.ts"

const maxNamedPaths = 3

const namePaths = (paths: ReadonlyArray<string>, count: number): string => {
  const shown = paths.slice(0, maxNamedPaths)
  const more = count - shown.length
  return shown.length === 0 ? "" : ` (${listed(more > 0 ? [...shown, `${more} more`] : shown)})`
}

export const describeSkipped = ({ binary, ignored, tooLarge, unreadable, unreadablePaths }: Skipped): string => {
  const reasons = [
    ignored > 0 ? `${ignored} ignored` : "",
    binary > 0 ? `${binary} binary` : "",
    tooLarge > 0 ? `${tooLarge} too large` : "",
    unreadable > 0 ? `${unreadable} unreadable${namePaths(unreadablePaths, unreadable)}` : ""
  ].filter((reason) => reason !== "")
  return reasons.length === 0 ? "" : `skipped: ${reasons.join(", ")}`
}
