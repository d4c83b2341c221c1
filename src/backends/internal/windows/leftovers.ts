/**
 * What becomes of the hidden files of a writer that was killed, on a Windows disk: whoever lists their directory takes them away.
 */
import { isOrphan, staleAfter } from "../leftovers.ts"
import { lookAt, type Walker } from "./walk.ts"

/** Removes what a killed writer has left by this name; whether it did. `now`, in milliseconds, for what only its age can tell. */
export const sweep = ({ disk }: Walker, at: string, name: string, now?: number): boolean => {
  const orphan = isOrphan(name)
  if (orphan === false || (orphan === undefined && now === undefined)) return false
  try {
    const found = lookAt(disk, at)
    if (found === undefined) return true
    if (found.isDirectory() || !(orphan === true || now! - Number(found.mtimeMs) > staleAfter)) return false
    disk.unlinkSync(at)
    return true
  } catch {
    // It stays hidden, and whoever lists the directory next tries again.
    return false
  }
}
