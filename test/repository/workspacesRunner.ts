/** A runner of workspaces in a process of its own: `node workspacesRunner.ts URL PORT`. Prints a line when it has started. */
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as Stores from "../../src/repository/Stores.ts"
import * as Workspaces from "../../src/repository/Workspaces.ts"
import { postgresClient } from "./stores/places.ts"
import { tuned } from "./workspacesSettings.ts"

const [url, port] = process.argv.slice(2)

const runner = NodeClusterSocket.layer({
  storage: "sql",
  runnerHealth: "ping",
  shardingConfig: { ...tuned, runnerAddress: Option.some(RunnerAddress.make("127.0.0.1", Number(port))) }
})
const started = Layer.effectDiscard(Effect.sync(() => process.stdout.write("started\n")))

Workspaces.layerRunner().pipe(
  Layer.merge(started),
  Layer.provide(runner),
  Layer.provide(Stores.layerSql()),
  Layer.provide(postgresClient(url!)),
  Layer.launch,
  NodeRuntime.runMain
)
