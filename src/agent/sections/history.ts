import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import { SnapshotError, SnapshotRestoreError } from "../../history/errors.ts"
import { withExclusiveLock } from "../../history/replace.ts"
import type * as Snapshots from "../../history/Snapshots.ts"
import type * as SnapshotStore from "../../history/SnapshotStore.ts"
import type { Unavailable } from "../../model/FsError.ts"
import { makeTemporaryDirectory } from "./directory.ts"
import { memoized } from "./once.ts"

/** Makes the snapshot store. Without a given directory it uses a temporary one, which is private and removed with the scope. */
export const makeSnapshotStore = Effect.fnUntraced(function* (filesystem: Algebra, configuredDirectory: string | undefined) {
  const { make } = yield* Effect.promise(() => import("../../history/SnapshotStore.ts"))
  const directory = configuredDirectory ?? (yield* makeTemporaryDirectory("snapshots"))
  const makeSnapshots: Effect.Effect<SnapshotStore.Operations, SnapshotError, Filesystem | Scope.Scope> = make({ directory })
  return yield* Effect.provideService(makeSnapshots, Filesystem, filesystem)
})

/** Opens the snapshots in the filesystem's own way, or as archives if the machine has no git. */
const openSnapshots = Effect.fnUntraced(function* (filesystem: Algebra) {
  const { layer, layerArchive, Snapshots } = yield* Effect.promise(() => import("../../history/Snapshots.ts"))
  const build = (snapshotLayer: typeof layer) =>
    Effect.map(Layer.build(Layer.fresh(Layer.provide(snapshotLayer, Layer.succeed(Filesystem, filesystem)))), (built) =>
      Context.get(built, Snapshots)
    )
  return yield* Effect.catchIf(
    build(layer),
    ({ reason }) => reason === "gitMissing",
    () => build(layerArchive)
  )
})

type MakeSnapshots = Effect.Effect<Snapshots.Operations, SnapshotError>

/** Defers the making of snapshots to their first use. Every call of a tool gets the service, but few use it. */
const lazySnapshots = (filesystem: Algebra, makeSnapshots: MakeSnapshots): Snapshots.Operations => ({
  snapshot: (options) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.snapshot(options)),
  restore: (snapshot, options) =>
    Effect.flatMap(
      Effect.mapError(
        makeSnapshots,
        ({ detail }) => new SnapshotRestoreError({ snapshotId: snapshot.snapshotId, reason: "unavailable", detail })
      ),
      (snapshots) => snapshots.restore(snapshot, options)
    ),
  diff: (from, to) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.diff(from, to)),
  view: (snapshot) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.view(snapshot)),
  list: Effect.flatMap(makeSnapshots, ({ list }) => list),
  forget: (snapshot) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.forget(snapshot)),
  transaction: (effect) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.transaction(effect)),
  exclusively: (effect) => withExclusiveLock(filesystem.port, effect),
  fork: (snapshot) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.fork(snapshot)),
  merge: (fork, options) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.merge(fork, options)),
  details: (snapshot) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.details(snapshot)),
  stats: Effect.flatMap(makeSnapshots, ({ stats }) => stats),
  collect: Effect.flatMap(makeSnapshots, ({ collect }) => collect)
})

const asSnapshotError = ({ detail }: Unavailable): SnapshotError =>
  new SnapshotError({ operation: "Snapshots", reason: "unavailable", detail })

export const withSnapshots = Effect.fnUntraced(function* (filesystem: Algebra, services: Context.Context<never>) {
  const { Snapshots } = yield* Effect.promise(() => import("../../history/Snapshots.ts"))
  if (Option.isSome(Context.getOption(services, Snapshots))) return services
  const makeSnapshots = Effect.catchTag(yield* memoized(openSnapshots(filesystem)), "Unavailable", (error) =>
    Effect.fail(asSnapshotError(error))
  )
  return Context.add(services, Snapshots, lazySnapshots(filesystem, makeSnapshots)) as Context.Context<never>
})
