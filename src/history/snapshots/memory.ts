/**
 * Snapshots in memory. A snapshot shares its tree with the filesystem, so taking a snapshot copies nothing. Closing the layer
 * or `forget` frees the memory.
 */
import { randomUUID } from "../../runtime/node.ts"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath, isWithin, root } from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import type { Captured, MemoryHistory } from "../../port/history.ts"
import { storeFault } from "../errors.ts"
import type { Change } from "../tree.ts"
import { scan } from "../scan.ts"
import { countIn } from "../view.ts"
import { findExpired, type LayerOptions, type StoredSnapshot, type Strategy } from "./strategy.ts"
import { FilesystemSnapshot } from "./value.ts"

interface HeldTree extends StoredSnapshot {
  readonly captured: Captured
  readonly isPassing: boolean
}

const keyIn = (port: Backend, path: FsPath): FsPath => (port.info.caseSensitive ? path : fold(path))

/**
 * Returns the changes that a restore of `paths` makes: the changes at and below the paths, and the creation of missing
 * parent directories.
 */
const changesWithin = Effect.fnUntraced(function* (
  port: Backend,
  history: MemoryHistory,
  paths: ReadonlyArray<FsPath> | undefined,
  now: Captured,
  restored: Captured
): Effect.fn.Return<ReadonlyArray<Change>, Fault> {
  const all = history.differences(now, restored)
  if (paths === undefined) return all
  const [before, after] = [history.view(now), history.view(restored)]
  const bases: Array<readonly [key: FsPath, isThere: boolean]> = []
  for (const path of paths) bases.push([keyIn(port, path), (yield* after.stat(path)) !== undefined])
  const out: Array<Change> = []
  for (const change of all) {
    const key = keyIn(port, change.path)
    const isRequested = bases.some(([base]) => isWithin(base, key))
    const isParent = !isRequested && bases.some(([base, isThere]) => isThere && isWithin(key, base))
    if (isRequested || (isParent && (yield* before.stat(change.path))?.kind !== "directory")) out.push(change)
  }
  return out
})

const pathsExceptGit = Effect.fnUntraced(function* (
  port: Backend,
  view: Backend
): Effect.fn.Return<ReadonlyArray<FsPath>, Fault> {
  const names = new Set<string>()
  for (const child of [...(yield* port.list(root)), ...(yield* view.list(root))]) names.add(keyOf(child))
  names.delete(".git")
  return [...names] as ReadonlyArray<string> as ReadonlyArray<FsPath>
})

const isOfGit = (path: FsPath): boolean => path === ".git" || path.startsWith(".git/")

/**
 * Returns the number of bytes that the snapshots hold in addition to the current tree. Bytes that several snapshots share
 * count several times.
 */
const extraBytes = Effect.fnUntraced(function* (
  history: MemoryHistory,
  all: ReadonlyArray<HeldTree>
): Effect.fn.Return<number, Fault> {
  const now = yield* history.capture
  let bytes = 0
  for (const { captured } of all) {
    const view = history.view(captured)
    for (const { _tag, path } of history.differences(now, captured)) {
      if (_tag !== "Removed") bytes += (yield* view.stat(path))?.sizeBytes ?? 0
    }
  }
  return bytes
})

export const make = (port: Backend, history: MemoryHistory, options: LayerOptions): Strategy => {
  const all = new Map<string, HeldTree>()
  let takenCount = 0
  let newest: string | undefined
  const excludesGit = options.git === "exclude"
  const visibleSnapshots = (): ReadonlyArray<HeldTree> => [...all.values()].filter(({ isPassing }) => !isPassing)
  const choosePaths = (paths: ReadonlyArray<FsPath> | undefined, captured: Captured) =>
    !excludesGit
      ? Effect.succeed(paths)
      : paths?.includes(root) === false
        ? Effect.succeed(paths.filter((path) => !isOfGit(path)))
        : pathsExceptGit(port, history.view(captured))
  const findHeld = (kept: StoredSnapshot): Effect.Effect<HeldTree, ReturnType<typeof storeFault>> => {
    const found = all.get(kept.snapshot.snapshotId)
    return found === undefined ? Effect.fail(storeFault("unknown", "the snapshot was forgotten")) : Effect.succeed(found)
  }
  return {
    name: "memory",
    rootPath: port.info.root,
    commitRef: /^mem-[1-9][0-9]{0,15}$/,
    take: (label, { isPassing = false, snapshotId = randomUUID(), spared } = {}) =>
      Effect.flatMap(DateTime.now, (createdAt) =>
        Effect.map(history.capture, (captured) => {
          const { tag } = label
          const snapshot = new FilesystemSnapshot({
            snapshotId,
            createdAt,
            commitRef: `mem-${++takenCount}`,
            rootPath: port.info.root,
            ...(tag !== undefined && { tag })
          })
          const census = Effect.suspend(() => countIn(history.view(captured)))
          const one: HeldTree = {
            snapshot,
            label,
            captured,
            counts: census,
            isPassing,
            ...(newest !== undefined && { previous: newest })
          }
          all.set(snapshotId, one)
          if (isPassing) return one
          newest = snapshotId
          for (const { snapshot } of findExpired(visibleSnapshots(), options.retention, createdAt.epochMilliseconds, spared)) {
            all.delete(snapshot.snapshotId)
          }
          return one
        })
      ),
    list: Effect.sync(visibleSnapshots),
    find: (snapshotId) => Effect.sync(() => all.get(snapshotId)),
    restore: (kept, { dryRun, paths }) =>
      Effect.flatMap(findHeld(kept), ({ captured }) =>
        Effect.uninterruptible(
          Effect.gen(function* () {
            const now = yield* history.capture
            const wanted = yield* choosePaths(paths, captured)
            const changes = yield* changesWithin(port, history, wanted, now, captured)
            if (dryRun !== true) yield* history.restore(captured, wanted)
            return changes
          })
        )
      ),
    diff: (from, to) =>
      Effect.zipWith(
        findHeld(from),
        to === undefined ? history.capture : Effect.map(findHeld(to), ({ captured }) => captured),
        ({ captured }, other) => {
          const changes = history.differences(captured, other)
          return excludesGit ? changes.filter(({ path }) => !isOfGit(path)) : changes
        }
      ),
    tree: (kept) =>
      Effect.flatMap(findHeld(kept), ({ captured }) => Effect.map(scan(history.view(captured)), ({ tree }) => tree)),
    now: Effect.map(scan(port), ({ tree }) => tree),
    view: (kept) => Effect.map(findHeld(kept), ({ captured }) => history.view(captured)),
    forget: ({ snapshot }) =>
      Effect.sync(() => {
        all.delete(snapshot.snapshotId)
        if (newest === snapshot.snapshotId) newest = visibleSnapshots().at(-1)?.snapshot.snapshotId
      }),
    stats: Effect.suspend(() =>
      Effect.map(extraBytes(history, [...all.values()]), (bytes) => ({
        bytes,
        objects: all.size,
        snapshots: visibleSnapshots().length
      }))
    ),
    collect: Effect.void
  }
}
