/** Tests connections whose other side speaks another version, lies about lengths, reads nothing or sends garbage. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as RpcServer from "effect/rpc/RpcServer"
import { connect, type Socket } from "node:net"
import { runInNewContext } from "node:vm"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Frames from "../../src/remote/frames.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { maxContentBytes, version } from "../../src/remote/protocol.ts"
import * as Remote from "../../src/remote/Remote.ts"
import { concatenate } from "../../src/runtime/buffer.ts"
import { eventually } from "./eventually.ts"
import { impostor, pathOf } from "./relay.ts"
import { anyPort, memory, remote, serve, unixAddress } from "./transports.ts"

const encoder = new TextEncoder()

const request = (tag: string, payload: object, id: number | string = 1): Uint8Array =>
  Frames.make({}).makeUnsafe().encode({ _tag: "Request", id, tag, payload, headers: [] }) as Uint8Array

const header = (jsonBytes: number, contentBytes: number): Uint8Array => {
  const bytes = new Uint8Array(12)
  bytes.set(encoder.encode(`fs${version}\n`))
  const view = new DataView(bytes.buffer)
  view.setUint32(4, jsonBytes)
  view.setUint32(8, contentBytes)
  return bytes
}

/** Sends bytes to a server, and returns what it answers until it closes the connection, or until the answer is complete. */
const exchange = (address: string, bytes: Uint8Array, isComplete = (_: string) => false) =>
  Effect.callback<Buffer>((resume) => {
    const answers: Array<Buffer> = []
    const socket = connect({ path: pathOf(address) })
    socket.on("error", () => {})
    socket.on("data", (answer) => {
      answers.push(answer)
      if (isComplete(Buffer.concat(answers).toString())) socket.destroy()
    })
    socket.on("close", () => resume(Effect.succeed(Buffer.concat(answers))))
    socket.write(bytes)
    return Effect.sync(() => socket.destroy())
  })

/** Opens a WebSocket without reading from it. */
const openWebSocket = (address: string): Socket => {
  const socket = connect({ host: "127.0.0.1", port: Number(address.slice(address.lastIndexOf(":") + 1)) })
  const lines = ["GET /rpc HTTP/1.1", `Host: ${address}`, "Connection: Upgrade", "Upgrade: websocket"]
  lines.push("Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`, "", "")
  socket.write(lines.join("\r\n"))
  return socket
}

/** A binary message of at most 64 KiB from the client of a WebSocket, with a mask of zeros. */
const webSocketFrame = (bytes: Uint8Array): Uint8Array =>
  Buffer.concat([Uint8Array.of(0x82, 0x80 | 126, bytes.length >> 8, bytes.length & 255, 0, 0, 0, 0), bytes])

/** Waits until a state of this process stays the same over many turns of its event loop. */
const quiet = async (state: () => string): Promise<void> => {
  for (let before = state(), turns = 0; turns < 1000; turns++) {
    await new Promise((resolve) => setImmediate(resolve))
    const now = state()
    if (now !== before) turns = 0
    before = now
  }
}

describe("a server with a hostile or slow client", () => {
  it.live("closes a connection that announces a message that is too long, and serves other connections", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "text")
      const address = yield* serve(local)
      const fs = yield* remote(address)
      for (const [json, content] of [
        [0xffff_ffff, 0xffff_ffff],
        [10, 0xffff_ffff],
        [Frames.maxFrameBytes, 1]
      ] as const) {
        assert.lengthOf(yield* exchange(address, header(json, content)), 0)
        assert.strictEqual(yield* fs.readString("a.txt"), "text")
      }
    })
  )

  it.live("refuses a message that refers to content that it does not have", () =>
    Effect.gen(function* () {
      const local = yield* memory
      const address = yield* serve(local)
      const json = encoder.encode(
        JSON.stringify({
          _tag: "Request",
          id: 1,
          tag: "port.write",
          payload: { id: "x", path: "a.txt", mode: "create", bytes: { $bytes: 9 } },
          headers: []
        })
      )
      const bytes = Uint8Array.of(...header(json.length, 4), ...json, 1, 2, 3, 4)
      const answer = yield* exchange(address, bytes, (text) => text.includes("Defect"))
      assert.include(answer.toString(), "bytes that it does not contain")
      assert.lengthOf(yield* local.list(), 0)
    })
  )

  it.live("discards a frame that ends early", () =>
    Effect.gen(function* () {
      const local = yield* memory
      const address = yield* serve(local)
      const fs = yield* remote(address)
      const bytes = new Uint8Array(1000)
      const frame = request("port.write", {
        id: "x",
        path: "a.txt",
        mode: "create",
        bytes: Buffer.from(bytes).toString("base64")
      })
      for (const length of [1, 11, 12, 100, frame.length - 1]) {
        yield* Effect.promise(
          () =>
            new Promise<void>((resolve) => {
              const socket = connect({ path: pathOf(address) })
              socket.on("close", () => resolve())
              socket.end(frame.subarray(0, length), () => socket.destroy())
            })
        )
      }
      assert.isFalse(yield* fs.exists("a.txt"))
    })
  )

  for (const [transport, listen, open, wrap] of [
    ["a Unix socket", unixAddress, (address: string) => connect({ path: pathOf(address) }), (frame: Uint8Array) => frame],
    ["WebSocket", anyPort, openWebSocket, webSocketFrame]
  ] as const) {
    it.live(`uses bounded memory if a client sends requests over ${transport} and reads no answer`, () =>
      Effect.gen(function* () {
        const local = yield* memory
        const size = 512 * 1024
        yield* local.writeBytes("a.bin", new Uint8Array(size))
        let reads = 0
        const counting = make({
          ...local.port,
          perform: undefined,
          open: (path) =>
            Effect.suspend(() => {
              reads++
              return local.port.open(path)
            })
        })
        const address = yield* Effect.provideService(Remote.listen(yield* listen), Filesystem, counting)
        const before = process.memoryUsage()
        const socket = yield* Effect.acquireRelease(
          Effect.sync(() => open(address).on("error", () => {})),
          (socket) => Effect.sync(() => socket.destroy())
        )
        for (let index = 0; index < 4000; index++) {
          socket.write(wrap(request("port.read", { path: "a.bin", maxBytes: size }, index)))
          socket.write(wrap(request("port.info", {}, `i${index}`)))
        }
        yield* Effect.promise(() => quiet(() => `${reads} ${socket.writableLength}`))
        const after = process.memoryUsage()
        const grown = after.arrayBuffers + after.heapUsed - before.arrayBuffers - before.heapUsed
        // All answers together would have two gigabytes.
        assert.isBelow(grown, 120 * 1024 * 1024)
        assert.isAbove(reads, 0)
        assert.isBelow(reads, 200)
        // Other clients are served, and this one too as soon as it reads.
        const fs = yield* remote(address.startsWith("unix:") ? address : `ws://${address}`)
        assert.lengthOf((yield* fs.readBytes("a.bin")).content, size)
        let received = 0
        yield* Effect.callback<void>((resume) => {
          socket.on("data", (bytes) => {
            received += bytes.length
            if (received > 100 * size) resume(Effect.void)
          })
        })
      })
    )
  }

  it.live("stops reading a stream that its client interrupts", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.writeBytes("a.bin", new Uint8Array(8 * 1024 * 1024))
      const closed = yield* Deferred.make<void>()
      const opened = yield* Deferred.make<void>()
      const watched = make({
        ...local.port,
        perform: undefined,
        open: (path) =>
          Effect.andThen(
            Effect.acquireRelease(Deferred.succeed(opened, undefined), () => Deferred.succeed(closed, undefined)),
            local.port.open(path)
          )
      })
      const fs = yield* remote(yield* serve(watched))
      const reading = yield* Effect.forkChild(Stream.runForEach(fs.stream("a.bin"), () => Effect.never))
      yield* Deferred.await(opened)
      assert.isFalse(yield* Deferred.isDone(closed))
      yield* Fiber.interrupt(reading)
      yield* Deferred.await(closed)
    })
  )
})

describe("a client with a slow consumer", () => {
  it.live("receives other answers while parts of a stream wait", () =>
    Effect.gen(function* () {
      const local = yield* memory
      // Each part of a walk has at most 2,000 entries, and a client queues 16 parts.
      const count = 50_000
      for (let index = 0; index < count; index++) yield* local.write(`d${index % 10}/${index}.txt`, "")
      const fs = yield* remote(yield* serve(local))
      let seen = 0
      yield* Stream.runForEach(fs.walk(), ({ path }) =>
        ++seen === 1 ? Effect.andThen(Effect.sleep("500 millis"), fs.stat(path)) : Effect.void
      )
      assert.strictEqual(seen, count + 10)
    })
  )
})

describe("a client and a server of different versions", () => {
  it.live("a client of version 1 learns the version of the server", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "text")
      const address = yield* serve(local)
      const answer = yield* exchange(
        address,
        encoder.encode(
          `${JSON.stringify({ _tag: "Request", id: "1", tag: "port.info", payload: {}, headers: [] })}\n` +
            `${JSON.stringify({ _tag: "Request", id: "2", tag: "port.read", payload: { path: "a.txt", maxBytes: 9 }, headers: [] })}\n`
        ),
        (text) => text.split("\n").length === 3
      )
      const lines = answer.toString().trim().split("\n")
      const [info, read] = lines
        .map((line) => JSON.parse(line) as { requestId: string; exit: { value: { version: number; bytes: string } } })
        .sort((a, b) => Number(a.requestId) - Number(b.requestId))
      assert.strictEqual(info!.exit.value.version, version)
      assert.strictEqual(Buffer.from(read!.exit.value.bytes, "base64").toString(), "text")
    })
  )

  it.live("the layer fails with Unavailable, which names both versions, if the server has version 1", () =>
    Effect.gen(function* () {
      const answering = yield* impostor((socket) => {
        const reader = RpcSerialization.ndjson.makeUnsafe()
        socket.on("data", (bytes) => {
          try {
            reader.decode(bytes)
          } catch {
            socket.write(reader.encode({ _tag: "Defect", defect: "not JSON" })!)
          }
        })
      })
      const error = yield* Effect.flip(remote(answering))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "version 1 of the protocol")
      assert.include(error.message, `version ${version}`)
    })
  )

  it.live("the layer fails with Unavailable, which names both versions, if the server has a later version", () =>
    Effect.gen(function* () {
      const later = yield* impostor((socket) => socket.on("data", () => socket.write("fs9\n anything \u0000\u0001")))
      const error = yield* Effect.flip(remote(later))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "version 9 of the protocol")
      assert.include(error.message, `version ${version}`)
    })
  )

  it.live("a client of a later version learns the version of the server", () =>
    Effect.gen(function* () {
      const address = yield* serve(yield* memory)
      const answer = yield* exchange(address, encoder.encode("fs9\n anything fs9\n"), (text) => text.includes("Defect"))
      assert.strictEqual(answer.subarray(0, 4).toString(), `fs${version}\n`)
      assert.include(answer.toString(), "version 9 of the protocol")
    })
  )
})

describe("the protocol of a remote filesystem", () => {
  it.live("a client over effect/rpc with lines of JSON reads the bytes that it has written", () =>
    Effect.gen(function* () {
      const local = yield* memory
      const address = yield* serve(local)
      const { layerNet } = yield* Effect.promise(() => import("@effect/platform-node/NodeSocket"))
      const protocol = RpcClient.layerProtocolSocket().pipe(
        Layer.provide([layerNet({ path: pathOf(address) }), RpcSerialization.layerNdjson])
      )
      const context = yield* Layer.build(Layer.provide(Remote.layer(), protocol))
      const fs = yield* Effect.provideContext(Filesystem, context)
      const bytes = new Uint8Array(2000).map((_, index) => index)
      yield* fs.writeBytes("a.bin", bytes)
      assert.deepStrictEqual((yield* fs.readBytes("a.bin")).content, bytes)
    })
  )

  it.live("a client over effect/rpc with its binary serialization reads the bytes that it has written", () =>
    Effect.gen(function* () {
      const local = yield* memory
      const address = yield* unixAddress
      const { layer } = yield* Effect.promise(() => import("@effect/platform-node/NodeSocketServer"))
      const { layerNet } = yield* Effect.promise(() => import("@effect/platform-node/NodeSocket"))
      const serialization = RpcSerialization.layerSchemaBinary()
      const served = Remote.layerServer().pipe(
        Layer.provide(RpcServer.layerProtocolSocketServer),
        Layer.provide([layer({ path: pathOf(address) }), serialization, Layer.succeed(Filesystem, local)])
      )
      yield* Layer.build(served)
      const protocol = RpcClient.layerProtocolSocket().pipe(Layer.provide([layerNet({ path: pathOf(address) }), serialization]))
      const context = yield* Layer.build(Layer.provide(Remote.layer(), protocol))
      const fs = yield* Effect.provideContext(Filesystem, context)
      const bytes = new Uint8Array(2000).map((_, index) => index)
      yield* fs.writeBytes("a.bin", bytes)
      assert.deepStrictEqual((yield* fs.readBytes("a.bin")).content, bytes)
    })
  )
})

describe("a stream that is written", () => {
  it.live("arrives in full messages, even if its producer sends small chunks and uses one array for all", () =>
    Effect.gen(function* () {
      const backend = yield* InMemory.make()
      const sizes: Array<number> = []
      const counting: Backend = {
        ...backend,
        write: (path, bytes, mode, how) =>
          backend.write(
            path,
            bytes instanceof Uint8Array ? bytes : Stream.tap(bytes, ({ length }) => Effect.sync(() => void sizes.push(length))),
            mode,
            how
          )
      }
      const fs = yield* remote(yield* serve(make(counting)))
      const array = new Uint8Array(10_000)
      const chunks = Stream.map(Stream.rechunk(Stream.range(1, 120), 1), (value) => array.fill(value))
      yield* Stream.run(chunks, fs.sink("a.bin"))
      assert.deepStrictEqual(sizes, [maxContentBytes, maxContentBytes, 1_200_000 - 2 * maxContentBytes])
      const expected = new Uint8Array(1_200_000).map((_, index) => 1 + Math.floor(index / 10_000))
      assert.strictEqual(Buffer.compare((yield* fs.readBytes("a.bin")).content, expected), 0)

      sizes.length = 0
      const mixed = [3, maxContentBytes, 0, 2 * maxContentBytes + 5].map((length, index) =>
        new Uint8Array(length).map((_, at) => at + index)
      )
      yield* Stream.run(Stream.fromArray(mixed), fs.sink("b.bin"))
      assert.deepStrictEqual(sizes, [maxContentBytes, maxContentBytes, maxContentBytes, 8])
      assert.strictEqual(Buffer.compare((yield* fs.readBytes("b.bin")).content, concatenate(mixed)), 0)
    })
  )

  it.live("takes little memory while its chunks wait, even if many streams are open", () =>
    Effect.gen(function* () {
      const fs = yield* remote(yield* serve(yield* memory))
      const before = process.memoryUsage().arrayBuffers
      let waiting = 0
      const slow = Stream.concat(
        Stream.make(new Uint8Array(10)),
        Stream.unwrap(
          Effect.sync(() => {
            waiting++
            return Stream.never
          })
        )
      )
      for (let index = 0; index < 100; index++) yield* Effect.forkScoped(Stream.run(slow, fs.sink(`${index}.bin`)))
      yield* eventually(Effect.sync(() => waiting === 100))
      assert.isBelow(process.memoryUsage().arrayBuffers - before, 20 * 1024 * 1024)
    })
  )
})

describe("bytes of another realm", () => {
  for (const size of [10, 100_000, 600_000]) {
    it.live(`are written and read: ${size} bytes`, () =>
      Effect.gen(function* () {
        const foreign = runInNewContext(`new Uint8Array(${size}).fill(7)`) as Uint8Array
        assert.notInstanceOf(foreign, Uint8Array)
        const backend = yield* InMemory.make()
        const foreignReads: Backend = {
          ...backend,
          perform: undefined,
          open: (path) =>
            Effect.map(backend.open(path), (handle) => ({
              ...handle,
              read: (offset, length) => Effect.map(handle.read(offset, length), ({ length }) => foreign.subarray(0, length))
            }))
        }
        const fs = yield* remote(yield* serve(make(foreignReads)))
        yield* fs.writeBytes("a.bin", foreign)
        yield* Stream.run(Stream.make(foreign), fs.sink("b.bin"))
        for (const path of ["a.bin", "b.bin"]) {
          assert.strictEqual(Buffer.compare((yield* fs.readBytes(path)).content, new Uint8Array(size).fill(7)), 0, path)
        }
      })
    )
  }
})

describe("a client of a server that sends garbage", () => {
  for (const [name, answer] of [
    ["bytes of no protocol", (socket: Socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n")],
    ["zeros without end", (socket: Socket) => void setInterval(() => socket.write(new Uint8Array(65_536)), 1).unref()],
    ["the header of a message of 8 GiB", (socket: Socket) => socket.write(header(0xffff_ffff, 0xffff_ffff))],
    ["half a frame", (socket: Socket) => socket.end(header(1000, 1000))],
    ["a frame that is not JSON", (socket: Socket) => socket.write(Uint8Array.of(...header(2, 0), 1, 2))],
    ["a frame of null", (socket: Socket) => socket.write(Uint8Array.of(...header(4, 0), ...encoder.encode("null")))]
  ] as const) {
    it.live(`fails with Unavailable: ${name}`, () =>
      Effect.gen(function* () {
        const address = yield* impostor((socket) => socket.once("data", () => answer(socket)))
        const error = yield* Effect.flip(remote(address))
        assert.strictEqual(error._tag, "Unavailable")
      })
    )
  }
})
