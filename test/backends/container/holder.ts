/**
 * Holds a container until it is killed: `node holder.ts ROOTFS STRATEGY CACHE`. Prints the process identity when the container
 * runs.
 */
import { NodeServices } from "@effect/platform-node"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Container from "../../../src/backends/Container.ts"
import * as Identity from "../../../src/runtime/processIdentity.ts"

const [rootfs = "", strategy, cache] = process.argv.slice(2)

const held = Effect.gen(function* () {
  const { filesystem, sandbox } = yield* Container.make({
    image: { rootfs },
    strategy: strategy === "exec" ? "exec" : "overlay",
    start: "eager"
  })
  yield* filesystem.write("held.txt", "x")
  yield* sandbox.exec(["sh", "-c", "setsid sleep 1000 &"])
  process.stdout.write(`${Identity.self()}\n`)
  return yield* Effect.never
})

// Effect alone does not keep a process alive.
setInterval(() => {}, 60_000)
await Effect.runPromise(
  Effect.scoped(held).pipe(
    Effect.provide(NodeServices.layer),
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ XDG_CACHE_HOME: cache, PATH: process.env["PATH"] })))
  )
)
