/**
 * From a path to a place on a Windows disk, and nowhere else. A call first asks the path alone whether Windows could have it, then looks
 * at each component of its directory, top down, and at last asks the system for the final name of that directory, which no alias, no
 * junction and no mounted volume can disguise. What was opened is looked at again afterwards.
 *
 * Between the look and the use another process that may write inside the root can still put a junction in the place of a directory: that
 * is `best-effort`, and Windows has no call for Node by which it could be more.
 *
 * The system is always given paths behind `\\?\`, so that it reads no name as anything else than it says. Node does so by itself; without
 * `useLongPaths` we keep to lengths that programs which do not can still open.
 */
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, parent, root } from "../../../model/FsPath.ts"
import { isFault } from "../attempt.ts"
import { closed, maxLooks, notADirectory, notFound, unstable } from "../confined.ts"
import { codeOf } from "../../../model/systemError.ts"
import type { WindowsDisk, WindowsStats } from "./disk.ts"
import { spelt } from "./keys.ts"
import { isWithinRoot, toNative, type WindowsRoot } from "./paths.ts"

/** A directory inside the root that has been reached. */
export interface Place {
  /** Its path on the disk. */
  readonly directory: string
  readonly stats: WindowsStats
  /** The path on the disk of a name in it. */
  readonly at: (name: string) => string
  /** Whether that path still leads to it. */
  readonly isSame: () => boolean
}

export interface Walker {
  readonly disk: WindowsDisk
  readonly root: WindowsRoot
  /** The path on the disk; InvalidPath or PathTooLong, before the disk is touched. */
  readonly native: (path: FsPath, makesDirectory?: boolean) => string | Fault
  /** NotFound where nothing is, NotADirectory where the way leads through a file or a link, Unavailable when the root is gone. */
  readonly directory: (path: FsPath) => Place | Fault
  /** Of the name itself, never of what a link leads to. */
  readonly look: (at: string) => WindowsStats | undefined
  /** Whether the name leads to the open file, and its directory is where it was. */
  readonly holds: (descriptor: number, place: Place, at: string) => boolean
  /** The name on the disk in its own case; as it is given where the system does not say. */
  readonly nameOf: (place: Place, name: string) => string
  readonly close: () => void
}

const gone: Fault = { _tag: "Unavailable", detail: "the root directory has been moved, replaced or removed" }
const escape: Fault = { _tag: "AccessDenied", why: "escape" }

const asked = { bigint: true, throwIfNoEntry: false } as const

export const isSameFile = (self: Pick<WindowsStats, "dev" | "ino">, that: Pick<WindowsStats, "dev" | "ino">): boolean =>
  self.ino === that.ino && self.dev === that.dev

export const lookAt = (disk: WindowsDisk, at: string): WindowsStats | undefined => {
  try {
    return disk.lstatSync(at, asked)
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return undefined
    throw error
  }
}

export const below = (directory: string, name: string): string =>
  directory.endsWith("\\") ? directory + name : `${directory}\\${name}`

/** What is said where no final name can be told, of any directory or of one with a long path: then the look at each component has to do. */
const untold = new Set(["EISDIR", "EINVAL", "ENOSYS", "ENOTSUP", "UNKNOWN"])

/** The name by which the system itself knows what a path leads to; `undefined` where it tells none. */
export const finalNameOf = (disk: WindowsDisk, at: string): string | undefined => {
  try {
    return disk.realpathSync.native(at)
  } catch (error) {
    if (untold.has(codeOf(error) ?? "")) return undefined
    throw error
  }
}

const quietly = <A>(run: () => A): A | undefined => {
  try {
    return run()
  } catch {
    return undefined
  }
}

/** As Windows compares them: by upper case. */
export const isSameName = (self: string, that: string): boolean => self === that || self.toUpperCase() === that.toUpperCase()

/** `top` is a directory, with `pinned` for its stats, and `final` the form of its path in which the system gives final names. */
export const make = (
  disk: WindowsDisk,
  top: WindowsRoot,
  pinned: WindowsStats,
  options: { readonly final: WindowsRoot | undefined; readonly useLongPaths: boolean }
): Walker => {
  const { final, useLongPaths } = options
  let isClosed = false

  const native: Walker["native"] = (path, makesDirectory) => {
    const names = spelt(path)
    if (isFault(names)) return names
    // Names that a key stands for can be said in no other way, whatever their length.
    if (!useLongPaths && names === path) {
      const plain = toNative(top, path, { useLongPaths: false, makesDirectory })
      if (isFault(plain)) return plain
    }
    return toNative(top, names, { useLongPaths: true, makesDirectory })
  }

  const look: Walker["look"] = (at) => lookAt(disk, at)

  const isInside = (at: string): boolean => {
    const told = final && finalNameOf(disk, at)
    return final === undefined || told === undefined || isWithinRoot(final, told)
  }

  const place = (directory: string, stats: WindowsStats): Place => ({
    directory,
    stats,
    at: (name) => below(directory, name),
    isSame: () => {
      const now = look(directory)
      return now !== undefined && isSameFile(now, stats) && isInside(directory)
    }
  })

  const verbatimRoot = toNative(top, root, { useLongPaths: true }) as string

  const rootStats = (): WindowsStats | Fault => {
    if (isClosed) return closed
    const stats = look(verbatimRoot)
    return stats !== undefined && stats.isDirectory() && isSameFile(stats, pinned) ? stats : gone
  }

  const directory: Walker["directory"] = (path) => {
    const names = spelt(path)
    if (isFault(names)) return names
    let stats: WindowsStats | Fault | undefined = rootStats()
    if (isFault(stats) || path === root) return isFault(stats) ? stats : place(verbatimRoot, stats)
    let at = verbatimRoot
    for (const name of names.split("/")) {
      at = below(at, name)
      stats = look(at)
      if (stats === undefined) return notFound
      if (!stats.isDirectory()) return notADirectory
    }
    return isInside(at) ? place(at, stats as WindowsStats) : escape
  }

  return {
    disk,
    root: top,
    native,
    directory,
    look,
    holds: (descriptor, place, at) => {
      // The directory first: whoever had a junction in its place while the file was opened would have to put it there once more.
      if (!place.isSame()) return false
      const found = look(at)
      return found !== undefined && isSameFile(found, disk.fstatSync(descriptor, { bigint: true }))
    },
    nameOf: (place, name) => {
      const told = quietly(() => disk.realpathSync.native(place.at(name)))
      const found = told?.slice(told.lastIndexOf("\\") + 1)
      if (found !== undefined && isSameName(found, name)) return found
      // Of a link the system tells what it leads to.
      const entries = quietly(() => disk.readdirSync(place.directory, { withFileTypes: true }))
      return entries?.find((entry) => isSameName(entry.name, name))?.name ?? name
    },
    close: () => {
      isClosed = true
    }
  }
}

/** A name in a place. */
export interface Spot {
  readonly place: Place
  readonly name: string
  readonly at: string
  readonly stats: WindowsStats | undefined
}

/** Where the path is, and what is there; its directory must be one. */
export const spotOf = (walker: Walker, path: FsPath, makesDirectory = false): Spot | Fault => {
  const at = walker.native(path, makesDirectory)
  if (isFault(at)) return at
  const place = walker.directory(parent(path))
  if (isFault(place)) return place
  return { place, name: at.slice(at.lastIndexOf("\\") + 1), at, stats: walker.look(at) }
}

/** Again where something else has taken the place of what was looked at; `undefined` says so. */
export const stably = <A>(run: () => A | Fault | undefined): A | Fault => {
  for (let looks = 0; looks < maxLooks; looks++) {
    const found = run()
    if (found !== undefined) return found
  }
  return unstable
}
