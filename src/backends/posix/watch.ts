/**
 * Watches a tree with one watcher per directory, because Node's recursive watcher follows symlinks and misses entries.
 *
 * Each system event names an entry. The entry is inspected and compared with its known state. So an atomic replacement is
 * reported as one update, a temporary file causes no event, and the contents of a new directory are reported too.
 *
 * If changes arrive faster than they are read, the changes of each path are merged into one.
 */
import { notFoundBelowFile } from "../faults.ts"
import { ioError, is as isFault, notFound } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { WatchEvent } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, join, name, parent, parse } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import { Fs } from "../../runtime/node.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { children, isSmall, listSync, openDirectory } from "./entries.ts"
import { attempt } from "./errors.ts"
import { faultOf } from "../../runtime/host.ts"
import { type Confined, type HostDirectory, lstatEntry, withPlace } from "./place.ts"
import { inParent } from "./read.ts"

interface Watched {
  readonly watcher: Fs.FSWatcher
  /**
   * The known entries of a directory by name. A subdirectory has its inode as value, which shows whether it was
   * replaced.
   */
  readonly names: Map<string, number | undefined>
}

const directoriesPerYield = 64
const entriesPerYield = 1000
const pollInterval = "1 second"
/** The maximum number of events that wait for a slow reader. Further changes are merged. */
const bufferSize = 1024

const missingNames = ioError("the system does not report which names have changed")
const tooMany = ioError(
  "the system's limit on watched directories is reached; on Linux, raise fs.inotify.max_user_watches",
  "ENOSPC"
)

/** Translates the fault of a watcher, for which ENOSPC does not mean a full disk. */
const watchFault = (fault: Fault): Fault => (fault._tag === "DiskFull" ? { ...tooMany, cause: fault["cause"] } : fault)

const isGone = (fault: Fault): boolean => fault._tag === "NotFound" || fault._tag === "NotADirectory"

const isVisible = (name: string): boolean => parse(name) === name && !TemporaryNames.isOwnName(name)

const inodeOf = (stats: Fs.Stats): number | undefined => (stats.isDirectory() ? stats.ino : undefined)

const findGoneFault = (confined: Confined, path: FsPath, place: HostDirectory): Fault | undefined => {
  const fault = withPlace(openDirectory(confined, path), () => undefined)
  if (fault !== undefined) return notFoundBelowFile(fault)
  return place.isSame() ? undefined : notFound
}

const makeObserver = (confined: Confined, base: FsPath, emitEvent: (event: WatchEvent) => Effect.Effect<unknown>) => {
  const watched = new Map<FsPath, Watched>()
  const pending = new Set<FsPath>()
  let failure: Fault | undefined
  let wake: (() => void) | undefined

  const recordEvent = (directory: FsPath, filename: string | null): void => {
    if (filename === null) failure ??= missingNames
    else if (isVisible(filename)) pending.add(join(directory, filename))
    wake?.()
  }

  const watchPlace = (path: FsPath, place: HostDirectory): Watched | undefined => {
    const watcher = Fs.watch(place.directory, (_, filename) => recordEvent(path, filename))
    watcher.on("error", (error) => {
      failure ??= faultOf(error)
      wake?.()
    })
    if (place.isSame()) {
      const entry: Watched = { watcher, names: new Map() }
      watched.get(path)?.watcher.close()
      watched.set(path, entry)
      return entry
    }
    watcher.close()
    return undefined
  }

  const listChildren = (place: HostDirectory): Effect.Effect<ReadonlyArray<Child>, Fault> =>
    isSmall(place) ? attempt(() => listSync(place)) : children(place)

  const recordEntries = Effect.fnUntraced(function* (
    path: FsPath,
    entry: Watched,
    place: HostDirectory,
    emitsCreated: boolean
  ): Effect.fn.Return<Array<FsPath>, Fault> {
    const directories: Array<FsPath> = []
    let count = 0
    for (const child of yield* listChildren(place)) {
      if (++count % entriesPerYield === 0) yield* Effect.yieldNow
      const stats = isVisible(child.name) && child.addressable ? lstatEntry(place.at(child.name)) : undefined
      if (stats === undefined) continue
      entry.names.set(child.name, inodeOf(stats))
      const at = join(path, child.name)
      if (emitsCreated) yield* emitEvent({ _tag: "Created", path: at })
      if (stats.isDirectory()) directories.push(at)
    }
    return directories
  })

  const attachOne = (path: FsPath, emitsCreated: boolean): Effect.Effect<Array<FsPath>, Fault> =>
    Effect.acquireUseRelease(
      attempt(() => openDirectory(confined, path)),
      (place) =>
        Effect.flatMap(
          attempt(() => watchPlace(path, place)),
          (entry) => (entry === undefined ? Effect.succeed([]) : recordEntries(path, entry, place, emitsCreated))
        ),
      (place) => Effect.sync(() => place.release())
    )

  /**
   * Watches all directories of a tree. If a directory disappears during the call, the watcher of its parent reports the
   * removal.
   */
  const attach = Effect.fnUntraced(function* (top: FsPath, emitsCreated: boolean): Effect.fn.Return<void, Fault> {
    const todo = [top]
    for (let count = 1; todo.length > 0; count++) {
      const path = todo.pop()!
      const below = yield* Effect.catch(attachOne(path, emitsCreated), (fault) =>
        isGone(fault) && path !== base ? Effect.succeed<Array<FsPath>>([]) : Effect.fail(watchFault(fault))
      )
      todo.push(...below)
      if (count % directoriesPerYield === 0) yield* Effect.yieldNow
    }
  })

  const detach = Effect.fnUntraced(function* (path: FsPath): Effect.fn.Return<void> {
    const entry = watched.get(path)
    if (entry === undefined) return
    watched.delete(path)
    entry.watcher.close()
    for (const [child, inode] of entry.names) {
      const at = join(path, child)
      if (inode !== undefined) yield* detach(at)
      yield* emitEvent({ _tag: "Removed", path: at })
    }
  })

  const removed = (entry: Watched, path: FsPath): Effect.Effect<void> => {
    entry.names.delete(name(path))
    return Effect.andThen(detach(path), emitEvent({ _tag: "Removed", path }))
  }

  const created = (entry: Watched, path: FsPath, inode: number | undefined): Effect.Effect<void, Fault> => {
    entry.names.set(name(path), inode)
    return Effect.andThen(emitEvent({ _tag: "Created", path }), inode === undefined ? Effect.void : attach(path, true))
  }

  const examine = (path: FsPath): Effect.Effect<unknown, Fault> =>
    Effect.flatMap(
      attempt(() => inParent(confined, path, (place, segment) => ({ stats: lstatEntry(place.at(segment)) }))).pipe(
        Effect.catch((fault) => (isGone(fault) ? Effect.succeed({ stats: undefined }) : Effect.fail(fault)))
      ),
      ({ stats }): Effect.Effect<unknown, Fault> => {
        const entry = watched.get(parent(path))
        if (entry === undefined) return Effect.void
        const isKnown = entry.names.has(name(path))
        if (stats === undefined) return isKnown ? removed(entry, path) : Effect.void
        const inode = inodeOf(stats)
        if (!isKnown) return created(entry, path, inode)
        if (entry.names.get(name(path)) === inode) return emitEvent({ _tag: "Updated", path })
        return Effect.andThen(removed(entry, path), created(entry, path, inode))
      }
    )

  const awaitEvent = Effect.callback<void>((resume) => {
    wake = () => resume(Effect.void)
    if (pending.size > 0 || failure !== undefined) wake()
    return Effect.sync(() => {
      wake = undefined
    })
  })

  const processEvents = Effect.fnUntraced(function* (place: HostDirectory): Effect.fn.Return<void, Fault> {
    const paths = [...pending]
    pending.clear()
    for (const path of paths) yield* examine(path)
    if (failure !== undefined) return yield* Effect.fail(failure)
    const gone = yield* Effect.match(
      attempt(() => findGoneFault(confined, base, place)),
      { onSuccess: () => undefined, onFailure: (fault) => fault }
    )
    if (gone !== undefined) {
      yield* detach(base)
      return yield* Effect.fail(gone)
    }
  })

  return {
    start: attach(base, false),
    run: (place: HostDirectory): Effect.Effect<never, Fault> =>
      // Yield first, so that all events of one change are handled together. Also poll, because the system does not
      // report the removal of the watched directory itself while this directory is open.
      Effect.forever(
        Effect.andThen(
          Effect.raceFirst(awaitEvent, Effect.sleep(pollInterval)),
          Effect.andThen(Effect.yieldNow, processEvents(place))
        )
      ),
    stop: () => {
      for (const { watcher } of watched.values()) watcher.close()
      watched.clear()
    }
  }
}

/** Watches the tree below a path from the first pull on. The stream fails when the directory itself disappears. */
export const watch = (confined: Confined, path: FsPath): Stream.Stream<WatchEvent, Fault> =>
  Stream.callback<WatchEvent, Fault>(
    (queue) =>
      Effect.acquireUseRelease(
        attempt(() => {
          const place = openDirectory(confined, path)
          return isFault(place) ? place : { place, self: makeObserver(confined, path, (event) => Queue.offer(queue, event)) }
        }),
        ({ place, self }) => Effect.andThen(self.start, self.run(place)),
        ({ place, self }) =>
          Effect.sync(() => {
            self.stop()
            place.release()
          })
      ),
    { bufferSize }
  )
