/**
 * Snapshots in memory, which hold the tree itself. Taking one costs nothing; its memory is freed with the layer or by
 * `forget`.
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
import type { LayerOptions } from "./options.ts"
import { expired } from "./retention.ts"
import type { Kept, Strategy } from "./strategy.ts"
import { FilesystemSnapshot } from "./value.ts"

interface Held extends Kept {
  readonly captured: Captured
  readonly isPassing: boolean
}

const keyIn = (port: Backend, path: FsPath): FsPath => (port.info.caseSensitive ? path : fold(path))

/**
 * Returns the changes that a restore of `paths` makes: everything at the paths and below, and the missing directories
 * above them.
 */
const within = Effect.fnUntraced(function* (
  port: Backend,
  history: MemoryHistory,
  paths: ReadonlyArray<FsPath> | undefined,
  now: Captured,
  then: Captured
): Effect.fn.Return<ReadonlyArray<Change>, Fault> {
  const all = history.differences(now, then)
  if (paths === undefined) return all
  const [before, after] = [history.view(now), history.view(then)]
  const bases: Array<readonly [key: FsPath, isThere: boolean]> = []
  for (const path of paths) bases.push([keyIn(port, path), (yield* after.stat(path)) !== undefined])
  const out: Array<Change> = []
  for (const change of all) {
    const key = keyIn(port, change.path)
    const isAsked = bases.some(([base]) => isWithin(base, key))
    const isAbove = !isAsked && bases.some(([base, isThere]) => isThere && isWithin(key, base))
    if (isAsked || (isAbove && (yield* before.stat(change.path))?.kind !== "directory")) out.push(change)
  }
  return out
})

const allButGit = Effect.fnUntraced(function* (port: Backend, view: Backend): Effect.fn.Return<ReadonlyArray<FsPath>, Fault> {
  const names = new Set<string>()
  for (const child of [...(yield* port.list(root)), ...(yield* view.list(root))]) names.add(keyOf(child))
  names.delete(".git")
  return [...names] as ReadonlyArray<string> as ReadonlyArray<FsPath>
})

const isOfGit = (path: FsPath): boolean => path === ".git" || path.startsWith(".git/")

/** Returns the bytes held by the snapshots beyond the current tree, counted once per snapshot. */
const beyond = Effect.fnUntraced(function* (history: MemoryHistory, all: ReadonlyArray<Held>): Effect.fn.Return<number, Fault> {
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
  const all = new Map<string, Held>()
  let taken = 0
  let newest: string | undefined
  const excludesGit = options.git === "exclude"
  const shown = (): ReadonlyArray<Held> => [...all.values()].filter(({ isPassing }) => !isPassing)
  const chosen = (paths: ReadonlyArray<FsPath> | undefined, captured: Captured) =>
    !excludesGit
      ? Effect.succeed(paths)
      : paths?.includes(root) === false
        ? Effect.succeed(paths.filter((path) => !isOfGit(path)))
        : allButGit(port, history.view(captured))
  const held = (kept: Kept): Effect.Effect<Held, ReturnType<typeof storeFault>> => {
    const found = all.get(kept.snapshot.snapshotId)
    return found === undefined ? Effect.fail(storeFault("unknown", "it has been forgotten")) : Effect.succeed(found)
  }
  return {
    name: "memory",
    rootPath: port.info.root,
    commitRef: /^mem-[1-9][0-9]{0,15}$/,
    take: (label, { isPassing = false, spared } = {}) =>
      Effect.flatMap(DateTime.now, (createdAt) =>
        Effect.map(history.capture, (captured) => {
          const snapshotId = randomUUID()
          const { tag } = label
          const snapshot = new FilesystemSnapshot({
            snapshotId,
            createdAt,
            commitRef: `mem-${++taken}`,
            rootPath: port.info.root,
            ...(tag !== undefined && { tag })
          })
          const census = Effect.suspend(() => countIn(history.view(captured)))
          const one: Held = { snapshot, label, captured, census, isPassing, ...(newest !== undefined && { previous: newest }) }
          all.set(snapshotId, one)
          if (isPassing) return one
          newest = snapshotId
          for (const { snapshot } of expired(shown(), options.retention, createdAt.epochMilliseconds, spared)) {
            all.delete(snapshot.snapshotId)
          }
          return one
        })
      ),
    list: Effect.sync(shown),
    find: (snapshotId) => Effect.sync(() => all.get(snapshotId)),
    restore: (kept, { dryRun, paths }) =>
      Effect.flatMap(held(kept), ({ captured }) =>
        Effect.uninterruptible(
          Effect.gen(function* () {
            const now = yield* history.capture
            const wanted = yield* chosen(paths, captured)
            const changes = yield* within(port, history, wanted, now, captured)
            if (dryRun !== true) yield* history.restore(captured, wanted)
            return changes
          })
        )
      ),
    diff: (from, to) =>
      Effect.zipWith(
        held(from),
        to === undefined ? history.capture : Effect.map(held(to), ({ captured }) => captured),
        ({ captured }, other) => {
          const changes = history.differences(captured, other)
          return excludesGit ? changes.filter(({ path }) => !isOfGit(path)) : changes
        }
      ),
    tree: (kept) => Effect.flatMap(held(kept), ({ captured }) => Effect.map(scan(history.view(captured)), ({ tree }) => tree)),
    now: Effect.map(scan(port), ({ tree }) => tree),
    view: (kept) => Effect.map(held(kept), ({ captured }) => history.view(captured)),
    forget: ({ snapshot }) =>
      Effect.sync(() => {
        all.delete(snapshot.snapshotId)
        if (newest === snapshot.snapshotId) newest = shown().at(-1)?.snapshot.snapshotId
      }),
    stats: Effect.suspend(() =>
      Effect.map(beyond(history, [...all.values()]), (bytes) => ({ bytes, objects: all.size, snapshots: shown().length }))
    ),
    collect: Effect.void
  }
}
