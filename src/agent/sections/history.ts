import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import { SnapshotError, SnapshotRestoreError } from "../../history/errors.ts"
import { alone } from "../../history/replace.ts"
import type * as Snapshots from "../../history/Snapshots.ts"
import type * as SnapshotStore from "../../history/SnapshotStore.ts"
import type { Unavailable } from "../../model/FsError.ts"
import { temporary } from "./directory.ts"
import { once } from "./once.ts"

/** Makes the snapshot store. Without a given directory it uses a temporary one, which is private and removed with the scope. */
export const store = Effect.fnUntraced(function* (filesystem: Algebra, given: string | undefined) {
  const { make } = yield* Effect.promise(() => import("../../history/SnapshotStore.ts"))
  const directory = given ?? (yield* temporary("snapshots"))
  const made: Effect.Effect<SnapshotStore.Operations, SnapshotError, Filesystem | Scope.Scope> = make({ directory })
  return yield* Effect.provideService(made, Filesystem, filesystem)
})

/** Opens the snapshots in the filesystem's own way, or as archives if the machine has no git. */
const opened = Effect.fnUntraced(function* (filesystem: Algebra) {
  const { layer, layerArchive, Snapshots } = yield* Effect.promise(() => import("../../history/Snapshots.ts"))
  const build = (way: typeof layer) =>
    Effect.map(Layer.build(Layer.fresh(Layer.provide(way, Layer.succeed(Filesystem, filesystem)))), (built) =>
      Context.get(built, Snapshots)
    )
  return yield* Effect.catchIf(
    build(layer),
    ({ reason }) => reason === "gitMissing",
    () => build(layerArchive)
  )
})

type Made = Effect.Effect<Snapshots.Operations, SnapshotError>

/** Defers the making of snapshots to their first use. Every call of a tool gets the service, but few use it. */
const lazily = (filesystem: Algebra, made: Made): Snapshots.Operations => ({
  snapshot: (options) => Effect.flatMap(made, (snapshots) => snapshots.snapshot(options)),
  restore: (snapshot, options) =>
    Effect.flatMap(
      Effect.mapError(
        made,
        ({ detail }) => new SnapshotRestoreError({ snapshotId: snapshot.snapshotId, reason: "unavailable", detail })
      ),
      (snapshots) => snapshots.restore(snapshot, options)
    ),
  diff: (from, to) => Effect.flatMap(made, (snapshots) => snapshots.diff(from, to)),
  view: (snapshot) => Effect.flatMap(made, (snapshots) => snapshots.view(snapshot)),
  list: Effect.flatMap(made, ({ list }) => list),
  forget: (snapshot) => Effect.flatMap(made, (snapshots) => snapshots.forget(snapshot)),
  transaction: (effect) => Effect.flatMap(made, (snapshots) => snapshots.transaction(effect)),
  exclusively: (effect) => alone(filesystem.port, effect),
  fork: (snapshot) => Effect.flatMap(made, (snapshots) => snapshots.fork(snapshot)),
  merge: (fork, options) => Effect.flatMap(made, (snapshots) => snapshots.merge(fork, options)),
  details: (snapshot) => Effect.flatMap(made, (snapshots) => snapshots.details(snapshot)),
  stats: Effect.flatMap(made, ({ stats }) => stats),
  collect: Effect.flatMap(made, ({ collect }) => collect)
})

const ended = ({ detail }: Unavailable): SnapshotError =>
  new SnapshotError({ operation: "Snapshots", reason: "unavailable", detail })

export const withSnapshots = Effect.fnUntraced(function* (filesystem: Algebra, services: Context.Context<never>) {
  const { Snapshots } = yield* Effect.promise(() => import("../../history/Snapshots.ts"))
  if (Option.isSome(Context.getOption(services, Snapshots))) return services
  const made = Effect.catchTag(yield* once(opened(filesystem)), "Unavailable", (error) => Effect.fail(ended(error)))
  return Context.add(services, Snapshots, lazily(filesystem, made)) as Context.Context<never>
})
