/**
 * Directories with those above them. Node's own recursive mkdir asks for ever where a directory is there and takes no entries, as in
 * /proc, and nothing can interrupt it.
 */
import * as Fs from "node:fs"
import { dirname } from "node:path"

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code

const isDirectory = (path: string): boolean => Fs.statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** Answers the first that was made; `undefined` where all were there. Throws what the system says. */
export const makeDirectories = (path: string, mode?: number): string | undefined => {
  try {
    Fs.mkdirSync(path, mode)
    return path
  } catch (error) {
    if (codeOf(error) !== "ENOENT") {
      if (isDirectory(path)) return undefined
      throw error
    }
    const above = dirname(path)
    if (above === path || isDirectory(above)) throw error
    const first = makeDirectories(above, mode)
    return makeDirectories(path, mode) === undefined ? first : (first ?? path)
  }
}
