/** Tests frames that a proxy, a server or a client forges. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { connect, type Socket } from "node:net"
import { make } from "../../src/filesystem/Filesystem.ts"
import * as Frames from "../../src/remote/frames.ts"
import { impostor, pathOf } from "./relay.ts"
import { anyPort, memory, remote, serve } from "./transports.ts"
import { eventually } from "./eventually.ts"

const frame = (message: object): Uint8Array => Frames.make({}).makeUnsafe().encode(message) as Uint8Array

describe("a client of an honest server behind a proxy that forges bytes", () => {
  for (const [name, forged] of [
    [
      "the header of a message of 8 GiB",
      Uint8Array.from([...new TextEncoder().encode("fs2\n"), 255, 255, 255, 255, 255, 255, 255, 255])
    ],
    ["a text of another program", new TextEncoder().encode("Connection to host closed.\n")],
    ["a line of JSON", new TextEncoder().encode('{"_tag":"Pong"}\n')]
  ] as const) {
    it.live(`reconnects after ${name}`, () =>
      Effect.gen(function* () {
        const local = yield* memory
        yield* local.write("a.txt", "text")
        const honest = yield* serve(local)
        const clients: Array<Socket> = []
        const address = yield* impostor((client) => {
          clients.push(client)
          const server = connect({ path: pathOf(honest) }).on("error", () => {})
          client.pipe(server).pipe(client)
          client.on("close", () => server.destroy())
        })
        const fs = yield* remote(address, "3 seconds")
        assert.strictEqual(yield* fs.readString("a.txt"), "text")
        clients[0]!.write(forged)
        yield* eventually(Effect.sync(() => clients[0]!.destroyed || clients[0]!.readableEnded))
        assert.strictEqual(yield* fs.readString("a.txt"), "text")
        assert.isAbove(clients.length, 1)
      })
    )
  }
})

describe("a client whose server forges answers", () => {
  const cases: ReadonlyArray<readonly [string, (id: unknown) => object]> = [
    ["an exit that is not one", (requestId) => ({ _tag: "Exit", requestId, exit: { _tag: "Success", value: { stat: 1 } } })],
    ["an exit of nothing", (requestId) => ({ _tag: "Exit", requestId })],
    ["a part without values", (requestId) => ({ _tag: "Chunk", requestId })],
    ["a part with another type", (requestId) => ({ _tag: "Chunk", requestId, values: [{ $bytes: 4 }, "x", null] })]
  ]
  for (const tag of ["port.read", "port.listAll", "port.watch", "port.open"]) {
    it.live(
      `fails every ${tag} with a typed error`,
      () =>
        Effect.gen(function* () {
          const local = yield* memory
          for (let index = 0; index < 3000; index++) yield* local.write(`d/${index}.txt`, "text")
          const honest = yield* serve(local)
          // A call without parts ignores them.
          for (const [name, answer] of tag === "port.read" ? cases.slice(0, 2) : cases) {
            const address = yield* impostor((client) => {
              const reader = Frames.make({}).makeUnsafe()
              const server = connect({ path: pathOf(honest) }).on("error", () => {})
              server.pipe(client)
              client.on("close", () => server.destroy())
              client.on("data", (bytes) => {
                for (const message of reader.decode(bytes) as Array<{ _tag: string; id: unknown; tag: string }>) {
                  if (message._tag === "Request" && message.tag === tag) client.write(frame(answer(message.id)))
                  else server.write(frame(message))
                }
              })
            })
            const fs = yield* remote(address)
            const call: Effect.Effect<unknown, { readonly _tag: string }> =
              tag === "port.read"
                ? fs.readString("d/1.txt")
                : tag === "port.listAll"
                  ? fs.list("d")
                  : tag === "port.watch"
                    ? Stream.runDrain(fs.watch("d"))
                    : Stream.runDrain(fs.stream("d/1.txt"))
            const ended = yield* Effect.timeoutOption(Effect.flip(call), "6 seconds")
            assert.strictEqual(ended._tag, "Some", name)
            if (ended._tag === "Some") assert.include(["IoError", "Unavailable"], ended.value._tag, name)
          }
        }).pipe(Effect.scoped),
      120_000
    )
  }
})

describe("a server with a hostile client", () => {
  it.live(
    "serves other clients after a client used a request id twice, and closes the files of that client when it disconnects",
    () =>
      Effect.gen(function* () {
        const local = yield* memory
        yield* local.write("a.txt", "text")
        let open = 0
        const counting = make({
          ...local.port,
          open: (path) =>
            Effect.andThen(
              Effect.acquireRelease(
                Effect.sync(() => open++),
                () => Effect.sync(() => open--)
              ),
              local.port.open(path)
            )
        })
        const address = yield* serve(counting)
        const fs = yield* remote(address, "3 seconds")
        const socket = connect({ path: pathOf(address) }).on("error", () => {})
        const request = (tag: string, payload: object) => frame({ _tag: "Request", id: 7, tag, payload, headers: [] })
        socket.write(request("port.open", { path: "a.txt", handle: "h" }))
        yield* Effect.callback<void>((resume) => void socket.once("data", () => resume(Effect.void)))
        assert.strictEqual(open, 1)
        socket.write(request("port.info", {}))
        socket.write(request("port.read", { path: "a.txt", maxBytes: 4 }))
        yield* Effect.sleep("200 millis")
        assert.strictEqual(yield* fs.readString("a.txt"), "text")
        socket.destroy()
        yield* eventually(Effect.sync(() => open === 0))
      })
  )

  it.live("uses bounded memory if a client sends many requests over HTTP and reads no answer", () =>
    Effect.gen(function* () {
      const local = yield* memory
      const size = 512 * 1024
      yield* local.writeBytes("a.bin", new Uint8Array(size))
      const address = yield* serve(local, anyPort)
      const before = process.memoryUsage()
      const requests = Array.from({ length: 4000 }, (_, id) =>
        frame({ _tag: "Request", id, tag: "port.read", payload: { path: "a.bin", maxBytes: size }, headers: [] })
      )
      const body = Buffer.concat(requests)
      const socket = yield* Effect.acquireRelease(
        Effect.sync(() => connect({ host: "127.0.0.1", port: Number(address.slice(address.lastIndexOf(":") + 1)) })),
        (socket) => Effect.sync(() => socket.on("error", () => {}).destroy())
      )
      socket.write(`POST /rpc HTTP/1.1\r\nHost: ${address}\r\nContent-Length: ${body.length}\r\n\r\n`)
      socket.write(body)
      yield* Effect.sleep("1 second")
      const after = process.memoryUsage()
      const grown = after.arrayBuffers + after.heapUsed - before.arrayBuffers - before.heapUsed
      assert.isBelow(grown, 120 * 1024 * 1024)
    })
  )
})
