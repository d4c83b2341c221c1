/**
 * Private directories of this user. The module imports nothing large, because the command line uses it before it loads
 * large modules.
 */
import type * as NodeFs from "node:fs"
import { codeOf } from "../model/systemError.ts"

// Loaded at the first use, so that a program that works only in memory loads none of them.
const fs = (): typeof NodeFs => process.getBuiltinModule("node:fs")

/**
 * Temporary errors that say nothing about a file: a later attempt may succeed, so a caller must not fall back to
 * another place.
 */
const passing: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE", "ENOMEM"])

/** Throws the error if it is temporary and says nothing about the file. */
export const throwPassing = (error: unknown): void => {
  if (passing.has(codeOf(error))) throw error
}

/**
 * Tests whether only this user can access a file or directory. Windows has no such bits; there, a user's directories
 * are private by inheritance.
 */
export const isPrivate = (stats: NodeFs.Stats): boolean =>
  process.geteuid === undefined || (stats.uid === process.geteuid() && (stats.mode & 0o077) === 0)

/** Creates a missing directory and returns whether it belongs to this user alone. Throws temporary errors. */
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
