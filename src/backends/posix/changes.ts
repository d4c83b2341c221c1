/** Changes entries of a host directory: links, attributes, creation, removal and renaming. */
import {
  directoriesKeepChanging,
  hardLinkRefused,
  intoItself,
  isRoot,
  kindFault,
  linkMode,
  notALink,
  notFoundBelowFile,
  permission,
  undecodableTarget
} from "../faults.ts"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { alreadyExists, directoryNotEmpty, is as isFault, notFound } from "../../model/Fault.ts"
import { type Fault, located } from "../../model/FsError.ts"
import { fold, type FsPath, isWithin, join, name, parent, root } from "../../model/FsPath.ts"
import { codeOf } from "../../model/realms.ts"
import type { Child } from "../../port/Backend.ts"
import { closeQuietly, faultOf } from "../../runtime/host.ts"
import { Fs, isUtf8, readLinkBytes } from "../../runtime/node.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { children, isSmall, listSync, removeLeftover } from "./entries.ts"
import { attempt } from "./errors.ts"
import {
  changeOwner,
  type Confined,
  type HostDirectory,
  type HostPath,
  isSameFile,
  lstatEntry,
  O_PATH,
  retryChanged,
  withPlace
} from "./place.ts"
import { type Hardlinks, inParent, isRefusedHardLink, kindOf } from "./read.ts"

// Reads and creates symlinks, and sets permission bits and modification times. Never sets attributes through a symlink.

/**
 * Tests whether a symlink may be followed.
 *
 * In a sticky directory that everybody may write to, Linux with `fs.protected_symlinks` follows only symlinks of the
 * current user and of the directory's owner. This test applies the same rule.
 */
const mayFollow = (place: HostDirectory, link: Fs.Stats): boolean =>
  (place.stats.mode & 0o1002) !== 0o1002 || link.uid === process.geteuid?.() || link.uid === place.stats.uid

const readLinkAt = (at: HostPath): Buffer | undefined => {
  try {
    return readLinkBytes(at)
  } catch (error) {
    if (codeOf(error) === "EINVAL") return undefined
    throw error
  }
}

export const readLink = (confined: Confined, path: FsPath, follows = false): string | Fault => {
  if (path === root) return notALink
  const text = inParent(confined, path, (place, segment): string | Fault => {
    const found = lstatEntry(place.at(segment))
    if (found === undefined) return notFound
    if (!found.isSymbolicLink()) return notALink
    if (follows && !mayFollow(place, found)) return permission
    const bytes = readLinkAt(place.at(segment))
    return bytes === undefined ? notALink : isUtf8(bytes) ? bytes.toString() : undecodableTarget
  })
  return isFault(text) ? notFoundBelowFile(text) : text
}

export const makeLink = (confined: Confined, path: FsPath, target: string): Fault | undefined =>
  path === root
    ? alreadyExists
    : inParent(confined, path, (place, segment) => {
        const at = place.at(segment)
        Fs.symlinkSync(target, at)
        return changeOwner(confined, at, Fs.unlinkSync)
      })

interface AttributeValues {
  readonly mode?: number | undefined
  readonly modifiedAt?: DateTime.Utc | undefined
}

/**
 * Converts a time to seconds, as text, because Node interprets negative numbers as "now".
 *
 * Node truncates the seconds to whole microseconds, and most milliseconds have no exact binary representation. Half a
 * microsecond is added so that the milliseconds are preserved.
 */
const toSeconds = (millis: number): string => String(Number.isInteger(millis / 1000) ? millis / 1000 : millis / 1000 + 5e-7)

const specialBits = (stats: Fs.Stats): number => (stats.isDirectory() ? stats.mode & 0o7000 : 0)

const times = (stats: Fs.Stats, modifiedAt: DateTime.Utc): [accessed: string, modified: string] => [
  toSeconds(stats.atimeMs),
  toSeconds(modifiedAt.epochMilliseconds)
]

const refusal = (stats: Fs.Stats, { mode }: AttributeValues, hardlinks: Hardlinks): Fault | undefined =>
  stats.isSymbolicLink() && mode !== undefined ? linkMode : isRefusedHardLink(stats, hardlinks) ? hardLinkRefused : undefined

/** Sets attributes by the name of the entry. Only macOS has a call that sets the mode of a symlink itself. */
export const setByName = (at: HostPath, stats: Fs.Stats, { mode, modifiedAt }: AttributeValues): undefined => {
  if (mode !== undefined) {
    const change = (Fs.lchmodSync as typeof Fs.lchmodSync | undefined) ?? Fs.chmodSync
    change(at, mode | specialBits(stats))
  }
  if (modifiedAt !== undefined) Fs.lutimesSync(at, ...times(stats, modifiedAt))
}

export const setByAlias = (alias: HostPath, stats: Fs.Stats, { mode, modifiedAt }: AttributeValues): undefined => {
  if (mode !== undefined) Fs.chmodSync(alias, mode | specialBits(stats))
  if (modifiedAt !== undefined) Fs.utimesSync(alias, ...times(stats, modifiedAt))
}

/**
 * Sets the attributes of exactly the entry that was checked, even if its name changes meanwhile.
 *
 * The attributes of a symlink are set by its name. If the system has no paths for descriptors, the attributes of all
 * entries are set by name.
 */
const setAt = (confined: Confined, at: HostPath, values: AttributeValues, hardlinks: Hardlinks): Fault | undefined => {
  const found = lstatEntry(at)
  if (found === undefined) return notFound
  if (confined.descriptorPath === undefined || found.isSymbolicLink()) {
    return refusal(found, values, hardlinks) ?? setByName(at, found, values)
  }
  const descriptor = Fs.openSync(at, O_PATH | Fs.constants.O_NOFOLLOW)
  try {
    const stats = Fs.fstatSync(descriptor)
    if (stats.isSymbolicLink()) return directoriesKeepChanging
    return refusal(stats, values, hardlinks) ?? setByAlias(confined.descriptorPath(descriptor), stats, values)
  } finally {
    closeQuietly(descriptor)
  }
}

export const setAttributes = (
  confined: Confined,
  path: FsPath,
  values: AttributeValues,
  hardlinks: Hardlinks
): Fault | undefined => {
  if (path === root) {
    return withPlace(confined.directory(root), (place) => setByAlias(place.directory, place.stats, values))
  }
  const fault = inParent(confined, path, (place, segment) => setAt(confined, place.at(segment), values, hardlinks))
  return fault && notFoundBelowFile(fault)
}

// Creates, removes and renames entries with single system calls, which are atomic.
//
// The target is inspected directly before the call, so no other code of this program can change it in between. Another
// process could still create an entry within the remaining microseconds. Node has no call that prevents this.

export const makeDirectory = (confined: Confined, path: FsPath): Fault | undefined =>
  path === root
    ? alreadyExists
    : inParent(confined, path, (place, segment) => {
        const at = place.at(segment)
        Fs.mkdirSync(at)
        return changeOwner(confined, at, Fs.rmdirSync)
      })

/** Removes an entry. Returns `undefined` if a directory has just replaced another entry, or another entry a directory. */
const removeAt = (at: HostPath): Fault | "removed" | undefined => {
  const found = lstatEntry(at)
  if (found === undefined) return notFound
  try {
    if (found.isDirectory()) Fs.rmdirSync(at)
    else Fs.unlinkSync(at)
    return "removed"
  } catch (error) {
    const now = lstatEntry(at)
    return now !== undefined && now.isDirectory() !== found.isDirectory() ? undefined : faultOf(error, now && kindOf(now))
  }
}

export const remove = (confined: Confined, path: FsPath): Fault | undefined => {
  if (path === root) return isRoot
  const fault = inParent(confined, path, (place, segment) => {
    const outcome = retryChanged(() => removeAt(place.at(segment)))
    return outcome === "removed" ? undefined : outcome
  })
  return fault && notFoundBelowFile(fault)
}

const removeLeftoversIn = (place: HostDirectory, segment: string): boolean =>
  withPlace(place.openChild(segment), (directory) =>
    listSync(directory).every(({ name }) => removeLeftover(directory, name))
  ) === true

const notEmptyCodes = new Set(["ENOTEMPTY", "EEXIST"])

interface RenameEnd {
  readonly path: FsPath
  readonly place: HostDirectory
  readonly segment: string
  readonly stats: Fs.Stats | undefined
}

const endOf = (path: FsPath, place: HostDirectory, segment: string): RenameEnd => ({
  path,
  place,
  segment,
  stats: lstatEntry(place.at(segment))
})

const renameEnds = (from: RenameEnd, to: RenameEnd): undefined =>
  void Fs.renameSync(from.place.at(from.segment), to.place.at(to.segment))

const replaceDirectory = (from: RenameEnd, to: RenameEnd): Fault | undefined => {
  try {
    return renameEnds(from, to)
  } catch (error) {
    if (!notEmptyCodes.has(codeOf(error) ?? "")) throw error
    return removeLeftoversIn(to.place, to.segment) ? renameEnds(from, to) : directoryNotEmpty
  }
}

const replaceEntry = (from: RenameEnd, source: Fs.Stats, to: RenameEnd, target: Fs.Stats): Fault | undefined => {
  const fault = kindFault(source.isDirectory(), target.isDirectory())
  if (fault !== undefined) return fault
  if (source.isDirectory()) return replaceDirectory(from, to)
  if (!isSameFile(source, target)) return renameEnds(from, to)
  // A system rename between two names of one file does nothing and reports success.
  return void Fs.unlinkSync(from.place.at(from.segment))
}

const renameTo = (
  from: RenameEnd,
  source: Fs.Stats,
  to: RenameEnd,
  isRespelling: boolean,
  replace: boolean
): Fault | undefined => {
  if (isRespelling) return from.path !== to.path ? renameEnds(from, to) : replace ? undefined : alreadyExists
  if (to.stats === undefined) return renameEnds(from, to)
  return replace ? replaceEntry(from, source, to, to.stats) : alreadyExists
}

export const rename = (confined: Confined, from: FsPath, to: FsPath, replace: boolean): Fault | undefined => {
  if (from === root || to === root) return isRoot
  const key = (path: FsPath): FsPath => (confined.caseSensitive ? path : fold(path))
  const parentDirectory = confined.directory(parent(from))
  if (isFault(parentDirectory)) return notFoundBelowFile(parentDirectory)
  try {
    const source = endOf(from, parentDirectory, name(from))
    const { stats } = source
    if (stats === undefined) return notFound
    const isRespelling = key(from) === key(to)
    if (stats.isDirectory() && !isRespelling && isWithin(key(from), key(to))) return intoItself
    return inParent(confined, to, (place, segment) => renameTo(source, stats, endOf(to, place, segment), isRespelling, replace))
  } finally {
    parentDirectory.release()
  }
}

// Removes trees from the leaves up. Node's recursive calls are not used, because they may follow a symlink that replaces
// a directory during the removal.
//
// Only a few of the deepest directories are kept open. So the depth and breadth of a tree need neither more descriptors
// nor a deeper stack.
//
// The removal runs in short slices and can be interrupted between two slices. After an interruption, the remaining entries
// of the tree are unchanged.

interface Removed {
  /** The number of removed files, symlinks and special files. Leftovers do not count. */
  readonly deleted: number
  readonly directories: number
}

/** The maximum number of steps between two yields to the event loop. The steps take one or two milliseconds. */
const removalsPerSlice = 128
const maxReadings = 100
/** The number of the deepest directories that stay open, and the maximum number of landmarks. Each needs a descriptor. */
const maxOpenDirectories = 16

interface Frame {
  readonly above: Frame | undefined
  readonly depth: number
  readonly path: FsPath
  readonly segment: string
  readonly stats: Fs.Stats
  /** The open directory, or `undefined` while it is closed to limit the number of descriptors. */
  place: HostDirectory | undefined
  readonly isHidden: boolean
  entries: Array<Child> | undefined
  readings: number
}

/**
 * Tests whether a directory stays open, as one in every 512 levels does, up to `maxOpenDirectories`. A closed directory
 * of a very deep tree is reopened from the nearest open directory above it.
 */
const isLandmark = ({ depth }: Frame): boolean => depth > 0 && depth % 512 === 0 && depth <= 512 * maxOpenDirectories

/**
 * Runs a removal. Returns false if the removal fails with one of the codes, which mean that the removal is not needed or
 * must be retried.
 */
const tryRemoval = (run: () => void, ...codes: ReadonlyArray<string>): boolean => {
  try {
    run()
    return true
  } catch (error) {
    if (codes.includes(codeOf(error) ?? "")) return false
    throw error
  }
}

const statsOf = (place: HostDirectory): Fs.Stats => {
  try {
    return place.stats
  } catch (error) {
    place.release()
    throw error
  }
}

/**
 * Creates the removal of a tree, in which each `step` handles one entry.
 *
 * An entry whose kind has changed since the listing is kept at first. Its directory then cannot be removed, so the
 * directory is listed again.
 */
const removal = (holder: HostDirectory, path: FsPath) => {
  let deleted = 0
  let directories = 0
  let current: Frame | undefined
  let at = path
  let startCount = 0

  const releaseFrame = (frame: Frame | undefined): void => {
    if (frame?.place === undefined || isLandmark(frame)) return
    frame.place.release()
    frame.place = undefined
  }

  /**
   * Reopens a closed directory, starting at the deepest open directory above it. Fails if another directory has
   * replaced one of the directories on the path.
   */
  const reopenFrame = (frame: Frame): HostDirectory | Fault => {
    const missing: Array<Frame> = []
    let held: Frame | undefined = frame
    for (; held !== undefined && held.place === undefined; held = held.above) missing.push(held)
    let place = held?.place ?? holder
    for (let i = missing.length - 1; i >= 0; i--) {
      const next = missing[i]!
      const found = place.openChild(next.segment)
      if (isFault(found)) return directoriesKeepChanging
      if (!isSameFile(statsOf(found), next.stats)) {
        found.release()
        return directoriesKeepChanging
      }
      next.place = place = found
      releaseFrame(missing[i + maxOpenDirectories])
    }
    return place
  }

  const enter = (above: Frame | undefined, holder: HostDirectory, segment: string): void => {
    const place = holder.openChild(segment)
    if (isFault(place)) return
    const isHidden = above?.isHidden === true || TemporaryNames.isOwnName(segment)
    const depth = (above?.depth ?? -1) + 1
    current = { above, depth, path: at, segment, stats: statsOf(place), place, isHidden, entries: undefined, readings: 0 }
    let distant: Frame | undefined = current
    for (let i = 0; i < maxOpenDirectories && distant !== undefined; i++) distant = distant.above
    releaseFrame(distant)
  }

  const unlink = (place: HostDirectory, segment: string, isHidden = false): void => {
    if (
      tryRemoval(() => Fs.unlinkSync(place.at(segment)), "ENOENT", "EISDIR") &&
      !isHidden &&
      !TemporaryNames.isOwnName(segment)
    )
      deleted++
  }

  const start = (): void => {
    at = path
    startCount++
    enter(undefined, holder, name(path))
    if (current === undefined) unlink(holder, name(path))
  }

  const removeDirectory = (frame: Frame): Fault | undefined => {
    at = frame.path
    const above = frame.above === undefined ? holder : reopenFrame(frame.above)
    if (isFault(above)) return above
    const host = above.at(frame.segment)
    if (tryRemoval(() => Fs.rmdirSync(host), "ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR")) {
      if (!frame.isHidden) directories++
      return void release(frame)
    }
    const found = lstatEntry(host)
    if (found === undefined) return void release(frame)
    return isSameFile(found, frame.stats) ? readAgain(frame) : handleReplaced(frame)
  }

  const readAgain = (frame: Frame): undefined => void (frame.entries = undefined)

  const handleReplaced = (frame: Frame): Fault | undefined => {
    release(frame)
    if (frame.above !== undefined) return readAgain(frame.above)
    return startCount > maxReadings ? directoriesKeepChanging : void start()
  }

  const release = (frame: Frame): void => {
    frame.place?.release()
    frame.place = undefined
    current = frame.above
  }

  const setEntries = (frame: Frame, entries: ReadonlyArray<Child>): Fault | undefined => {
    if (frame.place?.isReadReliable() !== true) return directoriesKeepChanging
    if (++frame.readings > maxReadings) return directoryNotEmpty
    frame.entries = [...entries]
    return undefined
  }

  const step = (frame: Frame): Fault | undefined => {
    if (frame.entries?.length === 0) return removeDirectory(frame)
    const place = reopenFrame(frame)
    if (isFault(place)) return place
    if (frame.entries === undefined) return setEntries(frame, listSync(place))
    const entry = frame.entries.at(-1)!
    const segment = entry.key ?? entry.name
    at = join(frame.path, segment)
    if (entry.kind === "directory") enter(frame, place, segment)
    else unlink(place, segment, frame.isHidden)
    frame.entries.pop()
    return undefined
  }

  return {
    start,
    unread: (): { readonly frame: Frame; readonly place: HostDirectory } | undefined =>
      current?.entries === undefined && current?.place !== undefined && !isSmall(current.place)
        ? { frame: current, place: current.place }
        : undefined,
    opened: setEntries,
    current: () => current,
    step,
    path: () => at,
    removed: (): Removed => ({ deleted, directories }),
    release: () => {
      for (let frame = current; frame !== undefined; frame = frame.above) frame.place?.release()
      holder.release()
    }
  }
}

type Removal = ReturnType<typeof removal>

const removeInSlices = (self: Removal): Effect.Effect<void, Fault> =>
  Effect.suspend(() => {
    const unread = self.unread()
    if (unread !== undefined) {
      const read = Effect.flatMap(children(unread.place), (entries) => attempt(() => self.opened(unread.frame, entries)))
      return Effect.andThen(read, removeInSlices(self))
    }
    if (self.current() === undefined) return Effect.void
    const some = attempt(() => {
      for (let left = removalsPerSlice; left > 0; left--) {
        const frame = self.current()
        if (frame === undefined || self.unread() !== undefined) return undefined
        const fault = self.step(frame)
        if (fault !== undefined) return fault
      }
      return undefined
    })
    return Effect.andThen(some, Effect.andThen(Effect.yieldNow, removeInSlices(self)))
  })

const startRemoval = (confined: Confined, path: FsPath): Removal | Fault => {
  const holder = confined.directory(parent(path))
  if (isFault(holder)) return notFoundBelowFile(holder)
  let self: Removal | undefined
  try {
    if (lstatEntry(holder.at(name(path))) === undefined) return notFound
    return (self = removal(holder, path))
  } finally {
    if (self === undefined) holder.release()
  }
}

/** Removes an entry and everything below. A fault names the entry that could not be removed. */
export const removeTree = (confined: Confined, path: FsPath): Effect.Effect<Removed, Fault> =>
  path === root
    ? Effect.fail(isRoot)
    : Effect.acquireUseRelease(
        attempt(() => startRemoval(confined, path)),
        (self) =>
          Effect.mapError(
            Effect.andThen(Effect.andThen(attempt(self.start), removeInSlices(self)), Effect.sync(self.removed)),
            (fault) => located(fault, self.path())
          ),
        (self) => Effect.sync(self.release)
      )
