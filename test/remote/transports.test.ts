import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { request } from "node:http"
import { connect } from "node:net"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { version } from "../../src/remote/protocol.ts"
import * as Remote from "../../src/remote/Remote.ts"
import { inMemory, posixHost } from "../conformance/filesystems.ts"
import { anyPort, remoteAt, remoteInProcess, unixAddress } from "./transports.ts"

const token = Redacted.make("a secret of thirty-two characters")

const transports = [
  ["a transport within the process", remoteInProcess(inMemory)],
  ["a Unix socket", remoteAt(inMemory, unixAddress)],
  ["HTTP", remoteAt(inMemory, anyPort, (address) => `http://${address}`)],
  ["WebSocket", remoteAt(inMemory, anyPort, (address) => `ws://${address}`)],
  [
    "HTTP with a token",
    remoteAt(inMemory, anyPort, (address) => `http://${address}`, { server: { token }, client: { token } })
  ],
  [
    "WebSocket with a token",
    remoteAt(inMemory, anyPort, (address) => `ws://${address}`, { server: { token }, client: { token } })
  ],
  ["a Unix socket, to files on disk", remoteAt(posixHost, unixAddress)]
] as const

describe("a remote filesystem", () => {
  for (const [name, layer] of transports) {
    it.live(`supports reads, writes, edits, copies, moves, deletions, searches and streams over ${name}`, () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        yield* fs.write("notes/a.md", "one\ntwo\n")
        assert.strictEqual(yield* fs.readString("notes/a.md"), "one\ntwo\n")
        const page = yield* fs.read("notes/a.md", { version: true })
        const conflict = yield* Effect.flip(fs.write("notes/a.md", "x", { ifMatch: "0".repeat(64) }))
        assert.strictEqual(conflict._tag, "Conflict")
        yield* fs.edit("notes/a.md", { oldText: "two", newText: "2" }, { ifMatch: page.version })
        const found = yield* fs.grep(/[0-9]/)
        assert.deepStrictEqual(
          found.matches.map(({ lineContent, path }) => [path, lineContent]),
          [["notes/a.md", "2"]]
        )
        const missing = yield* Effect.flip(fs.readString("notes/b.md"))
        assert.strictEqual(missing.message, 'readString "notes/b.md": there is no such file or directory')
        const block = new Uint8Array(200_000).map((_, index) => index % 251)
        yield* Stream.run(Stream.make(...Array.from({ length: 20 }, () => block)), fs.sink("big.bin"))
        const chunks = yield* Stream.runCollect(fs.stream("big.bin"))
        assert.strictEqual(
          chunks.reduce((sum, { length }) => sum + length, 0),
          4_000_000
        )
        assert.deepStrictEqual(chunks[0]!.subarray(0, 300), block.subarray(0, 300))
        assert.strictEqual(yield* fs.version("big.bin"), (yield* fs.readBytes("big.bin", { version: true })).version)
        yield* fs.copy("notes", "copied")
        yield* fs.move("copied", "moved")
        const { matches } = yield* fs.glob("**/*.md")
        assert.deepStrictEqual(
          matches.map(({ path }) => path),
          ["moved/a.md", "notes/a.md"]
        )
        const { deleted } = yield* fs.delete("moved", { recursive: true })
        assert.strictEqual(deleted, 1)
      }).pipe(Effect.provide(layer))
    )

    it.live(`answers other requests between the parts of a stream over ${name}`, () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const count = 60
        for (let index = 0; index < count; index++) yield* fs.write(`d${index}/a.txt`, `${index}`)
        const read: Array<string> = []
        const visit = ({ isFile, path }: { readonly isFile: boolean; readonly path: string }) =>
          isFile ? Effect.map(fs.readString(path), (text) => void read.push(text)) : Effect.void
        yield* Stream.runForEach(fs.walk(), visit)
        assert.lengthOf(read, count)
      }).pipe(Effect.provide(layer))
    )

    it.live(`keeps the old file if a sink is interrupted, over ${name}`, () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        yield* fs.write("a.txt", "old")
        const endless = Stream.forever(Stream.succeed(new Uint8Array(100_000)))
        const writing = yield* Effect.forkChild(Stream.run(endless, fs.sink("a.txt")))
        yield* Effect.sleep("50 millis")
        yield* Fiber.interrupt(writing)
        assert.strictEqual(yield* fs.readString("a.txt"), "old")
        assert.deepStrictEqual(
          (yield* fs.list()).map(({ name }) => name),
          ["a.txt"]
        )
      }).pipe(Effect.provide(layer))
    )
  }

  for (const scheme of ["http", "ws"]) {
    it.live(`refuses a wrong or missing token over ${scheme}`, () =>
      Effect.gen(function* () {
        const address = yield* Remote.listen("127.0.0.1:0", { token })
        for (const options of [{}, { token: Redacted.make("another") }]) {
          const error = yield* Effect.flip(
            Effect.provide(Effect.asVoid(Filesystem), Remote.layerUrl(`${scheme}://${address}`, options))
          )
          assert.strictEqual(error._tag, "Unavailable")
          assert.include(error.message, "the token is missing or wrong")
        }
      }).pipe(Effect.scoped, Effect.provide(inMemory))
    )
  }

  it.live("closes the connection of a client that sends a long message without the token", () =>
    Effect.gen(function* () {
      const address = yield* Remote.listen("127.0.0.1:0", { token })
      const text = "a".repeat(1024 * 1024)
      const header = new Uint8Array(12)
      header.set(new TextEncoder().encode(`fs${version}\n`))
      new DataView(header.buffer).setUint32(8, text.length)
      const frame = Uint8Array.from([...header, ...new TextEncoder().encode(text)])
      const sent = (headers: object, message: string | Uint8Array<ArrayBuffer> = text) =>
        Effect.promise(
          () =>
            new Promise<string>((resolve) => {
              const socket = new WebSocket(`ws://${address}/rpc`, { headers } as never)
              socket.addEventListener("open", () => {
                socket.send(message)
                socket.send('\n{"_tag":"Ping"}\n')
              })
              socket.addEventListener("message", () => {
                resolve("answered")
                socket.close()
              })
              socket.addEventListener("close", () => resolve("closed"))
              socket.addEventListener("error", () => resolve("closed"))
            })
        )
      assert.strictEqual(yield* sent({}, frame), "closed")
      assert.strictEqual(yield* sent({ authorization: `Bearer ${Redacted.value(token)}` }, frame), "answered")
      assert.strictEqual(yield* sent({}), "closed")
      assert.strictEqual(yield* sent({ authorization: "Bearer another" }), "closed")
      assert.strictEqual(yield* sent({ authorization: `Bearer ${Redacted.value(token)}` }), "answered")
      const post = (headers: Record<string, string>) =>
        Effect.promise(() =>
          fetch(`http://${address}/rpc`, { method: "POST", body: `"${text}"\n`, headers }).then(
            ({ ok }) => ok,
            () => false
          )
        )
      assert.isFalse(yield* post({}))
      assert.isTrue(yield* post({ authorization: `Bearer ${Redacted.value(token)}` }))
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("lets its server end even if a client keeps a WebSocket open", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const address = yield* Scope.provide(Remote.listen("127.0.0.1:0"), scope)
      const closed = Promise.withResolvers<string>()
      yield* Effect.promise(
        () =>
          new Promise<void>((resolve) => {
            const socket = connect(Number(address.split(":")[1]), "127.0.0.1", () => {
              const key = Buffer.alloc(16).toString("base64")
              const headers = ["Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
              socket.write(["GET /rpc HTTP/1.1", ...headers, `Sec-WebSocket-Key: ${key}`, "", ""].join("\r\n"))
            })
            socket.once("data", () => resolve())
            socket.on("error", () => {}).once("close", () => closed.resolve("closed"))
          })
      )
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* Effect.promise(() => closed.promise), "closed")
    }).pipe(Effect.provide(inMemory))
  )

  it.live("accepts long messages over a WebSocket after a message with the token, even immediately", () =>
    Effect.gen(function* () {
      const address = yield* Remote.listen("127.0.0.1:0", { token })
      const line = (id: string, tag: string, payload: object) =>
        `${JSON.stringify({ _tag: "Request", id, tag, payload, headers: [["authorization", `Bearer ${Redacted.value(token)}`]] })}\n`
      const answers = yield* Effect.promise(
        () =>
          new Promise<string>((resolve) => {
            let all = ""
            const socket = new WebSocket(`ws://${address}/rpc`)
            socket.binaryType = "arraybuffer"
            socket.addEventListener("open", () => {
              socket.send(line("1", "port.info", {}))
              socket.send(line("2", "readString", { path: "a".repeat(4 * 1024 * 1024) }))
            })
            socket.addEventListener("message", ({ data }) => {
              all += typeof data === "string" ? data : Buffer.from(data as ArrayBuffer).toString()
              if (!/"requestId":"?2/.test(all)) return
              resolve(all)
              socket.close()
            })
            socket.addEventListener("close", () => resolve(`closed ${all}`))
          })
      )
      assert.notInclude(answers.slice(0, 100), "closed")
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("needs a token if other machines can reach its server", () =>
    Effect.gen(function* () {
      for (const address of ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"]) {
        const error = yield* Effect.flip(Remote.listen(address))
        assert.strictEqual(error._tag, "InvalidArgument")
      }
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("refuses web pages and foreign host names if its server has no token", () =>
    Effect.gen(function* () {
      const address = yield* Remote.listen("127.0.0.1:0")
      const post = (headers: Record<string, string>) =>
        Effect.promise(() => fetch(`http://${address}/rpc`, { method: "POST", body: "", headers }))
      assert.strictEqual((yield* post({ origin: "http://evil.example" })).status, 403)
      const options = { method: "POST", path: "/rpc", host: "127.0.0.1", port: address.split(":")[1] }
      const foreign = yield* Effect.callback<number | undefined>((resume) => {
        request({ ...options, headers: { host: "evil.example" } }, ({ statusCode }) => resume(Effect.succeed(statusCode))).end()
      })
      assert.strictEqual(foreign, 403)
      assert.notStrictEqual((yield* post({})).status, 403)
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("fails with Unavailable if the address is invalid, or no server listens there", () =>
    Effect.gen(function* () {
      for (const url of ["http://127.0.0.1:9", "ws://127.0.0.1:9", "unix:/nowhere/at/all.sock", "ftp://a", "unix:"]) {
        const error = yield* Effect.flip(Effect.provide(Effect.asVoid(Filesystem), Remote.layerUrl(url)))
        assert.strictEqual(error._tag, "Unavailable", url)
      }
    })
  )
})
