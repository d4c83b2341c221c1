/** Starts runners of workspaces in processes of their own. */
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { postgresClient } from "./stores/places.ts"
import { tuned } from "./workspacesSettings.ts"

const program = fileURLToPath(new URL("workspacesRunner.ts", import.meta.url))

const freePort = Effect.promise(
  () =>
    new Promise<number>((resolve, reject) => {
      const listener = createServer()
      listener.once("error", reject).listen(0, "127.0.0.1", () => {
        const { port } = listener.address() as { readonly port: number }
        listener.close(() => resolve(port))
      })
    })
)

export interface Runner {
  readonly kill: Effect.Effect<void>
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  readonly start: Effect.Effect<void>
}

/** Starts a runner, which is killed at the end of the scope. */
export const startRunner = (url: string, flag: string): Effect.Effect<Runner, never, Scope.Scope> =>
  Effect.gen(function* () {
    const port = yield* freePort
    let child: ChildProcess | undefined
    const kill = Effect.promise(async () => {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise((resolve) => child!.once("close", resolve))
      child.kill("SIGKILL")
      await ended
    })
    const start = Effect.promise(
      () =>
        new Promise<void>((resolve, reject) => {
          child = spawn(process.execPath, [program, url, String(port), flag], { stdio: ["ignore", "pipe", "ignore"] })
          child.once("exit", (code, signal) => reject(new Error(`the runner ended: ${code ?? signal}`)))
          child.stdout!.on("data", (text) => String(text).includes("started") && resolve())
        })
    )
    yield* Effect.acquireRelease(start, () => kill)
    return { kill, start, signal: (signal) => Effect.sync(() => void child?.kill(signal)) }
  })

export const clientOf = (url: string) =>
  NodeClusterSocket.layer({
    clientOnly: true,
    storage: "sql",
    shardingConfig: { ...tuned, runnerAddress: Option.none() }
  }).pipe(Layer.provide(postgresClient(url)))
