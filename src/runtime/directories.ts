/**
 * Directories with those above them. Node's own recursive mkdir asks for ever where a directory is there and takes no entries, as in
 * /proc, and nothing can interrupt it. It also fails with ENOENT where another process removes the directory at the same time.
 */
import { dirname, Fs } from "./node.ts"

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code

const isDirectory = (path: string): boolean => Fs.statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** A directory that is there now was made anew since the look before, and is no obstacle. */
const isInTheWay = (path: string): boolean => Fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === false

/** How often one directory is tried while other processes make and remove it or the directory above it. */
const maxTries = 8

/**
 * Makes a directory and those above it. Returns the first directory that it made, or `undefined` where all were there. Throws the
 * system's error.
 */
export const makeDirectories = (path: string, mode?: number): string | undefined => {
  let first: string | undefined
  for (let left = maxTries; ; left--) {
    try {
      Fs.mkdirSync(path, mode)
      return first ?? path
    } catch (error) {
      const code = codeOf(error)
      if (code !== "ENOENT" && isDirectory(path)) return first
      const above = dirname(path)
      if (left === 0 || (code === "ENOENT" ? above === path : code !== "EEXIST" || isInTheWay(path))) throw error
      if (code === "ENOENT" && !isDirectory(above)) first = makeDirectories(above, mode) ?? first
    }
  }
}
