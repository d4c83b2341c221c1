/**
 * A directory of the machine that belongs to this user alone. The module loads nothing, since the command line asks for it before it
 * loads anything large.
 */
import type * as NodeFs from "node:fs"

// Looked up when they are needed: a program that works in memory alone loads none of them.
const fs = (): typeof NodeFs => process.getBuiltinModule("node:fs")

/** Errors that say nothing about a file: the next attempt may succeed, so nothing else may take its place. */
const passing: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE", "ENOMEM"])

/** Throws the error of the system if it says nothing about the file. */
export const throwPassing = (error: unknown): void => {
  if (error instanceof Error && "code" in error && passing.has(error.code)) throw error
}

/**
 * Returns whether nobody but this user can reach a file or directory. Windows has no such bits; the directories of a user are closed to
 * others there by inheritance.
 */
export const isPrivate = (stats: NodeFs.Stats): boolean =>
  process.geteuid === undefined || (stats.uid === process.geteuid() && (stats.mode & 0o077) === 0)

/** Makes the directory where it is missing, and returns whether it belongs to this user alone. Throws a passing error. */
export const makePrivateDirectory = (path: string): boolean => {
  try {
    fs().mkdirSync(path, { recursive: true, mode: 0o700 })
    const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = fs().constants
    const descriptor = fs().openSync(path, O_RDONLY | (O_DIRECTORY ?? 0) | (O_NOFOLLOW ?? 0))
    try {
      let stats = fs().fstatSync(descriptor)
      if (process.geteuid !== undefined && stats.uid === process.geteuid() && (stats.mode & 0o077) !== 0) {
        fs().fchmodSync(descriptor, 0o700)
        stats = fs().fstatSync(descriptor)
      }
      return isPrivate(stats)
    } finally {
      fs().closeSync(descriptor)
    }
  } catch (error) {
    throwPassing(error)
    return false
  }
}
