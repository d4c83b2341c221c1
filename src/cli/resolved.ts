import { realpathSync } from "node:fs"
import { basename, dirname, join } from "node:path"

/** Resolves the links of a path that may not exist, as far as it exists. */
export const resolveLinks = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return dirname(path) === path ? path : join(resolveLinks(dirname(path)), basename(path))
  }
}
