/** Snapshots in memory: the tree itself, kept. Taking one is free; what they hold goes with the layer, or when it is forgotten. */
import { randomUUID } from "node:crypto"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
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
}

const within = (paths: ReadonlyArray<FsPath> | undefined, history: MemoryHistory, now: Captured, then: Captured) => {
  const all = history.differences(now, then)
  if (paths === undefined) return all
  return all.filter(({ path }) => paths.some((base) => base === "." || path === base || path.startsWith(`${base}/`)))
}

/** What it holds that the tree does not have any more, counted once for each snapshot. */
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
  const held = (kept: Kept): Effect.Effect<Held, ReturnType<typeof storeFault>> => {
    const found = all.get(kept.snapshot.snapshotId)
    return found === undefined ? Effect.fail(storeFault("unknown", "it has been forgotten")) : Effect.succeed(found)
  }
  return {
    name: "memory",
    commitRef: /^mem-[1-9][0-9]{0,15}$/,
    take: (label, spared) =>
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
          const one: Held = { snapshot, label, captured, census, ...(newest !== undefined && { previous: newest }) }
          all.set(snapshotId, one)
          newest = snapshotId
          for (const { snapshot } of expired([...all.values()], options.retention, createdAt.epochMilliseconds, spared)) {
            all.delete(snapshot.snapshotId)
          }
          return one
        })
      ),
    list: Effect.sync(() => [...all.values()]),
    find: (snapshotId) => Effect.sync(() => all.get(snapshotId)),
    restore: (kept, { dryRun, paths }) =>
      Effect.flatMap(held(kept), ({ captured }) =>
        Effect.uninterruptible(
          Effect.flatMap(history.capture, (now): Effect.Effect<ReadonlyArray<Change>, Fault> => {
            const changes = within(paths, history, now, captured)
            return dryRun === true ? Effect.succeed(changes) : Effect.as(history.restore(captured, paths), changes)
          })
        )
      ),
    diff: (from, to) =>
      Effect.zipWith(
        held(from),
        to === undefined ? history.capture : Effect.map(held(to), ({ captured }) => captured),
        ({ captured }, other) => history.differences(captured, other)
      ),
    tree: (kept) => Effect.flatMap(held(kept), ({ captured }) => Effect.map(scan(history.view(captured)), ({ tree }) => tree)),
    now: Effect.map(scan(port), ({ tree }) => tree),
    view: (kept) => Effect.map(held(kept), ({ captured }) => history.view(captured)),
    forget: ({ snapshot }) => Effect.sync(() => void all.delete(snapshot.snapshotId)),
    stats: Effect.suspend(() =>
      Effect.map(beyond(history, [...all.values()]), (bytes) => ({ bytes, objects: all.size, snapshots: all.size }))
    ),
    collect: Effect.void
  }
}
