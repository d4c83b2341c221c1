/**
 * Opens the root of a Windows host, and maps paths to it. If the path of the root later leads to another directory, calls
 * fail with Unavailable.
 */
import { filesystemClosed, rootGone } from "../faults.ts"
import { accessDenied, is as isFault, notADirectory, notFound } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, parent, root } from "../../model/FsPath.ts"
import { codeOf } from "../../model/realms.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { WindowsHostOptions } from "../hostRoot.ts"
import type { WindowsDisk, WindowsStats } from "./disk.ts"
import { diskPathOf, isWithinRoot, parseRoot, toNative, type WindowsRoot } from "./names.ts"

// Maps paths of the port to paths of a Windows disk, confined to the root.
//
// A call first checks whether Windows allows the path, and then each component of the directory, top down. Finally the
// call asks the system for the final name of the directory. No alias, junction or mounted volume can hide this name.
// After a file is opened, it is checked again.
//
// Another process that may write inside the root can still replace a directory by a junction between its check and its
// use. So the level is `best-effort`. Node has no call on Windows that would allow a higher level.
//
// The system always gets paths with the prefix `\\?\`, so that it interprets no name. Without `useLongPaths`, paths stay
// short enough for programs that do not use the prefix.

export interface WindowsDirectory {
  readonly directory: string
  readonly stats: WindowsStats
  readonly at: (name: string) => string
  readonly isSame: () => boolean
}

export interface Walker {
  readonly disk: WindowsDisk
  readonly root: WindowsRoot
  /** The names of the root: the path that the system reports, and the path in the options. */
  readonly names: ReadonlyArray<WindowsRoot>
  /** Returns the system path of a path. Returns InvalidPath or PathTooLong without touching the disk. */
  readonly native: (path: FsPath, makesDirectory?: boolean) => string | Fault
  /**
   * Opens a directory. Returns NotFound if the directory is missing, and NotADirectory if a component is a file or link. Returns
   * AccessDenied `escape` if its final name is outside the root, and Unavailable if the root is gone or the filesystem is closed.
   * For an invalid name, returns the fault of `diskPathOf`.
   */
  readonly directory: (path: FsPath) => WindowsDirectory | Fault
  readonly look: (at: string) => WindowsStats | undefined
  /** Tests whether a name still leads to the open file, and the directory of the name is unchanged. */
  readonly holds: (descriptor: number, place: WindowsDirectory, at: string) => boolean
  /** Returns the name in its spelling on the disk, or as given if the system does not report it. */
  readonly nameOf: (place: WindowsDirectory, name: string) => string
  readonly close: () => void
}

const escape = accessDenied("escape")

const lstatOptions = { bigint: true, throwIfNoEntry: false } as const

export const isSameFile = (self: Pick<WindowsStats, "dev" | "ino">, that: Pick<WindowsStats, "dev" | "ino">): boolean =>
  self.ino === that.ino && self.dev === that.dev

const lookAt = (disk: WindowsDisk, at: string): WindowsStats | undefined => {
  try {
    return disk.lstatSync(at, lstatOptions)
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return undefined
    throw error
  }
}

const below = (directory: string, name: string): string =>
  directory.endsWith("\\") ? directory + name : `${directory}\\${name}`

/**
 * The error codes of disks that report no final name, or none for a long path. On such disks, only the check of each
 * component applies.
 */
const noFinalNameCodes = new Set(["EISDIR", "EINVAL", "ENOSYS", "ENOTSUP", "UNKNOWN"])

const finalNameOf = (disk: WindowsDisk, at: string): string | undefined => {
  try {
    return disk.realpathSync.native(at)
  } catch (error) {
    if (noFinalNameCodes.has(codeOf(error) ?? "")) return undefined
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

export const isSameName = (self: string, that: string): boolean => self === that || self.toUpperCase() === that.toUpperCase()

/**
 * Creates the walker of a root with the stats `rootIdentity`. `final` is the path of the root as the system reports it.
 */
const make = (
  disk: WindowsDisk,
  top: WindowsRoot,
  rootIdentity: WindowsStats,
  options: { readonly final: WindowsRoot | undefined; readonly given: WindowsRoot; readonly useLongPaths: boolean }
): Walker => {
  const { final, given, useLongPaths } = options
  let isClosed = false

  const native: Walker["native"] = (path, makesDirectory) => {
    const names = diskPathOf(path)
    if (isFault(names)) return names
    // A name with a key can be used only with the prefix, so the limit of paths without the prefix does not apply.
    if (!useLongPaths && names === path) {
      const plain = toNative(top, path, { useLongPaths: false, makesDirectory })
      if (isFault(plain)) return plain
    }
    return toNative(top, names, { useLongPaths: true, makesDirectory })
  }

  const look: Walker["look"] = (at) => lookAt(disk, at)

  const isInside = (at: string): boolean => {
    const finalName = final && finalNameOf(disk, at)
    return final === undefined || finalName === undefined || isWithinRoot(final, finalName)
  }

  const place = (directory: string, stats: WindowsStats): WindowsDirectory => ({
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
    if (isClosed) return filesystemClosed
    const stats = look(verbatimRoot)
    return stats !== undefined && stats.isDirectory() && isSameFile(stats, rootIdentity) ? stats : rootGone
  }

  const directory: Walker["directory"] = (path) => {
    const names = diskPathOf(path)
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
    names: [top, given],
    native,
    directory,
    look,
    holds: (descriptor, place, at) => {
      // Check the directory first. If a junction stood in its place only during the open, the directory is the same
      // again. Then the name in it leads to another file than the open one.
      if (!place.isSame()) return false
      const found = look(at)
      return found !== undefined && isSameFile(found, disk.fstatSync(descriptor, { bigint: true }))
    },
    nameOf: (place, name) => {
      const finalName = quietly(() => disk.realpathSync.native(place.at(name)))
      const found = finalName?.slice(finalName.lastIndexOf("\\") + 1)
      if (found !== undefined && isSameName(found, name)) return found
      // The system reports the final name of a link's target, so find the name of the link in a listing.
      const entries = quietly(() => disk.readdirSync(place.directory, { withFileTypes: true }))
      return entries?.find((entry) => isSameName(entry.name, name))?.name ?? name
    },
    close: () => {
      isClosed = true
    }
  }
}

export interface PathEntry {
  readonly place: WindowsDirectory
  readonly name: string
  readonly at: string
  readonly stats: WindowsStats | undefined
}

export const inspectPath = (walker: Walker, path: FsPath, makesDirectory = false): PathEntry | Fault => {
  const at = walker.native(path, makesDirectory)
  if (isFault(at)) return at
  const place = walker.directory(parent(path))
  if (isFault(place)) return place
  return { place, name: at.slice(at.lastIndexOf("\\") + 1), at, stats: walker.look(at) }
}

export const removeLeftover = ({ disk }: Walker, at: string, name: string): boolean => {
  if (!TemporaryNames.isLeftover(name)) return false
  try {
    const found = lookAt(disk, at)
    if (found === undefined) return true
    if (found.isDirectory()) return false
    disk.unlinkSync(at)
    return true
  } catch {
    // Ignore the error, because the next listing of the directory tries again.
    return false
  }
}

const verbatim = (top: WindowsRoot): string | Fault => toNative(top, root, { useLongPaths: true })

const makeRoot = (disk: WindowsDisk, top: WindowsRoot): void => {
  const volume = verbatim({ ...top, names: [], path: top.kind === "drive" ? `${top.volume}\\` : top.volume }) as string
  let at = volume
  for (const name of top.names) {
    at = at.endsWith("\\") ? at + name : `${at}\\${name}`
    try {
      disk.mkdirSync(at)
    } catch (error) {
      // If the directory exists, some disks report a lack of permission instead of EEXIST.
      if (codeOf(error) !== "EEXIST" && lookAt(disk, at) === undefined) throw error
    }
  }
}

/**
 * Opens the root. Returns a fault of `parseRoot` for an invalid path, NotFound for a missing directory, and
 * NotADirectory for another entry.
 */
export const open = (
  disk: WindowsDisk,
  options: Pick<WindowsHostOptions, "root" | "createRoot" | "useLongPaths">
): Walker | Fault => {
  const { createRoot = false, useLongPaths = true } = options
  const given = parseRoot(options.root)
  if (isFault(given)) return given
  const at = verbatim(given)
  if (isFault(at)) return at
  if (createRoot && lookAt(disk, at) === undefined) makeRoot(disk, given)
  if (lookAt(disk, at) === undefined) return notFound
  const finalName = finalNameOf(disk, at)
  const final = finalName === undefined ? undefined : parseRoot(finalName)
  if (isFault(final)) return final
  const top = final ?? given
  const stats = lookAt(disk, verbatim(top) as string)
  if (stats === undefined) return notFound
  return stats.isDirectory() ? make(disk, top, stats, { final, given, useLongPaths }) : notADirectory
}
