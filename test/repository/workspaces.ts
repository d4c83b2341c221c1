/** A cluster of one runner in memory, for tests. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as MessageStorage from "effect/cluster/MessageStorage"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as Sharding from "effect/cluster/Sharding"
import * as Stores from "../../src/repository/Stores.ts"
import * as Workspaces from "../../src/repository/Workspaces.ts"

/** The services of effect's TestRunner, with other settings. */
export const cluster = (config: Parameters<typeof ShardingConfig.layer>[0]) =>
  Sharding.layer.pipe(
    Layer.provideMerge(Runners.layerNoop),
    Layer.provideMerge(MessageStorage.layerMemory),
    Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
    Layer.provide(ShardingConfig.layer({ sendRetryInterval: "5 millis", ...config }))
  )

export const runner = (
  options: Workspaces.RunnerOptions = {},
  config: Parameters<typeof ShardingConfig.layer>[0] = {},
  stores: typeof Stores.layerMemory = Stores.layerMemory
) => Layer.provideMerge(Layer.provideMerge(Workspaces.layerRunner(options), cluster(config)), stores)

let shared: Effect.Effect<Context.Context<Layer.Success<ReturnType<typeof runner>>>> | undefined

/** A runner that all tests of a file share, because a cluster takes a while to start. */
export const sharedRunner = Layer.effectContext(
  Effect.suspend(() => (shared ??= Effect.runSync(Effect.cached(Layer.buildWithScope(runner(), Scope.makeUnsafe())))) as never)
) as ReturnType<typeof runner>
