/**
 * Directories of the machine compared by what they really are: by the path to which all links have been resolved, component by
 * component, so that neither a link nor a common beginning of two names (`/srv/app`, `/srv/app-old`) is taken for being inside. What
 * this library keeps beside a workspace, such as the store of its snapshots, must lie inside none of the roots that are open, where
 * whoever works in them could reach it.
 */
import * as Fs from "node:fs"
import { dirname, isAbsolute, join, sep } from "node:path"
import type { Fault } from "../../model/FsError.ts"
import { codeOf } from "./errno.ts"

const isClimbing = (path: string): boolean => path.split(sep).includes("..")

/**
 * Where a path leads, or would lead if it were made: `undefined` where that cannot be said, because it is not absolute, climbs, or has
 * a link on its way that leads nowhere.
 */
export const resolved = (path: string): string | undefined => {
  if (!isAbsolute(path) || path.includes("\0") || isClimbing(path)) return undefined
  const missing: Array<string> = []
  for (let at = join(path, "."); ; at = dirname(at)) {
    try {
      return join(Fs.realpathSync.native(at), ...missing)
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || Fs.lstatSync(at, { throwIfNoEntry: false }) !== undefined || dirname(at) === at) {
        return undefined
      }
      missing.unshift(at.slice(dirname(at).length).replace(sep, ""))
    }
  }
}

/** Whether a resolved path is the base, which is resolved too, or below it. */
export const isInside = (base: string, path: string): boolean =>
  path === base || path.startsWith(base.endsWith(sep) ? base : base + sep)

/** The path resolved, where it lies in one of the allowed directories; with none allowed, none does. */
export const allowed = (path: string, bases: ReadonlyArray<string>): string | undefined => {
  const real = resolved(path)
  if (real === undefined) return undefined
  return bases.some((base) => {
    const top = resolved(base)
    return top !== undefined && isInside(top, real)
  })
    ? real
    : undefined
}

/** How many filesystems have each directory as their root. */
const open = new Map<string, number>()

/** Until it is called, the directory is the root of a filesystem. */
export const register = (root: string): (() => void) => {
  const real = Fs.realpathSync.native(root)
  open.set(real, (open.get(real) ?? 0) + 1)
  return () => {
    const left = open.get(real)! - 1
    if (left === 0) open.delete(real)
    else open.set(real, left)
  }
}

/** Why a directory may not hold what no workspace may reach; `undefined` where it may. `argument` is what the caller calls it. */
export const refusal = (argument: string, directory: string): Fault | undefined => {
  const real = resolved(directory)
  if (real === undefined)
    return { _tag: "InvalidArgument", argument, detail: "it must be an absolute path that leads somewhere" }
  for (const root of open.keys()) {
    if (isInside(root, real)) {
      return {
        _tag: "InvalidArgument",
        argument,
        detail: "it lies inside the root of a filesystem, where its users could reach it"
      }
    }
  }
  return undefined
}
