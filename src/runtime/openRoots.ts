/**
 * Directories of the machine compared by what they really are: by the path to which all links have been resolved, component by
 * component, so that neither a link nor a common beginning of two names (`/srv/app`, `/srv/app-old`) is taken for being inside. What
 * this library keeps beside a workspace, such as the store of its snapshots, must lie inside none of the roots that are open, where
 * whoever works in them could reach it.
 */
import { dirname, Fs, isAbsolute, join, parse, sep } from "./node.ts"
import type { Fault } from "../model/FsError.ts"

const isMissing = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "ENOENT"

/** Some disks of Windows tell no final names, or none of long paths; there the links on the way are resolved one by one. */
const realOf = (path: string): string => {
  try {
    return Fs.realpathSync.native(path)
  } catch (error) {
    if (isMissing(error)) throw error
    return Fs.realpathSync(path)
  }
}

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
      return join(realOf(at), ...missing)
    } catch (error) {
      if (!isMissing(error) || Fs.lstatSync(at, { throwIfNoEntry: false }) !== undefined || dirname(at) === at) {
        return undefined
      }
      missing.unshift(at.slice(dirname(at).length).replace(sep, ""))
    }
  }
}

/** Whether a resolved path is the base, which is resolved too, or below it. */
export const isInside = (base: string, path: string): boolean =>
  path === base || path.startsWith(base.endsWith(sep) ? base : base + sep)

/** As many links as Linux follows. */
const mostLinks = 40

const textOf = (path: string): string | undefined => {
  try {
    return Fs.readlinkSync(path)
  } catch {
    return undefined
  }
}

const namesOf = (path: string): ReadonlyArray<string> => path.split(sep).filter((name) => name !== "" && name !== ".")

/**
 * Whether an absolute path lies in one of the directories, which are resolved, or has a link on its way that does: who works there decides
 * where such a path leads. A link that leads nowhere is followed to where a file would be made.
 */
export const leadsInto = (path: string, directories: ReadonlyArray<string>): boolean => {
  const isIn = (at: string): boolean => directories.some((directory) => isInside(directory, at))
  // Only the system knows a name in another case, or a short one of Windows, for what it is.
  const real = resolved(path)
  if (real !== undefined && isIn(real)) return true
  let at = parse(path).root
  let left = namesOf(path.slice(at.length))
  let links = 0
  if (isIn(at)) return true
  while (left.length > 0) {
    const [name, ...rest] = left as [string, ...Array<string>]
    const next = name === ".." ? dirname(at) : join(at, name)
    if (isIn(next)) return true
    const text = textOf(next)
    left = rest
    if (text === undefined) {
      at = next
      continue
    }
    if (++links > mostLinks) return true
    if (isAbsolute(text)) at = parse(text).root
    left = [...namesOf(isAbsolute(text) ? text.slice(at.length) : text), ...rest]
  }
  return false
}

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

/** Resolved directories, each as often as it is in use. */
interface Register {
  readonly directories: Iterable<string>
  /** Until what it answers is called, the directory, which is there, is in it. */
  readonly add: (directory: string) => () => void
}

const makeRegister = (): Register => {
  const counts = new Map<string, number>()
  return {
    directories: { [Symbol.iterator]: () => counts.keys() },
    add: (directory) => {
      const real = realOf(directory)
      counts.set(real, (counts.get(real) ?? 0) + 1)
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        const left = counts.get(real)! - 1
        if (left === 0) counts.delete(real)
        else counts.set(real, left)
      }
    }
  }
}

const roots = makeRegister()
const stores = makeRegister()

/** Until what it answers is called, the directory, which is there, is the root of a filesystem. */
export const register = roots.add

/** The roots of the filesystems that are open, resolved. */
export const open = (): ReadonlyArray<string> => [...roots.directories]

/** The same for what no workspace may reach. */
export const registerStore = stores.add

const isInsideAny = (bases: Iterable<string>, path: string): boolean => {
  for (const base of bases) if (isInside(base, path)) return true
  return false
}

/** Why a directory may not hold what no workspace may reach; `undefined` where it may. `argument` is what the caller calls it. */
export const refusal = (argument: string, directory: string): Fault | undefined => {
  const real = resolved(directory)
  const detail =
    real === undefined
      ? "it must be an absolute path that leads somewhere"
      : leadsInto(directory, open())
        ? "it lies inside the root of a filesystem, where its users could reach it"
        : undefined
  return detail === undefined ? undefined : { _tag: "InvalidArgument", argument, detail }
}

const realIfAny = (directory: string): string | undefined => {
  try {
    return realOf(directory)
  } catch {
    return undefined
  }
}

/**
 * Whether a directory is or lies in a store, where nobody may work. What holds a store may be opened: the store was there first, and
 * whoever opens the other knows what is in it.
 */
export const isInStore = (directory: string): boolean => {
  const real = resolved(directory) ?? realIfAny(directory)
  return real !== undefined && isInsideAny(stores.directories, real)
}
