/**
 * Removes trees from the leaves up, without Node's recursive calls, which follow symlinks in a race.
 *
 * Only the lowest directories are held open, so neither depth nor breadth costs descriptors or stack.
 *
 * The removal runs in short slices and can be interrupted between them. The rest of the tree then consists of whole
 * files in their places.
 */
import * as Effect from "effect/Effect"
import { Fs } from "../../runtime/node.ts"
import { type Fault, located } from "../../model/FsError.ts"
import { type FsPath, join, name, parent, root } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { attempt, isFault } from "./attempt.ts"
import { type Confined, isSameFile, lstatEntry, type HostDirectory, directoriesKeepChanging } from "./confined.ts"
import { codeOf } from "../../model/systemError.ts"
import { notFoundBelowFile } from "./hostFile.ts"
import { children, listSync, isSmall } from "./hostEntries.ts"

export interface Removed {
  /** Files, symlinks and special files, without leftovers. */
  readonly deleted: number
  readonly directories: number
}

/** Removals before a yield to the event loop: one or two milliseconds. */
const removalsPerSlice = 128
const maxReadings = 100
/** Directories held open at once. Each needs a descriptor. */
const maxOpenDirectories = 16

interface Frame {
  readonly above: Frame | undefined
  readonly depth: number
  readonly path: FsPath
  readonly segment: string
  readonly stats: Fs.Stats
  /** Absent while enough directories below are held. */
  place: HostDirectory | undefined
  readonly isHidden: boolean
  entries: Array<Child> | undefined
  readings: number
}

/** Tests whether a directory stays open, so that the way back up in a very deep tree need not start at the top. */
const isLandmark = ({ depth }: Frame): boolean => depth > 0 && depth % 512 === 0 && depth <= 512 * maxOpenDirectories

/** Runs a removal. Returns false for one of these codes, which mean that it is not needed or must be retried. */
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
 * An entry whose kind differs from the listing is left to the next reading of its directory, which follows when the
 * directory cannot be removed.
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
   * Reopens a released directory from the lowest held one above it. Refuses another directory that has taken its name.
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
    if (++frame.readings > maxReadings) return { _tag: "DirectoryNotEmpty" }
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

const isRoot: Fault = { _tag: "AccessDenied", why: "root" }
const notFound: Fault = { _tag: "NotFound" }

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

/** Removes a directory with all its contents. A fault names the entry that could not be removed. */
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
