/**
 * Finds and creates private directories of a user. This module imports nothing large, because the command line loads it first.
 */
import type * as NodeFs from "node:fs"
import type * as NodePath from "node:path"
import { codeOf } from "../model/realms.ts"

const paths = (): typeof NodePath => process.getBuiltinModule("node:path")

export interface Machine {
  readonly platform: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly home: string
}

const absoluteOrNone = (path: string | undefined, { isAbsolute }: NodePath.PlatformPath): string | undefined =>
  path !== undefined && isAbsolute(path) ? path : undefined

/**
 * Returns the directory for the state of a user's programs, or `undefined` if the system defines none.
 *
 * A relative path in XDG_STATE_HOME is ignored (https://specifications.freedesktop.org/basedir-spec).
 */
export const stateDirectory = ({ environment, home, platform }: Machine): string | undefined => {
  const { posix, win32 } = paths()
  if (platform === "win32") return absoluteOrNone(environment["LOCALAPPDATA"], win32)
  const configuredDirectory = absoluteOrNone(environment["XDG_STATE_HOME"], posix)
  if (configuredDirectory !== undefined || absoluteOrNone(home, posix) === undefined) return configuredDirectory
  return posix.join(home, platform === "darwin" ? "Library/Application Support" : ".local/state")
}

const fs = (): typeof NodeFs => process.getBuiltinModule("node:fs")

/**
 * The error codes of exhausted descriptors and memory. Such an error says nothing about the file, so the caller must
 * not use another directory because of it.
 */
const transientCodes: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE", "ENOMEM"])

export const throwIfTransient = (error: unknown): void => {
  if (transientCodes.has(codeOf(error))) throw error
}

/**
 * Tests whether only this user can access a file or directory. Returns true on Windows, which has no permission bits;
 * users' directories are private there.
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
