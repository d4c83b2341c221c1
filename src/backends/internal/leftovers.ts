/**
 * Removes the temporary files of killed writers. Whoever lists a directory or writes in it removes those whose process has provably
 * ended; a file that is not provably ours is a stranger's and stays, however old it is.
 */
import { Fs } from "../../runtime/node.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { look, type Place } from "./confined.ts"
import { childrenNow, isSmall } from "./hostEntries.ts"

/** Removes the leftover that has this name, and returns whether the name is free then. Directories are left to whoever made them. */
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
    // The next process that lists the directory tries again.
    return false
  }
}

/** Sweeps a directory once in a while, before a file in it is replaced. A large directory waits until it is listed. */
export const sweepBefore = (place: Place): void => {
  if (place.isSwept) return
  place.isSwept = true
  try {
    if (!isSmall(place)) return
    for (const { name } of childrenNow(place)) sweep(place, name)
  } catch {
    // A directory in which this user may write need not be readable.
  }
}
