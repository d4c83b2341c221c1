import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcServer from "effect/rpc/RpcServer"
import { connect } from "node:net"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Limits from "../../src/model/Limits.ts"
import type { Backend } from "../../src/port/Backend.ts"
import * as Request from "../../src/port/Request.ts"
import * as Address from "../../src/remote/address.ts"
import * as Changes from "../../src/remote/changes.ts"
import { Authentication, FilesystemRpcs } from "../../src/remote/protocol.ts"
import type { Unavailable } from "../../src/model/FsError.ts"
import { handlers } from "../../src/remote/server.ts"
import { memory, remote, serve, unixAddress } from "./transports.ts"
import { eventually } from "./eventually.ts"

/** Sends requests without the checks of an honest client. */
const forge = (address: string) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Address.clientProtocol(address))
    return yield* Effect.provideContext(RpcClient.make(FilesystemRpcs, { flatten: true, disableTracing: true }), context)
  })

describe("a server with hostile clients", () => {
  it.live("a change with the id of another request is refused and changes nothing", () =>
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

  it.effect("the answers that a server remembers take bounded memory", () =>
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

  it.effect("the answer of a long change is remembered for five minutes after its end", () =>
    Effect.gen(function* () {
      const changes = Changes.make(yield* Effect.scope)
      let runs = 0
      const long = changes.run(
        "long",
        Effect.andThen(
          Effect.sleep("1 hour"),
          Effect.sync(() => ++runs)
        )
      )
      const first = yield* Effect.forkChild(long)
      yield* TestClock.adjust("30 minutes")
      yield* changes.run("short", Effect.void)
      yield* TestClock.adjust("30 minutes")
      assert.strictEqual(yield* Fiber.join(first), 1)
      yield* TestClock.adjust("299 seconds")
      const again = yield* Effect.forkChild(long)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* Fiber.join(again), 1)
      yield* changes.run("next", Effect.void)
      assert.strictEqual(changes.size().changes, 1)
    })
  )

  it.live("an interrupted streamed write is not published later", () =>
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

  it.live("the number of files that clients can keep open is bounded, and a lost connection closes its files", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "text")
      const address = yield* serve(local)
      const open = (handle: string) =>
        Effect.flatMap(forge(address), (send) => Stream.runHead(send("port.open", { path: "a.txt", handle })))
      yield* Effect.scoped(
        Effect.gen(function* () {
          const send = yield* forge(address)
          const hold = (index: number) =>
            Effect.flatMap(Stream.toPull(send("port.open", { path: "a.txt", handle: `h${index}` })), (pull) => pull)
          yield* Effect.forEach(
            Array.from({ length: 1000 }, (_, index) => index),
            hold,
            { concurrency: 100, discard: true }
          )
          assert.strictEqual((yield* Effect.flip(open("more")))._tag, "Unavailable")
        })
      )
      yield* eventually(Effect.map(Effect.option(open("again")), (opened) => Option.isSome(Option.flatten(opened))))
    }).pipe(Effect.scoped)
  )

  it.live("a request with a limit that is not a number is refused", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "x".repeat(2_000_000))
      const address = yield* serve(local)
      // The schema of an honest client refuses these requests too, so they are sent as text.
      for (const [tag, payload] of [
        ["port.read", { path: "a.txt", maxBytes: "NaN" }],
        ["port.readMany", { paths: ["a.txt"], maxBytes: "NaN" }],
        ["readString", { path: "a.txt", limits: { maxReadBytes: "NaN" } }],
        ["grep", { pattern: "x", limits: { patternBudget: "NaN" } }]
      ] as const) {
        const answer = yield* Effect.promise(
          () =>
            new Promise<string>((resolve) => {
              const socket = connect({ path: address.slice("unix:".length) })
              socket.once("data", (bytes) => {
                socket.destroy()
                resolve(String(bytes))
              })
              socket.write(`${JSON.stringify({ _tag: "Request", id: "1", tag, payload, headers: [] })}\n`)
            })
        )
        assert.include(answer, "must be a number", tag)
      }
    })
  )

  it.live("a client cannot exceed the limits of the server", () =>
    Effect.gen(function* () {
      const local = yield* memory
      for (let index = 0; index < 30; index++) yield* local.write(`d/${index}.txt`, "match\n".repeat(16))
      yield* local.write("large.txt", "x".repeat(200))
      const limits = {
        ...Limits.standard,
        maxReadBytes: 100,
        maxFileSize: 1000,
        maxGlobMatches: 20,
        maxGrepMatches: 15,
        maxListEntries: 10
      }
      const address = yield* Effect.provideService(serve(local), Limits.Limits, limits)
      const send = yield* forge(address)
      const raised = { limits: { ...Limits.unlimited, maxStreamBytes: Infinity } }
      const { maxArchiveBytes: _, maxArchiveEntries: __, ...most } = raised.limits
      const asked = { limits: most }
      const refused = [
        send("readString", { path: "large.txt", ...asked }),
        send("readBytes", { path: "large.txt", ...asked }),
        Stream.runCollect(send("list", { path: "d", ...asked })),
        send("write", { id: "1", path: "big.txt", content: "x".repeat(2000), ...asked }),
        send("writeBytes", { id: "2", path: "big.txt", content: new Uint8Array(2000), ...asked }),
        send("port.write", { id: "3", path: "big.txt", mode: "create", bytes: new Uint8Array(5000) }),
        send("edit", {
          id: "4",
          path: "d/0.txt",
          edits: [{ oldText: "match", newText: "x".repeat(2000), match: "first" }],
          ...asked
        })
      ]
      for (const request of refused) {
        assert.strictEqual((yield* Effect.flip(request as Effect.Effect<unknown, { _tag: string }>))._tag, "LimitExceeded")
      }
      const whole = {
        id: "5",
        path: "big.txt",
        bytes: new Uint8Array(5000),
        mode: "create",
        createParents: true,
        version: false
      }
      assert.isNull(yield* send("port.writeWhole", whole as never))
      const globbed = yield* Stream.runCollect(send("glob", { pattern: "**", ...asked }))
      assert.lengthOf(
        globbed.flatMap(({ matches }) => matches),
        20
      )
      const grepped = yield* Stream.runCollect(send("grep", { pattern: "match", ...asked }))
      assert.lengthOf(
        grepped.flatMap(({ matches }) => matches),
        15
      )
      // A stream of unknown length is bounded too, and leaves no file.
      const fs = yield* remote(address)
      const error = yield* Effect.flip(
        Effect.provideService(
          Stream.run(Stream.forever(Stream.succeed(new Uint8Array(1000))), fs.sink("big.txt")),
          Limits.Limits,
          Limits.unlimited
        )
      )
      assert.strictEqual(error._tag, "LimitExceeded")
      assert.isFalse(yield* local.exists("big.txt"))
      assert.deepStrictEqual(
        (yield* local.list()).map(({ name }) => name),
        ["d", "large.txt"]
      )
    })
  )

  it.live("a client that disappears with unread answers is not logged as an error", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "x".repeat(2_000_000))
      const logged: Array<unknown> = []
      const address = yield* Effect.provide(
        serve(local),
        Logger.layer([Logger.make(({ message }) => void logged.push(message))])
      )
      for (let client = 0; client < 10; client++) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const send = yield* forge(address)
            const read = Effect.exit(send("readBytes", { path: "a.txt" }))
            yield* Effect.forEach(Array.from({ length: 50 }), () => Effect.forkScoped(read), { discard: true })
            yield* send("stat", { path: "a.txt" })
          })
        )
      }
      const send = yield* forge(address)
      yield* send("stat", { path: "a.txt" })
      assert.deepStrictEqual(logged, [])
    }).pipe(Effect.scoped)
  )

  it.live("the number of watches and streams that clients can keep open is bounded", () =>
    Effect.gen(function* () {
      const local = yield* memory
      for (let index = 0; index < 5000; index++) yield* local.write(`d/${index}.txt`, "")
      const address = yield* serve(local)
      const send = yield* forge(address)
      const opened = [
        () => send("port.watch", { path: "d" }),
        () => send("watch", { path: "d" }),
        () => send("walk", {}),
        () => send("globStream", { pattern: "**" }),
        () => send("port.listAll", { path: "d" })
      ] as const
      // The check below may have the last permitted stream at the moment of a request. Then the request is made again.
      const hold = (index: number) =>
        Stream.runForEach(opened[index % 2]!() as Stream.Stream<unknown>, () => Effect.never).pipe(
          Effect.ignore,
          Effect.andThen(Effect.sleep("5 millis")),
          Effect.forever,
          Effect.forkScoped
        )
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Effect.forEach(
            Array.from({ length: 1000 }, (_, index) => index),
            hold,
            { discard: true }
          )
          const other = yield* forge(address)
          yield* eventually(Effect.map(Effect.exit(Stream.runDrain(other("walk", {}))), Exit.isFailure))
          for (const stream of [
            other("port.watch", { path: "d" }),
            other("walk", {}),
            other("globStream", { pattern: "**" }),
            other("port.listAll", { path: "d" }),
            other("stream", { path: "d/1.txt" }),
            other("lines", { path: "d/1.txt" })
          ]) {
            const error = yield* Effect.flip(Stream.runDrain(stream as Stream.Stream<unknown, { _tag: string }>))
            assert.strictEqual(error._tag, "Unavailable")
          }
        })
      )
      yield* eventually(Effect.map(Effect.exit(Stream.runDrain(send("walk", {}))), Exit.isSuccess))
    }).pipe(Effect.scoped)
  )

  it.live("a client without permission to delete may remove only an entry that it has created itself", () =>
    Effect.gen(function* () {
      const backend = yield* InMemory.make({ allowDelete: false })
      const local = make(backend)
      const send = yield* forge(yield* serve(local))
      yield* send("port.makeDirectory", { id: "1", path: "d" })
      yield* send("port.remove", { id: "2", path: "d", takingBack: true })
      yield* local.mkdir("d")
      yield* local.write("d/a.txt", "text")
      for (const request of [
        send("port.remove", { id: "3", path: "d/a.txt", takingBack: true }),
        send("port.removeTree", { id: "4", path: "d", takingBack: true }),
        send("port.remove", { id: "6", path: "d", takingBack: true }),
        send("port.rename", { id: "5", path: "d", to: "e", replace: false, takingBack: true })
      ]) {
        assert.strictEqual((yield* Effect.flip(request as Effect.Effect<unknown, { _tag: string }>))._tag, "AccessDenied")
      }
      assert.strictEqual(yield* local.readString("d/a.txt"), "text")
      yield* send("port.makeDirectory", { id: "7", path: "mine" })
      yield* local.write("mine/theirs.txt", "text")
      assert.isNull(yield* send("port.removeTree", { id: "8", path: "mine", takingBack: true }))
      assert.isNull(yield* send("port.removeWhole", { id: "9", path: "mine", recursive: true, takingBack: true }))
      assert.strictEqual(yield* local.readString("mine/theirs.txt"), "text")
    })
  )
})

/** A client of a server that answers the given requests with forged answers. */
const forged = (answers: Partial<Record<string, () => unknown>>) =>
  Effect.gen(function* () {
    const address = yield* unixAddress
    const scope = yield* Effect.scope
    const honest = handlers(yield* memory, scope, Limits.standard)
    const layer = Layer.provide(
      RpcServer.layer(FilesystemRpcs, { disableTracing: true }),
      Layer.merge(
        FilesystemRpcs.toLayer({ ...honest, ...answers } as never),
        Layer.succeed(Authentication, (effect) => effect)
      )
    )
    yield* Layer.build(
      Layer.provide(layer as never, Address.unixProtocol(address.slice("unix:".length))) as Layer.Layer<never, Unavailable>
    )
    return yield* remote(address)
  })

describe("a client of a hostile server", () => {
  for (const name of ["..", "../../up", "a/b", "/etc", "", ".", "a\u0000b"]) {
    it.live(`a listing with the name ${JSON.stringify(name)} is refused`, () =>
      Effect.gen(function* () {
        const child = { name, kind: "file" as const, addressable: true }
        const fs = yield* forged({ "port.list": () => Effect.succeed([child]) })
        assert.strictEqual((yield* Effect.flip(fs.port.list("." as FsPath)))._tag, "IoError")
        const many = yield* forged({
          "port.list": () => Effect.succeed(null),
          "port.listAll": () => Stream.succeed([child])
        })
        assert.strictEqual((yield* Effect.flip(many.port.list("." as FsPath)))._tag, "IoError")
      })
    )
  }

  for (const [path, name] of [
    ["../../etc/passwd", "passwd"],
    ["/etc/passwd", "passwd"],
    ["a/./b", "b"],
    ["a//b", "b"],
    ["a/..", ".."],
    ["a/", ""],
    ["", ""],
    [".", "."],
    ["a/b", "c"],
    ["a/b", "../b"]
  ] as const) {
    it.live(`a walk with the path ${JSON.stringify(path)} and the name ${JSON.stringify(name)} is refused`, () =>
      Effect.gen(function* () {
        for (const addressable of [true, false]) {
          const entry = { path, name, kind: "file" as const, isFile: true, isDirectory: false, addressable }
          const fs = yield* forged({ walk: () => Stream.succeed({ entries: [entry], skips: [] }) })
          assert.strictEqual((yield* Effect.flip(Stream.runDrain(fs.walk())))._tag, "IoError")
        }
      })
    )
  }

  it.live("a file that is longer than the client's limits is refused, whatever size the server reports", () =>
    Effect.gen(function* () {
      for (const sizeBytes of [0, 3, 100, 5_000]) {
        const stat = { kind: "file" as const, isFile: true, isDirectory: false, sizeBytes }
        const whole = { stat, bytes: new Uint8Array(5_000) }
        const fs = yield* forged({
          "port.read": () => Effect.succeed(whole),
          "port.readMany": () => Effect.succeed([whole, whole, whole])
        })
        const limited = Effect.provideService(Limits.Limits, { ...Limits.standard, maxReadBytes: 100, maxFileSize: 100 })
        for (const read of [fs.readString("a"), fs.readBytes("a"), fs.read("a")]) {
          assert.strictEqual((yield* Effect.exit(limited(read as Effect.Effect<unknown, unknown>)))._tag, "Failure")
        }
        const perform = Request.performing(fs.port, "ReadMany")!
        const paths = ["a", "b"] as Array<FsPath>
        assert.deepStrictEqual(yield* perform({ _tag: "ReadMany", paths, maxBytes: 100 }), Option.some([undefined, undefined]))
      }
    })
  )

  it.live("a search whose answer is incomplete fails with IoError", () =>
    Effect.gen(function* () {
      const fs = yield* forged({
        glob: () => Stream.empty,
        grep: () => Stream.succeed({ matches: [], skips: [] })
      })
      assert.strictEqual((yield* Effect.flip(fs.glob("**")))._tag, "IoError")
      assert.strictEqual((yield* Effect.flip(fs.grep("a")))._tag, "IoError")
    })
  )

  it.live(
    "an endless answer is refused before it fills the memory",
    () =>
      Effect.gen(function* () {
        const match = { path: "a.txt", kind: "file" as const }
        const line = { path: "a.txt", lineNumber: 1, lineContent: "x" }
        const skip = { path: "a.txt", why: "ignored" as const }
        const child = { name: "a.txt", kind: "file" as const, addressable: true }
        const many = <A>(value: A) => Array.from({ length: 2000 }, () => value)
        const endless = <A>(value: A) => Stream.forever(Stream.succeed(value))
        const cases = [
          [{ glob: () => endless({ matches: many(match), skips: [] }) }, (fs: Algebra) => fs.glob("**")],
          [{ grep: () => endless({ matches: many(line), skips: [] }) }, (fs: Algebra) => fs.grep("x")],
          [{ glob: () => endless({ matches: [], skips: many(skip) }) }, (fs: Algebra) => fs.glob("**")],
          [{ glob: () => endless({ matches: [], skips: many(skip) }) }, (fs: Algebra) => fs.glob("**", { onSkip: () => {} })],
          [
            { "port.list": () => Effect.succeed(null), "port.listAll": () => endless(many(child)) },
            (fs: Algebra) => fs.port.list("." as FsPath)
          ]
        ] as const
        for (const [answers, call] of cases) {
          const fs = yield* forged(answers)
          const error = yield* Effect.flip(call(fs) as Effect.Effect<unknown, { _tag: string }>)
          assert.strictEqual(error._tag, "IoError")
        }
      }),
    300_000
  )

  it.live("a read never returns more bytes than the client requests", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "text")
      const { path: _, ...stat } = yield* local.stat("a.txt")
      const fs = yield* forged({
        "port.open": () => Stream.concat(Stream.succeed({ stat }), Stream.never),
        "port.readAt": () => Effect.succeed(new Uint8Array(1000))
      })
      const bytes = yield* Effect.scoped(Effect.flatMap(fs.port.open("a.txt" as FsPath), ({ read }) => read(0, 4)))
      assert.lengthOf(bytes, 4)
    })
  )

  it.live("metadata of more entries than the path has segments is refused", () =>
    Effect.gen(function* () {
      const stat = { kind: "directory", isFile: false, isDirectory: true, sizeBytes: 0 }
      const fs = yield* forged({ "port.look": () => Effect.succeed(Array.from({ length: 4 }, () => ({ stat }))) })
      const error = yield* Effect.flip(fs.lstat("d/e"))
      assert.strictEqual(error._tag, "IoError")
    })
  )

  it.live("an event whose path climbs or lies outside the watched directory is not reported", () =>
    Effect.gen(function* () {
      const fs = yield* forged({
        "port.watch": () =>
          Stream.make(
            [{ _tag: "Updated", path: "../up" }],
            [{ _tag: "Updated", path: "e/a" }],
            [{ _tag: "Updated", path: "." }],
            [{ _tag: "Updated", path: "d/a" }]
          )
      })
      const events = yield* Stream.runCollect(fs.port.watch!("d" as FsPath))
      assert.deepStrictEqual(
        events.map(({ path }) => path),
        ["d/a"]
      )
    })
  )
})
