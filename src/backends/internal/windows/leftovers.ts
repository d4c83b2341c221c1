import * as TemporaryNames from "../../../runtime/temporaryNames.ts"
import { lookAt, type Walker } from "./walk.ts"

export const removeLeftover = ({ disk }: Walker, at: string, name: string): boolean => {
  if (!TemporaryNames.isLeftover(name)) return false
  try {
    const found = lookAt(disk, at)
    if (found === undefined) return true
    if (found.isDirectory()) return false
    disk.unlinkSync(at)
    return true
  } catch {
    // The next process that lists the directory tries again.
    return false
  }
}
