/**
 * Snapshots for a server: in the store that the other commands keep for this root, opened when a tool first asks, since looking for git
 * and making a store would keep every client waiting at the start.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import { type FilesystemSnapshot, type Operations, Snapshots } from "../history/Snapshots.ts"
import type { Input } from "./mcpServe.ts"
import { Settings } from "./settings.ts"
import { Screen } from "./screen.ts"
import { makeParent, storeDirectory } from "./snapshotStore.ts"

const load = Effect.promise(() => import("../history/Snapshots.ts"))

const unrestorable =
  ({ snapshotId }: FilesystemSnapshot) =>
  ({ detail }: SnapshotError) =>
    new SnapshotRestoreError({ snapshotId, reason: "unavailable", detail })

/** Where the store is on the machine is nobody's business who works on what is in it. */
const withoutPlace =
  (gitDir: string) =>
  ({ detail, operation, reason }: SnapshotError): SnapshotError =>
    new SnapshotError({ operation, reason, detail: detail.replaceAll(gitDir, "the store") })

/** The same operations, each of which opens the store if none has yet. */
const over = (open: Effect.Effect<Operations, SnapshotError>): Operations => ({
  snapshot: (options) => Effect.flatMap(open, (self) => self.snapshot(options)),
  restore: (snapshot, options) =>
    Effect.flatMap(Effect.mapError(open, unrestorable(snapshot)), (self) => self.restore(snapshot, options)),
  diff: (from, to) => Effect.flatMap(open, (self) => self.diff(from, to)),
  view: (snapshot) => Effect.flatMap(open, (self) => self.view(snapshot)),
  list: Effect.flatMap(open, (self) => self.list),
  forget: (snapshot) => Effect.flatMap(open, (self) => self.forget(snapshot)),
  transaction: (effect) => Effect.flatMap(open, (self) => self.transaction(effect)),
  fork: (snapshot) => Effect.flatMap(open, (self) => self.fork(snapshot)),
  merge: (fork, options) => Effect.flatMap(open, (self) => self.merge(fork, options)),
  details: (snapshot) => Effect.flatMap(open, (self) => self.details(snapshot)),
  stats: Effect.flatMap(open, (self) => self.stats),
  collect: Effect.flatMap(open, (self) => self.collect)
})

const kept = (gitDir: string, anyRoot: boolean) =>
  Layer.effect(
    Snapshots,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const context = yield* Effect.context<never>()
      const opened = makeParent(gitDir).pipe(
        Effect.andThen(load),
        Effect.flatMap(({ layerGit }) => Layer.buildWithScope(layerGit({ gitDir, anyRoot }), scope)),
        Effect.map((built) => Context.get(built, Snapshots)),
        Effect.mapError(withoutPlace(gitDir)),
        Effect.provideContext(context)
      ) as Effect.Effect<Operations, SnapshotError>
      // What has failed may work when git is there, or the disk has room again.
      return over(yield* Effect.cachedWithTTL(opened, (exit) => (Exit.isSuccess(exit) ? Infinity : 0)))
    })
  )

const none = Layer.empty as unknown as ReturnType<typeof kept>

/** Where there is no place to keep them: none, with a word why; or an error, for who has asked for them. */
export const snapshotsLayer = ({ anyRoot, snapshots }: Pick<Input, "anyRoot" | "snapshots">) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { backend } = yield* Settings
      if (snapshots === false) return none
      if (backend === "memory") return (yield* load).layer
      if (snapshots === true) return checked(kept(yield* storeDirectory(undefined), anyRoot))
      const { warn } = yield* Screen
      return yield* Effect.matchEffect(storeDirectory(undefined), {
        onSuccess: (directory) => Effect.succeed(kept(directory, anyRoot)),
        onFailure: ({ message }) => Effect.as(warn(`note: no snapshots, ${message}`), none)
      })
    })
  )

/** Opens the store at once. */
const checked = (layer: ReturnType<typeof kept>) =>
  Layer.tap(layer, (context) => Effect.asVoid(Context.get(context, Snapshots).list))

/** None of which can be taken, so that the tools for them stay where files that have none come and go. */
export const noSnapshots = (detail: string) =>
  Layer.succeed(Snapshots, over(Effect.fail(new SnapshotError({ operation: "store", reason: "unavailable", detail }))))
