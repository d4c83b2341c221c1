import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as RpcClient from "effect/rpc/RpcClient"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import type { Backend } from "../../src/port/Backend.ts"
import * as Address from "../../src/remote/address.ts"
import * as Changes from "../../src/remote/changes.ts"
import * as Remote from "../../src/remote/Remote.ts"
import { unixAddress } from "./transports.ts"

const memory = Effect.map(InMemory.make(), make)

const serve = (fs: Algebra) =>
  Effect.gen(function* () {
    const address = yield* unixAddress
    yield* Remote.listen(address).pipe(Effect.provideService(Filesystem, fs))
    return address
  })

/** Sends requests without the checks of an honest client. */
const forge = (address: string) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Address.clientProtocol(address))
    return yield* Effect.provideContext(RpcClient.make(Remote.FilesystemRpcs, { flatten: true, disableTracing: true }), context)
  })

const remote = (address: string) =>
  Effect.map(Layer.build(Remote.layerUrl(address, { timeout: "1 second" })), (context) =>
    Effect.provideContext(Filesystem, context)
  ).pipe(Effect.flatten)

describe("a server with hostile clients", () => {
  it.live("an id that another request has used is refused, and the change does not happen", () =>
    Effect.gen(function* () {
      const local = yield* memory
      const send = yield* forge(yield* serve(local))
      const bytes = new Uint8Array(3)
      yield* send("port.write", { id: "x", path: "a.txt", mode: "create", bytes })
      const others = [
        send("port.makeDirectory", { id: "x", path: "a.txt" }),
        send("port.removeWhole", { id: "x", path: "a.txt", recursive: false }),
        send("port.write", { id: "x", path: "b.txt", mode: "create", bytes }),
        send("port.write", { id: "x", path: "a.txt", mode: "create", bytes: new Uint8Array([1, 2, 3]) }),
        send("delete", { id: "x", path: "a.txt" })
      ]
      for (const other of others) assert.strictEqual((yield* Effect.flip(other))._tag, "InvalidArgument")
      const { sizeBytes } = yield* send("port.write", { id: "x", path: "a.txt", mode: "create", bytes })
      assert.strictEqual(sizeBytes, 3)
      assert.deepStrictEqual(
        (yield* local.list()).map(({ name }) => name),
        ["a.txt"]
      )
    })
  )

  it.effect("the answers that a server remembers take a bounded space", () =>
    Effect.gen(function* () {
      const changes = Changes.make(yield* Effect.scope)
      const runs: Array<number> = []
      const change = (index: number) =>
        changes.run(
          `e${index}`,
          Effect.sync(() => {
            runs.push(index)
            return { diff: String(index % 10).repeat(4 * 1024 * 1024) }
          })
        )
      for (let index = 0; index < 20; index++) yield* change(index)
      assert.isAtMost(changes.size().characters, 40 * 1024 * 1024)
      assert.strictEqual((yield* change(19)).diff.length, 4 * 1024 * 1024)
      // The server never runs a change again, even if it no longer has the answer.
      assert.strictEqual((yield* Effect.flip(change(0)))._tag, "Unavailable")
      assert.lengthOf(runs, 20)
      for (let index = 0; index < 110_000; index++) yield* changes.cancel(`c${index}`)
      assert.isAtMost(changes.size().changes, 100_001)
    })
  )

  it.live("an interrupted stream to a file does not publish later", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "old")
      const write: Backend["write"] = (path, bytes, mode, how) =>
        local.port.write(
          path,
          bytes,
          mode,
          how?.commit && { commit: (publish) => how.commit!(Effect.andThen(Effect.sleep("400 millis"), publish)) }
        )
      const fs = yield* remote(yield* serve(make({ ...local.port, write, perform: undefined })))
      const content = Stream.make(new TextEncoder().encode("streamed"))
      const writing = yield* Effect.forkChild(Stream.run(content, fs.sink("a.txt")))
      yield* Effect.sleep("150 millis")
      yield* Fiber.interrupt(writing)
      yield* fs.write("a.txt", "new")
      yield* Effect.sleep("500 millis")
      assert.strictEqual(yield* local.readString("a.txt"), "new")
    })
  )
})
