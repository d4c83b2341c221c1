/**
 * Removes the leftovers of killed writers.
 *
 * Listing a directory or writing in it removes the files whose process has provably ended. A file that is not provably
 * ours stays, however old it is.
 */
import { Fs } from "../../runtime/node.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { look, type Place } from "./confined.ts"
import { childrenNow, isSmall } from "./hostEntries.ts"

/** Removes the leftover with this name. Returns true if the name is then free. Directories are kept for their owner. */
export const sweep = (place: Place, segment: string): boolean => {
  if (!TemporaryNames.isLeftover(segment)) return false
  const at = place.at(segment)
  try {
    const found = look(at)
    if (found === undefined) return true
    if (found.isDirectory()) return false
    Fs.unlinkSync(at)
    return true
  } catch {
    return false
  }
}

/**
 * Removes leftovers before a file is replaced, once per cached directory. Skips a large directory until it is listed.
 */
export const sweepBefore = (place: Place): void => {
  if (place.isSwept) return
  place.isSwept = true
  try {
    if (!isSmall(place)) return
    for (const { name } of childrenNow(place)) sweep(place, name)
  } catch {
    // A writable directory need not be readable.
  }
}
