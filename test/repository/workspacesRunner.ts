/**
 * A runner of workspaces in a process of its own: `node workspacesRunner.ts URL PORT FLAG`. Prints a line when it has started.
 *
 * The first runner that commits a write of `log.txt` to the workspace `doomed` makes the file FLAG, and dies before it answers.
 */
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { writeFileSync } from "node:fs"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import { type Head, HeadStore } from "../../src/repository/HeadStore.ts"
import * as Stores from "../../src/repository/Stores.ts"
import * as Workspaces from "../../src/repository/Workspaces.ts"
import { postgresClient } from "./stores/places.ts"
import { tuned } from "./workspacesSettings.ts"

const [url, port, flag] = process.argv.slice(2)

const runner = NodeClusterSocket.layer({
  storage: "sql",
  runnerHealth: "ping",
  shardingConfig: { ...tuned, runnerAddress: Option.some(RunnerAddress.make("127.0.0.1", Number(port))) }
})
const started = Layer.effectDiscard(Effect.sync(() => process.stdout.write("started\n")))

const die = (): void => {
  try {
    writeFileSync(flag!, "", { flag: "wx" })
  } catch {
    return
  }
  process.kill(process.pid, "SIGKILL")
}

const heads = Layer.effect(
  HeadStore,
  Effect.map(HeadStore, (heads) => ({
    ...heads,
    compareAndSet: (workspace: string, expected: Head | undefined, next: Head) =>
      Effect.tap(heads.compareAndSet(workspace, expected, next), (won) =>
        Effect.sync(() => {
          if (won && workspace === "doomed" && next.message === "write log.txt") die()
        })
      )
  }))
)

Workspaces.layerRunner().pipe(
  Layer.merge(started),
  Layer.provide(runner),
  Layer.provide(heads),
  Layer.provide(Stores.layerSql()),
  Layer.provide(postgresClient(url!)),
  Layer.launch,
  NodeRuntime.runMain
)
