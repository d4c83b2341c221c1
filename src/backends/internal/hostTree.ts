/**
 * A tree is removed from its leaves up, by our own hand: the recursive calls of Node follow links when they are raced. At
 * most so many directories are held as `maxDepth` says: what lies deeper, or too deep to be reached by a path, is first moved up to the
 * top of the tree that goes, so neither depth nor breadth costs descriptors or stack. It works in short slices and can be interrupted between them; what is left of the
 * tree then is whole files.
 */
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { type Fault, located } from "../../model/FsError.ts"
import { type FsPath, isTemporaryName, join, name, parent, root } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import { attempt, isFault } from "./attempt.ts"
import { type Confined, look, type Place, unstable } from "./confined.ts"
import { codeOf } from "./errno.ts"
import { absent } from "./hostFile.ts"
import { children, childrenNow, isSmall } from "./hostEntries.ts"
import { temporaryName } from "./leftovers.ts"

export interface Removed {
  /** Files, links and others; what killed writers have left is not counted. */
  readonly deleted: number
  readonly directories: number
}

/** Removals between two yields to the event loop: a millisecond or two. */
const slice = 128
/** How often a directory is read anew because others fill it while it is emptied. */
const maxReadings = 100
const maxDepth = 16
/** Bytes of a path on the host: the kernel takes 4,095, of which a name may be 255. */
const maxLength = 3500

interface Frame {
  readonly above: Frame | undefined
  /** As the caller knows it, wherever it has been moved to. */
  readonly path: FsPath
  readonly segment: string
  readonly place: Place
  readonly depth: number
  /** It is, or is in, what a write in progress has made. */
  readonly isHidden: boolean
  /** Those that are still there; `undefined` until it is read. */
  entries: Array<Child> | undefined
  readings: number
}

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

/**
 * The removal of what has this name, of which each `step` is one entry. An entry that turns out to be something else than it was
 * listed as is left to the next reading of its directory, which comes when the directory cannot be removed.
 */
const removal = (holder: Place, path: FsPath) => {
  let deleted = 0
  let directories = 0
  let top: Frame | undefined
  let current: Frame | undefined
  let at = path
  /** The paths of the directories that were moved up, by the names they have there. */
  const moved = new Map<string, FsPath>()

  const enter = (above: Frame | undefined, segment: string): void => {
    const place = (above?.place ?? holder).enter(segment)
    if (isFault(place)) return
    const isHidden = above?.isHidden === true || isTemporaryName(name(at))
    current = { above, path: at, segment, place, depth: (above?.depth ?? -1) + 1, isHidden, entries: undefined, readings: 0 }
    top ??= current
  }

  const isTooDeep = (frame: Frame, segment: string): boolean =>
    frame !== top && (frame.depth >= maxDepth || Buffer.byteLength(frame.place.at(segment)) > maxLength)

  /** The top is read again when it would go, and finds it. */
  const moveUp = (from: Place, segment: string, top: Frame): void => {
    const name = temporaryName()
    if (!done(() => Fs.renameSync(from.at(segment), top.place.at(name)), "ENOENT")) return
    moved.set(name, at)
    top.readings = 0
  }

  const unlink = (place: Place, segment: string, isHidden = false): void => {
    if (done(() => Fs.unlinkSync(place.at(segment)), "ENOENT", "EISDIR") && !isHidden && !isTemporaryName(segment)) deleted++
  }

  const leave = (frame: Frame): Fault | undefined => {
    at = frame.path
    const host = (frame.above?.place ?? holder).at(frame.segment)
    if (done(() => Fs.rmdirSync(host), "ENOTEMPTY", "EEXIST", "ENOENT")) directories += frame.isHidden ? 0 : 1
    else if (look(host) !== undefined) {
      frame.entries = undefined
      return frame.readings > maxReadings ? { _tag: "DirectoryNotEmpty" } : undefined
    }
    frame.place.release()
    current = frame.above
    return undefined
  }

  const opened = (frame: Frame, entries: ReadonlyArray<Child>): Fault | undefined => {
    if (!frame.place.held()) return unstable
    frame.entries = [...entries]
    frame.readings++
    return undefined
  }

  const step = (frame: Frame): Fault | undefined => {
    if (frame.entries === undefined) return opened(frame, childrenNow(frame.place))
    const entry = frame.entries.at(-1)
    if (entry === undefined) return leave(frame)
    const segment = entry.key ?? entry.name
    at = (frame === top ? moved.get(segment) : undefined) ?? join(frame.path, segment)
    if (entry.kind !== "directory") unlink(frame.place, segment, frame.isHidden)
    else if (isTooDeep(frame, segment)) moveUp(frame.place, segment, top!)
    else enter(frame, segment)
    frame.entries.pop()
    return undefined
  }

  return {
    start: () => {
      enter(undefined, name(path))
      if (current === undefined) unlink(holder, name(path))
    },
    /** A large directory, to be read by the thread pool and given to `opened`. */
    unread: () => (current !== undefined && current.entries === undefined && !isSmall(current.place) ? current : undefined),
    opened,
    current: () => current,
    step,
    /** At what it is. */
    path: () => at,
    removed: (): Removed => ({ deleted, directories }),
    release: () => {
      for (let frame = current; frame !== undefined; frame = frame.above) frame.place.release()
      holder.release()
    }
  }
}

type Removal = ReturnType<typeof removal>

const work = (self: Removal): Effect.Effect<void, Fault> =>
  Effect.suspend(() => {
    const unread = self.unread()
    if (unread !== undefined) {
      const read = Effect.flatMap(children(unread.place), (entries) => attempt(() => self.opened(unread, entries)))
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
