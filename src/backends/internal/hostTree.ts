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
import { type Confined, isSameFile, look, type Place, unstable } from "./confined.ts"
import { codeOf } from "../../model/systemError.ts"
import { absent } from "./hostFile.ts"
import { children, childrenNow, isSmall } from "./hostEntries.ts"

export interface Removed {
  /** Files, symlinks and special files, without leftovers. */
  readonly deleted: number
  readonly directories: number
}

/** Removals before a yield to the event loop: one or two milliseconds. */
const slice = 128
const maxReadings = 100
/** Directories held open at once. Each needs a descriptor. */
const maxHeld = 16

interface Frame {
  readonly above: Frame | undefined
  readonly depth: number
  readonly path: FsPath
  readonly segment: string
  readonly stats: Fs.Stats
  /** Absent while enough directories below are held. */
  place: Place | undefined
  readonly isHidden: boolean
  entries: Array<Child> | undefined
  readings: number
}

/** Tests whether a directory stays open, so that the way back up in a very deep tree need not start at the top. */
const isLandmark = ({ depth }: Frame): boolean => depth > 0 && depth % 512 === 0 && depth <= 512 * maxHeld

/** Runs a removal. Returns false for one of these codes, which mean that it is not needed or must be retried. */
const done = (run: () => void, ...codes: ReadonlyArray<string>): boolean => {
  try {
    run()
    return true
  } catch (error) {
    if (codes.includes(codeOf(error) ?? "")) return false
    throw error
  }
}

const statsOf = (place: Place): Fs.Stats => {
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
const removal = (holder: Place, path: FsPath) => {
  let deleted = 0
  let directories = 0
  let current: Frame | undefined
  let at = path
  let starts = 0

  const letGo = (frame: Frame | undefined): void => {
    if (frame?.place === undefined || isLandmark(frame)) return
    frame.place.release()
    frame.place = undefined
  }

  /**
   * Reopens a released directory from the lowest held one above it. Refuses another directory that has taken its name.
   */
  const reach = (frame: Frame): Place | Fault => {
    const missing: Array<Frame> = []
    let held: Frame | undefined = frame
    for (; held !== undefined && held.place === undefined; held = held.above) missing.push(held)
    let place = held?.place ?? holder
    for (let i = missing.length - 1; i >= 0; i--) {
      const next = missing[i]!
      const found = place.enter(next.segment)
      if (isFault(found)) return unstable
      if (!isSameFile(statsOf(found), next.stats)) {
        found.release()
        return unstable
      }
      next.place = place = found
      letGo(missing[i + maxHeld])
    }
    return place
  }

  const enter = (above: Frame | undefined, holder: Place, segment: string): void => {
    const place = holder.enter(segment)
    if (isFault(place)) return
    const isHidden = above?.isHidden === true || TemporaryNames.isOurs(segment)
    const depth = (above?.depth ?? -1) + 1
    current = { above, depth, path: at, segment, stats: statsOf(place), place, isHidden, entries: undefined, readings: 0 }
    let distant: Frame | undefined = current
    for (let i = 0; i < maxHeld && distant !== undefined; i++) distant = distant.above
    letGo(distant)
  }

  const unlink = (place: Place, segment: string, isHidden = false): void => {
    if (done(() => Fs.unlinkSync(place.at(segment)), "ENOENT", "EISDIR") && !isHidden && !TemporaryNames.isOurs(segment))
      deleted++
  }

  const start = (): void => {
    at = path
    starts++
    enter(undefined, holder, name(path))
    if (current === undefined) unlink(holder, name(path))
  }

  const leave = (frame: Frame): Fault | undefined => {
    at = frame.path
    const above = frame.above === undefined ? holder : reach(frame.above)
    if (isFault(above)) return above
    const host = above.at(frame.segment)
    if (done(() => Fs.rmdirSync(host), "ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR")) {
      if (!frame.isHidden) directories++
      return void release(frame)
    }
    const found = look(host)
    if (found === undefined) return void release(frame)
    return isSameFile(found, frame.stats) ? readAgain(frame) : replaced(frame)
  }

  const readAgain = (frame: Frame): undefined => void (frame.entries = undefined)

  const replaced = (frame: Frame): Fault | undefined => {
    release(frame)
    if (frame.above !== undefined) return readAgain(frame.above)
    return starts > maxReadings ? unstable : void start()
  }

  const release = (frame: Frame): void => {
    frame.place?.release()
    frame.place = undefined
    current = frame.above
  }

  const opened = (frame: Frame, entries: ReadonlyArray<Child>): Fault | undefined => {
    if (frame.place?.held() !== true) return unstable
    if (++frame.readings > maxReadings) return { _tag: "DirectoryNotEmpty" }
    frame.entries = [...entries]
    return undefined
  }

  const step = (frame: Frame): Fault | undefined => {
    if (frame.entries?.length === 0) return leave(frame)
    const place = reach(frame)
    if (isFault(place)) return place
    if (frame.entries === undefined) return opened(frame, childrenNow(place))
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
    unread: (): { readonly frame: Frame; readonly place: Place } | undefined =>
      current?.entries === undefined && current?.place !== undefined && !isSmall(current.place)
        ? { frame: current, place: current.place }
        : undefined,
    opened,
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

const work = (self: Removal): Effect.Effect<void, Fault> =>
  Effect.suspend(() => {
    const unread = self.unread()
    if (unread !== undefined) {
      const read = Effect.flatMap(children(unread.place), (entries) => attempt(() => self.opened(unread.frame, entries)))
      return Effect.andThen(read, work(self))
    }
    if (self.current() === undefined) return Effect.void
    const some = attempt(() => {
      for (let left = slice; left > 0; left--) {
        const frame = self.current()
        if (frame === undefined || self.unread() !== undefined) return undefined
        const fault = self.step(frame)
        if (fault !== undefined) return fault
      }
      return undefined
    })
    return Effect.andThen(some, Effect.andThen(Effect.yieldNow, work(self)))
  })

const isRoot: Fault = { _tag: "AccessDenied", why: "root" }
const notFound: Fault = { _tag: "NotFound" }

const begin = (confined: Confined, path: FsPath): Removal | Fault => {
  const holder = confined.directory(parent(path))
  if (isFault(holder)) return absent(holder)
  let self: Removal | undefined
  try {
    if (look(holder.at(name(path))) === undefined) return notFound
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
        attempt(() => begin(confined, path)),
        (self) =>
          Effect.mapError(Effect.andThen(Effect.andThen(attempt(self.start), work(self)), Effect.sync(self.removed)), (fault) =>
            located(fault, self.path())
          ),
        (self) => Effect.sync(self.release)
      )
