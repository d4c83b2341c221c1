/**
 * Workspaces that a cluster of machines serves, each with one owner at a time.
 *
 * Each runner of the cluster provides `layerRunner`. A program that uses a workspace provides `layer`, and then has an ordinary
 * Filesystem. The cluster (effect/cluster) decides which runner owns a workspace, and starts the workspace again on another
 * runner if its owner disappears.
 *
 * - The files live in the stores of a Repository. A runner keeps only caches, so no data is lost if the runner dies.
 * - Two runners may believe for a short time that they own the same workspace, for example after a runner was paused. Each commit
 *   replaces the head by compare-and-set, so the history stays linear.
 * - Each change is made once, because one commit contains the change and its answer. If the owner disappears, the call is
 *   sent again, and the next owner finds the answer or makes the change. Answers are kept for 10 minutes, up to 1 MiB. Reads
 *   are sent again.
 * - If a call is not answered in time, it fails with Unavailable. A change may then have been made, or may be made later if
 *   the owner was only paused.
 *
 * The guide `workspaces-cluster.md` shows a runner and a client.
 *
 * Limits: the runners trust each other and their clients, without a token. Whoever can reach the port of a runner can use all
 * workspaces. Snapshots of a workspace are not served; use Repository on the same stores. A stream fails if the workspace moves
 * to another owner. The clocks of clients may be wrong, but those of the runners must agree: if the clock of a runner is set
 * back, the workspace may refuse changes until the clock has its former time again.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Entity from "effect/cluster/Entity"
import type * as Sharding from "effect/cluster/Sharding"
import type * as RpcGroup from "effect/rpc/RpcGroup"
import type { Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { BackendError, InvalidArgument } from "../model/FsError.ts"
import type { FilesystemRpcs } from "../remote/protocol.ts"
import type { BlobStore } from "./BlobStore.ts"
import type { HeadStore } from "./HeadStore.ts"

/**
 * The options of a runner.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunnerOptions {
  /** The durability of changes, as for `Repository.layer`. @default "batched" */
  readonly durability?: "each" | "batched" | undefined
  /** The author in the heads of the commits. @default "fs-algebra" */
  readonly author?: string | undefined
  /** The time without a request after which a runner releases a workspace, at least 5 seconds. @default 5 minutes */
  readonly maxIdleTime?: Duration.Input | undefined
  /** The maximum number of concurrent requests for one workspace. More requests wait at the client. @default 4096 */
  readonly maxRequests?: number | undefined
  /** The size of the cache of each workspace in use, in bytes. @default 8 MiB */
  readonly cacheBytes?: number | undefined
}

/**
 * The options of a client.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClientOptions {
  /**
   * The time without an answer after which a call fails with `Unavailable`. This time should be longer than the cluster needs
   * to replace a lost runner.
   * @default 45 seconds
   */
  readonly timeout?: Duration.Input | undefined
}

// Load effect/cluster only in programs that use it.
const loadEntity = Effect.promise(() => import("./cluster/entity.ts"))
const loadRunner = Effect.promise(() => import("./cluster/runner.ts"))
const loadClient = Effect.promise(() => import("./cluster/client.ts"))

/**
 * Returns the entity for effect/cluster. The id of an entity is the name of its workspace, and its protocol is the protocol of
 * `Remote`.
 *
 * @category models
 * @since 0.1.0
 */
export const entity: Effect.Effect<Entity.Entity<"fs-algebra/Workspace", RpcGroup.Rpcs<typeof FilesystemRpcs>>> = Effect.map(
  loadEntity,
  ({ entity }) => entity
)

/**
 * Serves workspaces on this runner. All runners of a cluster must provide the same stores. A workspace that does not exist is
 * created empty at its first use.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRunner = (
  options: RunnerOptions = {}
): Layer.Layer<never, never, Sharding.Sharding | BlobStore | HeadStore> =>
  Layer.unwrap(Effect.map(loadRunner, ({ layerRunner }) => layerRunner(options)))

/**
 * Returns a workspace of the cluster.
 *
 * Fails with Unavailable if no runner answers, and with InvalidArgument if the name is not valid for a workspace.
 *
 * @category constructors
 * @since 0.1.0
 */
export const client = (
  workspace: string,
  options: ClientOptions = {}
): Effect.Effect<Algebra, BackendError | InvalidArgument, Sharding.Sharding> =>
  Effect.flatMap(loadClient, ({ client }) => client(workspace, options))

/**
 * Provides a workspace of the cluster, as `client` returns it.
 *
 * @example
 * ```ts
 * import { TestRunner } from "effect/cluster"
 *
 * const program = Filesystem.Filesystem.use((fs) =>
 *   Effect.andThen(fs.write("diary.md", "Rain."), fs.readString("diary.md"))
 * )
 * const cluster = Layer.provideMerge(Workspaces.layerRunner(), TestRunner.layer)
 * const layer = Layer.provide(Workspaces.layer("team"), Layer.provide(cluster, Stores.layerMemory))
 * yield* Effect.provide(program, layer) // => "Rain."
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  workspace: string,
  options: ClientOptions = {}
): Layer.Layer<Filesystem, BackendError | InvalidArgument, Sharding.Sharding> =>
  Layer.unwrap(Effect.map(loadClient, ({ layer }) => layer(workspace, options)))
