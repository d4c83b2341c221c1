/**
 * Compares host directories by their real paths, component by component, so that a symlink or a common prefix
 * (`/srv/app`, `/srv/app-old`) is never mistaken for containment.
 *
 * Data that this library keeps beside a workspace, such as a snapshot store, must lie outside all open roots. Otherwise
 * users of a workspace could reach the data.
 */
import { dirname, Fs, isAbsolute, join, parse, sep } from "./node.ts"
import type { Fault } from "../model/FsError.ts"
import { codeOf } from "../model/realms.ts"

const isMissing = (error: unknown): boolean => codeOf(error) === "ENOENT"

/** Returns the real path. Node resolves the symlinks one by one if the system call fails, as on some Windows disks. */
const resolveReal = (path: string): string => {
  try {
    return Fs.realpathSync.native(path)
  } catch (error) {
    if (isMissing(error)) throw error
    return Fs.realpathSync(path)
  }
}

const hasParentSegment = (path: string): boolean => path.split(sep).includes("..")

/**
 * Returns the real path. The path need not exist.
 *
 * Returns `undefined` for a path that is relative, contains "..", or leads through a broken symlink.
 */
export const resolvePath = (path: string): string | undefined => {
  if (!isAbsolute(path) || path.includes("\0") || hasParentSegment(path)) return undefined
  const missing: Array<string> = []
  for (let at = join(path, "."); ; at = dirname(at)) {
    try {
      return join(resolveReal(at), ...missing)
    } catch (error) {
      if (!isMissing(error) || Fs.lstatSync(at, { throwIfNoEntry: false }) !== undefined || dirname(at) === at) {
        return undefined
      }
      missing.unshift(at.slice(dirname(at).length).replace(sep, ""))
    }
  }
}

export const isInside = (base: string, path: string): boolean =>
  path === base || path.startsWith(base.endsWith(sep) ? base : base + sep)

const maxLinks = 40

const readLinkText = (path: string): string | undefined => {
  try {
    return Fs.readlinkSync(path)
  } catch {
    return undefined
  }
}

const namesOf = (path: string): ReadonlyArray<string> => path.split(sep).filter((name) => name !== "" && name !== ".")

/**
 * Tests whether an absolute path lies in one of the resolved directories or leads through one of them. Users of this
 * directory then control the target of the path.
 *
 * A broken symlink is followed to its target.
 */
export const leadsInto = (path: string, directories: ReadonlyArray<string>): boolean => {
  const isIn = (at: string): boolean => directories.some((directory) => isInside(directory, at))
  // Only the system can resolve names in another case and the short names of Windows.
  const real = resolvePath(path)
  if (real !== undefined && isIn(real)) return true
  let at = parse(path).root
  let left = namesOf(path.slice(at.length))
  let links = 0
  if (isIn(at)) return true
  while (left.length > 0) {
    const [name, ...rest] = left as [string, ...Array<string>]
    const next = name === ".." ? dirname(at) : join(at, name)
    if (isIn(next)) return true
    const text = readLinkText(next)
    left = rest
    if (text === undefined) {
      at = next
      continue
    }
    if (++links > maxLinks) return true
    if (isAbsolute(text)) at = parse(text).root
    left = [...namesOf(isAbsolute(text) ? text.slice(at.length) : text), ...rest]
  }
  return false
}

export const resolveAllowed = (path: string, bases: ReadonlyArray<string>): string | undefined => {
  const real = resolvePath(path)
  if (real === undefined) return undefined
  return bases.some((base) => {
    const top = resolvePath(base)
    return top !== undefined && isInside(top, real)
  })
    ? real
    : undefined
}

interface Register {
  readonly directories: Iterable<string>
  readonly add: (directory: string) => () => void
}

const makeRegister = (): Register => {
  const counts = new Map<string, number>()
  return {
    directories: { [Symbol.iterator]: () => counts.keys() },
    add: (directory) => {
      const real = resolveReal(directory)
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

/** Registers an existing directory as the root of a filesystem until the returned function is called. */
export const register = roots.add

export const listOpen = (): ReadonlyArray<string> => [...roots.directories]

export const registerStore = stores.add

const isInsideAny = (bases: Iterable<string>, path: string): boolean => {
  for (const base of bases) if (isInside(base, path)) return true
  return false
}

/** Returns the fault for an invalid path or a directory that a workspace could reach. `argument` names the parameter. */
export const reachabilityFault = (argument: string, directory: string): Fault | undefined => {
  const real = resolvePath(directory)
  const detail =
    real === undefined
      ? 'it must be an absolute path without ".." and without broken symbolic links'
      : leadsInto(directory, listOpen())
        ? "it lies inside the root of an open filesystem, whose users could reach it; choose a directory outside"
        : undefined
  return detail === undefined ? undefined : { _tag: "InvalidArgument", argument, detail }
}

const tryResolveReal = (directory: string): string | undefined => {
  try {
    return resolveReal(directory)
  } catch {
    return undefined
  }
}

/**
 * Tests whether a directory is a store of this library, such as a snapshot store, or lies in a store. No filesystem may
 * be opened in this directory.
 *
 * A directory that contains a store may be opened.
 */
export const isInStore = (directory: string): boolean => {
  const real = resolvePath(directory) ?? tryResolveReal(directory)
  return real !== undefined && isInsideAny(stores.directories, real)
}
