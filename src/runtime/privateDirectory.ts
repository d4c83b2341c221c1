/** Private directories of this user. The module imports nothing large, because the command line loads it first. */
import type * as NodeFs from "node:fs"
import { codeOf } from "../model/systemError.ts"

const fs = (): typeof NodeFs => process.getBuiltinModule("node:fs")

/** Temporary errors, which say nothing about the file. The caller must not fall back to another place. */
const transientCodes: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE", "ENOMEM"])

export const throwIfTransient = (error: unknown): void => {
  if (transientCodes.has(codeOf(error))) throw error
}

/**
 * Tests whether only this user can access a file or directory. Windows has no such bits; users' directories are private
 * there.
 */
export const isPrivate = (stats: NodeFs.Stats): boolean =>
  process.geteuid === undefined || (stats.uid === process.geteuid() && (stats.mode & 0o077) === 0)

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
    throwIfTransient(error)
    return false
  }
}
