/**
 * A tree is removed from its leaves up, by our own hand: the recursive calls of Node follow links when they are raced. Only the lowest
 * directories on the way are held, so neither depth nor breadth costs descriptors or stack. It works in short slices and can be
 * interrupted between them; what is left of the tree then is whole files, where they were.
 */
import * as Effect from "effect/Effect"
import { Fs } from "../../runtime/node.ts"
import { type Fault, located } from "../../model/FsError.ts"
import { type FsPath, join, name, parent, root } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { attempt, isFault } from "./attempt.ts"
import { type Confined, isSameFile, look, type Place, unstable } from "./confined.ts"
import { codeOf } from "./errno.ts"
import { absent } from "./hostFile.ts"
import { children, childrenNow, isSmall } from "./hostEntries.ts"

export interface Removed {
  /** Files, links and others; what killed writers have left is not counted. */
  readonly deleted: number
  readonly directories: number
}

/** Removals between two yields to the event loop: a millisecond or two. */
const slice = 128
/** How often a directory is read anew because others fill it while it is emptied. */
const maxReadings = 100
/** Directories held at once: each costs a descriptor. */
const maxHeld = 16

interface Frame {
  readonly above: Frame | undefined
  readonly depth: number
  readonly path: FsPath
  readonly segment: string
  /** Which directory it is. */
  readonly stats: Fs.Stats
  /** `undefined` while enough below it is held. */
  place: Place | undefined
  /** It is, or is in, what a write in progress has made. */
  readonly isHidden: boolean
  /** Those that are still there; `undefined` until it is read. */
  entries: Array<Child> | undefined
  readings: number
}

/** Some on the way stay held, so that coming back up through a very deep tree does not begin at its top each time. */
const isLandmark = ({ depth }: Frame): boolean => depth > 0 && depth % 512 === 0 && depth <= 512 * maxHeld

/** Whether it was done; not when it fails with one of these codes, which say that it need not be. */
const done = (run: () => void, ...codes: ReadonlyArray<string>): boolean => {
  try {
    run()
    return true
  } catch (error) {
    if (codes.includes(codeOf(error) ?? "")) return false
    throw error
  }
}

/** What has been reached, released again where even looking at it fails. */
const statsOf = (place: Place): Fs.Stats => {
  try {
    return place.stats
  } catch (error) {
    place.release()
    throw error
  }
}

/**
 * The removal of what has this name, of which each `step` is one entry. An entry that turns out to be something else than it was
 * listed as is left to the next reading of its directory, which comes when the directory cannot be removed.
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

  /** Down to a directory that was let go, from the lowest above it that is held; to no other one that has taken its name. */
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

  /** Another has its name now. */
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
    /** A large directory, to be read by the thread pool and given to `opened`. */
    unread: (): { readonly frame: Frame; readonly place: Place } | undefined =>
      current?.entries === undefined && current?.place !== undefined && !isSmall(current.place)
        ? { frame: current, place: current.place }
        : undefined,
    opened,
    current: () => current,
    step,
    /** At what it is. */
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

/** Removes a directory with everything in it. A fault names the entry that could not be removed. */
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
