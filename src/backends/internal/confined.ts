/**
 * From a path to a place on the host, and nowhere else: the root is pinned once, by its real path and its inode, and every call looks
 * at each component of its directory, top down, before it joins a name to it. The first that is a link ends the way, so nothing
 * that a link leads to is ever touched, and what is outside cannot be learnt from an error. What was opened is checked again by
 * asking the kernel where it is.
 *
 * Between the look and the use another process that may write inside the root can still swap a directory for a link: that is
 * `best-effort`. A walk through directory descriptors closes this window, and only this module would change for it.
 */
import * as Fs from "node:fs"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath, root } from "../../model/FsPath.ts"
import { isFault } from "./attempt.ts"
import { codeOf } from "./errno.ts"
import { below, fromBytes, type HostPath, isSamePath } from "./hostNames.ts"

/** A directory inside the root that has been looked at. To be released when the calls that use its paths have ended. */
export interface Place {
  /** Its own path on the host. */
  readonly directory: HostPath
  readonly stats: Fs.Stats
  /** The path on the host of a name in it. */
  readonly at: (segment: string) => HostPath
  /** A directory in it. */
  readonly enter: (segment: string) => Place | Fault
  /** Whether its path still leads to it: what was read by that path meanwhile was its. */
  readonly isSame: () => boolean
  readonly release: () => void
}

export interface Confined {
  readonly caseSensitive: boolean
  /** NotFound where nothing is, NotADirectory where the way leads through a file or a link, Unavailable when the root is gone. */
  readonly directory: (path: FsPath) => Place | Fault
  /** Whether an open file is the one of that name, here. One that has been removed or replaced since it was opened still is. */
  readonly holds: (descriptor: number, place: Place, segment: string) => boolean
  /** Removes a file that was made by this name but is not where it should be, wherever it is; never another one. */
  readonly withdraw: (descriptor: number, place: Place, segment: string) => void
  /** A path to an open file, whatever becomes of its name; left out where the system has none. */
  readonly alias?: (descriptor: number) => string
  readonly close: () => void
}

const notFound: Fault = { _tag: "NotFound" }
const notADirectory: Fault = { _tag: "NotADirectory" }
const gone: Fault = { _tag: "Unavailable", detail: "the root directory has been moved, replaced or removed" }
const closed: Fault = { _tag: "Unavailable", detail: "this filesystem has been closed" }

/** How often a call looks again when what it found changes under its hands. */
export const maxLooks = 8

export const unstable: Fault = { _tag: "IoError", detail: "the directories on the way keep changing" }

const quietly = { throwIfNoEntry: false } as const

/** Of the name itself, never of what a link leads to. */
export const look = (at: HostPath): Fs.Stats | undefined => {
  try {
    return Fs.lstatSync(at, quietly)
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return undefined
    throw error
  }
}

export const isSameFile = (self: Fs.Stats, that: Fs.Stats): boolean => self.ino === that.ino && self.dev === that.dev

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = Fs.constants

/** For holding a directory that may be entered but not listed; only Linux has it, and Node does not name it. */
export const O_PATH = 0o10000000
const holding = (process.platform === "linux" ? O_PATH : O_RDONLY | O_NONBLOCK) | O_DIRECTORY | O_NOFOLLOW

/**
 * Pins the root, which exists. `descriptors` is the directory in which the kernel shows where each open file is; where it does not,
 * inodes are compared instead.
 */
export const open = (directory: string, descriptors = "/proc/self/fd"): Confined | Fault => {
  const top = fromBytes(Fs.realpathSync.native(directory, { encoding: "buffer" }))
  const pinned = look(top)
  if (pinned === undefined) return notFound
  if (!pinned.isDirectory()) return notADirectory
  const caseSensitive = isCaseSensitive(top)
  // Held open, so that no other directory can get its inode.
  const descriptor = Fs.openSync(top, holding)
  const same = caseSensitive ? isSamePath : (self: HostPath, that: HostPath) => isSamePath(folded(self), folded(that))
  let isClosed = false

  const rootStats = (): Fs.Stats | Fault => {
    if (isClosed) return closed
    const stats = look(top)
    return stats !== undefined && isSameFile(stats, pinned) ? stats : gone
  }

  const walk = (path: FsPath): Place | Fault => {
    let stats: Fs.Stats | Fault | undefined = rootStats()
    if (isFault(stats) || path === root) return isFault(stats) ? stats : place(path, top, stats)
    let at = top
    for (const segment of path.split("/")) {
      at = below(at, segment)
      stats = look(at)
      if (stats === undefined) return notFound
      if (!stats.isDirectory()) return notADirectory
    }
    return place(path, at, stats as Fs.Stats)
  }

  const place = (path: FsPath, at: HostPath, stats: Fs.Stats): Place => ({
    directory: at,
    stats,
    at: (segment) => below(at, segment),
    enter: (segment) => {
      const child = below(at, segment)
      const stats = look(child)
      return stats === undefined
        ? notFound
        : stats.isDirectory()
          ? place((path === root ? segment : `${path}/${segment}`) as FsPath, child, stats)
          : notADirectory
    },
    isSame: () => {
      const now = walk(path)
      return !isFault(now) && isSameFile(now.stats, stats)
    },
    release: () => {}
  })

  const alias = (descriptor: number): string => `${descriptors}/${descriptor}`
  const whereIs = (descriptor: number): HostPath | undefined => {
    try {
      return fromBytes(Fs.readlinkSync(alias(descriptor), { encoding: "buffer" }))
    } catch {
      return undefined
    }
  }
  const leadsTo = (at: HostPath, descriptor: number): boolean => {
    try {
      const found = look(at)
      return found !== undefined && isSameFile(found, Fs.fstatSync(descriptor))
    } catch {
      return false
    }
  }
  const kernelTells = isSamePath(whereIs(descriptor) ?? "", top)

  return {
    caseSensitive,
    directory: walk,
    holds: (descriptor, place, segment) => {
      const expected = place.at(segment)
      if (!kernelTells) return leadsTo(expected, descriptor) && place.isSame()
      const actual = whereIs(descriptor)
      return actual !== undefined && (same(actual, expected) || same(actual, removed(expected)))
    },
    withdraw: (descriptor, place, segment) => {
      for (const at of [whereIs(descriptor), place.at(segment)]) {
        if (at !== undefined && leadsTo(at, descriptor)) Fs.unlinkSync(at)
      }
    },
    ...(kernelTells ? { alias } : {}),
    close: () => {
      if (isClosed) return
      isClosed = true
      Fs.closeSync(descriptor)
    }
  }
}

const removed = (path: HostPath): HostPath =>
  typeof path === "string" ? `${path} (deleted)` : Buffer.concat([path, Buffer.from(" (deleted)")])

const folded = (path: HostPath): HostPath => (typeof path === "string" ? fold(path) : path)

const swapped = (name: string): string =>
  name.replace(/[a-z]/gi, (letter) => (letter < "a" ? letter.toLowerCase() : letter.toUpperCase()))

/** Asked of a name that is there, since nothing may be written to find out. */
const isCaseSensitive = (top: HostPath): boolean => {
  const sample = sampleName(top) ?? top
  if (typeof sample !== "string") return true
  const name = sample.slice(sample.lastIndexOf("/") + 1)
  const other = swapped(name)
  if (other === name) return process.platform !== "darwin"
  const found = look(sample)
  const twin = look(sample.slice(0, sample.length - name.length) + other)
  return found === undefined || twin === undefined || !isSameFile(found, twin)
}

const sampleName = (top: HostPath): HostPath | undefined => {
  const directory = openQuietly(top)
  if (directory === undefined) return undefined
  try {
    for (let left = 32; left > 0; left--) {
      const entry = directory.readSync()
      if (entry === null) return undefined
      if (/[a-z]/i.test(entry.name)) return below(top, entry.name)
    }
    return undefined
  } finally {
    directory.closeSync()
  }
}

/** A root that may be entered but not listed is still a root. */
const openQuietly = (top: HostPath): Fs.Dir | undefined => {
  try {
    return Fs.opendirSync(top as string)
  } catch {
    return undefined
  }
}
