/**
 * Provides snapshots to a server, in the same store as the other commands use for this root. The store is opened at first use,
 * because finding git and making a store would delay every client's start.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import { type FilesystemSnapshot, type Operations, Snapshots } from "../history/Snapshots.ts"
import type { McpServeInput } from "./mcpServe.ts"
import { Settings } from "./settings.ts"
import { Screen } from "./screen.ts"
import { makeParent, storeDirectory } from "./snapshotStore.ts"

const loadSnapshots = Effect.promise(() => import("../history/Snapshots.ts"))

const toRestoreError =
  ({ snapshotId }: FilesystemSnapshot) =>
  ({ detail }: SnapshotError) =>
    new SnapshotRestoreError({ snapshotId, reason: "unavailable", detail })

const hideStorePath =
  (gitDir: string) =>
  ({ detail, operation, reason }: SnapshotError): SnapshotError =>
    new SnapshotError({ operation, reason, detail: detail.replaceAll(gitDir, "the store") })

const deferOpening = (open: Effect.Effect<Operations, SnapshotError>): Operations => ({
  snapshot: (options) => Effect.flatMap(open, (self) => self.snapshot(options)),
  restore: (snapshot, options) =>
    Effect.flatMap(Effect.mapError(open, toRestoreError(snapshot)), (self) => self.restore(snapshot, options)),
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
        Effect.andThen(loadSnapshots),
        Effect.flatMap(({ layerGit }) => Layer.buildWithScope(layerGit({ gitDir, anyRoot }), scope)),
        Effect.map((built) => Context.get(built, Snapshots)),
        Effect.mapError(hideStorePath(gitDir)),
        Effect.provideContext(context)
      ) as Effect.Effect<Operations, SnapshotError>
      // Do not cache a failure: the next attempt may succeed, for example when git is installed or the disk has room.
      return deferOpening(yield* Effect.cachedWithTTL(opened, (exit) => (Exit.isSuccess(exit) ? Infinity : 0)))
    })
  )

const noSnapshotsLayer = Layer.empty as unknown as ReturnType<typeof kept>

/**
 * Provides the snapshots. If they cannot be kept, there are none, with a note; if they were requested by a flag, this fails.
 */
export const snapshotsLayer = ({ anyRoot, snapshots }: Pick<McpServeInput, "anyRoot" | "snapshots">) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { backend } = yield* Settings
      if (snapshots === false) return noSnapshotsLayer
      if (backend === "memory") return (yield* loadSnapshots).layer
      if (snapshots === true) return openedAtOnce(kept(yield* storeDirectory(undefined), anyRoot))
      const { warn } = yield* Screen
      return yield* Effect.matchEffect(storeDirectory(undefined), {
        onSuccess: (directory) => Effect.succeed(kept(directory, anyRoot)),
        onFailure: ({ message }) => Effect.as(warn(`note: no snapshots, ${message}`), noSnapshotsLayer)
      })
    })
  )

/** Opens the store at once, so that an error appears at the start. */
const openedAtOnce = (layer: ReturnType<typeof kept>) =>
  Layer.tap(layer, (context) => Effect.asVoid(Context.get(context, Snapshots).list))

/** Provides snapshots whose operations all fail, so that the snapshot tools stay listed while the roots change. */
export const noSnapshots = (detail: string) =>
  Layer.succeed(Snapshots, deferOpening(Effect.fail(new SnapshotError({ operation: "store", reason: "unavailable", detail }))))
