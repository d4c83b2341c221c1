/** Paths of the machine that need not be there. */
import { realpathSync } from "node:fs"
import { basename, dirname, join } from "node:path"

/** With the links resolved of what is there of it. */
export const resolved = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return dirname(path) === path ? path : join(resolved(dirname(path)), basename(path))
  }
}
