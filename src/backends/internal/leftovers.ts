/**
 * Removes the leftovers of killed writers.
 *
 * Listing a directory or writing in it removes the files whose process has provably ended. A file that is not provably
 * ours stays, however old it is.
 */
import { Fs } from "../../runtime/node.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { lstatEntry, type HostDirectory } from "./confined.ts"
import { listSync, isSmall } from "./hostEntries.ts"

/** Removes the leftover with this name. Returns true if the name is then free. Directories are kept for their owner. */
export const removeLeftover = (place: HostDirectory, segment: string): boolean => {
  if (!TemporaryNames.isLeftover(segment)) return false
  const at = place.at(segment)
  try {
    const found = lstatEntry(at)
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
export const removeLeftoversOnce = (place: HostDirectory): void => {
  if (place.isCleared) return
  place.isCleared = true
  try {
    if (!isSmall(place)) return
    for (const { name } of listSync(place)) removeLeftover(place, name)
  } catch {
    // A writable directory need not be readable.
  }
}
