/**
 * Creates directories with their parents.
 *
 * Node's recursive mkdir has two defects. The call loops forever, uninterruptibly, in a directory in which no entry can be
 * created, such as /proc. The call fails with ENOENT if another process removes the directory at the same time.
 */
import { dirname, Fs } from "./node.ts"
import { codeOf } from "../model/realms.ts"

const isDirectory = (path: string): boolean => Fs.statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const isBlocked = (path: string): boolean => Fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === false

const maxTries = 8

/**
 * Creates a directory and its parents. Returns the first directory that it created, or `undefined` if all existed.
 *
 * Throws system errors.
 */
export const makeDirectories = (path: string, mode?: number): string | undefined => {
  let firstCreated: string | undefined
  for (let attemptsLeft = maxTries; ; attemptsLeft--) {
    try {
      Fs.mkdirSync(path, mode)
      return firstCreated ?? path
    } catch (error) {
      const code = codeOf(error)
      if (code !== "ENOENT" && isDirectory(path)) return firstCreated
      const above = dirname(path)
      if (attemptsLeft === 0 || (code === "ENOENT" ? above === path : code !== "EEXIST" || isBlocked(path))) throw error
      if (code === "ENOENT" && !isDirectory(above)) firstCreated = makeDirectories(above, mode) ?? firstCreated
    }
  }
}
