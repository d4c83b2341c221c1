import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { connect } from "node:net"
import { Filesystem, type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { readOnly } from "../../src/filesystem/Decorator.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { accessDenied } from "../../src/model/Fault.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { around } from "../../src/port/Backend.ts"
import { TakingBack } from "../../src/port/Rules.ts"
import * as Remote from "../../src/remote/Remote.ts"
import { impostor, pathOf, relay } from "./relay.ts"
import { memory, remote, unixAddress } from "./transports.ts"

/** Serves a filesystem in a scope of its own, so that a test can end the server. */
const serve = (fs: Algebra, address: string) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* Remote.listen(address).pipe(Scope.provide(scope), Effect.provideService(Filesystem, fs))
    return Scope.close(scope, Exit.void)
  })

const block = new Uint8Array(100_000)

/** Starts to write an endless stream to a.txt, and waits until the stream has given 30 blocks. */
const endlessWrite = (fs: Algebra) =>
  Effect.gen(function* () {
    const arrived = yield* Deferred.make<void>()
    let count = 0
    const next = Effect.suspend(() => (++count === 30 ? Deferred.succeed(arrived, undefined) : Effect.void))
    const content = Stream.forever(Stream.fromEffect(Effect.as(next, block)))
    const writing = yield* Effect.forkChild(Effect.flip(Stream.run(content, fs.sink("a.txt"))))
    yield* Deferred.await(arrived)
    return writing
  })

describe("a remote filesystem whose server or connection fails", () => {
  it.live("a streamed write fails with Unavailable and keeps the old file if the server ends in the middle", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "old")
      const address = yield* unixAddress
      const end = yield* serve(local, address)
      const fs = yield* remote(address)
      const writing = yield* endlessWrite(fs)
      yield* end
      assert.strictEqual((yield* Fiber.join(writing))._tag, "Unavailable")
      assert.strictEqual(yield* local.readString("a.txt"), "old")
      assert.deepStrictEqual((yield* local.list()).length, 1)
      assert.strictEqual((yield* Effect.flip(fs.readString("a.txt")))._tag, "Unavailable")
    })
  )

  it.live("a streamed write keeps the old file if the client disappears in the middle", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "old")
      const address = yield* unixAddress
      const end = yield* serve(local, address)
      const between = yield* unixAddress
      const { cut } = yield* relay(pathOf(address), pathOf(between))
      const fs = yield* remote(between)
      const writing = yield* endlessWrite(fs)
      yield* cut
      assert.strictEqual((yield* Fiber.join(writing))._tag, "Unavailable")
      yield* end
      assert.strictEqual(yield* local.readString("a.txt"), "old")
    })
  )

  it.live("a change whose answer is lost is sent again, and takes effect once", () =>
    Effect.gen(function* () {
      const backend = yield* InMemory.make()
      const address = yield* unixAddress
      const between = yield* unixAddress
      const { cut } = yield* relay(pathOf(address), pathOf(between))
      let appends = 0
      const local = make(
        around(backend, (operation, next) =>
          operation._tag === "Write" && operation.mode === "append"
            ? // The connection fails after the change and before the answer.
              Effect.tap(next, () => (++appends === 1 ? cut : Effect.void))
            : next
        )
      )
      yield* local.write("log.txt", "one\n")
      yield* serve(local, address)
      const fs = yield* remote(between)
      yield* fs.write("log.txt", "two\n", { mode: "append" })
      assert.strictEqual(yield* local.readString("log.txt"), "one\ntwo\n")
      assert.strictEqual(appends, 1)
      assert.strictEqual(yield* fs.readString("log.txt"), "one\ntwo\n")
    })
  )

  it.live("a change is not sent again to a server that was restarted", () =>
    Effect.gen(function* () {
      const backend = yield* InMemory.make()
      const [first, second, between] = [yield* unixAddress, yield* unixAddress, yield* unixAddress]
      let to = pathOf(first)
      const { cut } = yield* relay(() => to, pathOf(between))
      let appends = 0
      const local = make(
        around(backend, (operation, next) =>
          operation._tag === "Write" && operation.mode === "append"
            ? Effect.tap(next, () => {
                to = pathOf(second)
                return ++appends === 1 ? cut : Effect.void
              })
            : next
        )
      )
      yield* serve(local, first)
      yield* serve(local, second)
      const fs = yield* remote(between)
      const error = yield* Effect.flip(fs.write("log.txt", "one\n", { mode: "append" }))
      assert.strictEqual(error._tag, "Unavailable")
      assert.strictEqual(yield* local.readString("log.txt"), "one\n")
      yield* fs.write("log.txt", "two\n", { mode: "append" })
      assert.strictEqual(yield* fs.readString("log.txt"), "one\ntwo\n")
    })
  )

  it.live("concurrent changes are not sent again to a server that was restarted", () =>
    Effect.gen(function* () {
      const backend = yield* InMemory.make()
      const [first, second, between] = [yield* unixAddress, yield* unixAddress, yield* unixAddress]
      let to = pathOf(first)
      const { cut } = yield* relay(() => to, pathOf(between))
      const appends: Array<string> = []
      const arrived = yield* Deferred.make<void>()
      const local = make(
        around(backend, (operation, next) =>
          operation._tag === "Write" && operation.mode === "append"
            ? Effect.tap(next, () => {
                to = pathOf(second)
                if (appends.push(operation.path) === 5) Deferred.doneUnsafe(arrived, Effect.void)
                return appends.length <= 5 ? Effect.andThen(Deferred.await(arrived), cut) : Effect.void
              })
            : next
        )
      )
      yield* serve(local, first)
      yield* serve(local, second)
      const fs = yield* remote(between)
      const paths = Array.from({ length: 5 }, (_, index) => `log${index}.txt`)
      const errors = yield* Effect.forEach(paths, (path) => Effect.flip(fs.write(path, "one\n", { mode: "append" })), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        errors.map(({ _tag }) => _tag),
        paths.map(() => "Unavailable")
      )
      assert.deepStrictEqual([...appends].sort(), paths)
    })
  )

  it.live("a slow server receives many concurrent large writes completely, and Node prints no warning", () =>
    Effect.gen(function* () {
      const local = yield* memory
      const [address, at] = [yield* unixAddress, yield* unixAddress]
      yield* serve(local, address)
      const { goOn, hold } = yield* relay(pathOf(address), pathOf(at))
      const fs = yield* remote(at)
      const warnings: Array<string> = []
      const listen = (warning: Error) => void warnings.push(warning.name)
      yield* Effect.acquireRelease(
        Effect.sync(() => process.on("warning", listen)),
        () => Effect.sync(() => process.off("warning", listen))
      )
      yield* hold
      const names = Array.from({ length: 30 }, (_, nth) => `${nth}`)
      const write = (name: string) => fs.writeBytes(name, new Uint8Array(400_000))
      const writing = yield* Effect.forkChild(Effect.forEach(names, write, { concurrency: "unbounded" }))
      // The writes reach the socket, which is full, and Node reports a warning in a later turn.
      for (let turn = 0; turn < 200; turn++) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* goOn
      yield* Fiber.join(writing)
      assert.strictEqual((yield* local.list(".")).length, names.length)
      assert.deepStrictEqual(warnings, [])
    }).pipe(Effect.scoped)
  )

  it.live("a read succeeds after the connection was lost", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "text")
      const address = yield* unixAddress
      const between = yield* unixAddress
      yield* serve(local, address)
      const { cut } = yield* relay(pathOf(address), pathOf(between))
      const fs = yield* remote(between)
      assert.strictEqual(yield* fs.readString("a.txt"), "text")
      yield* cut
      assert.strictEqual(yield* fs.readString("a.txt"), "text")
    })
  )

  it.live("a call fails with Unavailable if the server ends before its answer", () =>
    Effect.gen(function* () {
      const local = yield* memory
      const never = make({ ...local.port, stat: () => Effect.never, perform: undefined })
      const address = yield* unixAddress
      const end = yield* serve(never, address)
      const fs = yield* remote(address)
      const waiting = yield* Effect.forkChild(Effect.flip(fs.stat("a.txt")), { startImmediately: true })
      yield* end
      assert.strictEqual((yield* Fiber.join(waiting))._tag, "Unavailable")
    })
  )

  it.live("the layer fails with Unavailable if the server accepts connections but never answers", () =>
    Effect.gen(function* () {
      const address = yield* impostor(() => {})
      assert.strictEqual((yield* Effect.flip(remote(address)))._tag, "Unavailable")
    })
  )
})

describe("a server of a filesystem:", () => {
  it.live("malformed messages stop neither the server nor other connections", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "text")
      const address = yield* unixAddress
      yield* serve(local, address)
      const fs = yield* remote(address)
      const frames = [
        "not json\n",
        "[]\n",
        "null\n",
        "{}\n",
        '{"_tag":"Request"}\n',
        '{"_tag":"Request","id":"1","tag":"port.stat","payload":{"path":7},"headers":[]}\n',
        '{"_tag":"Request","id":"2","tag":"__proto__","payload":{},"headers":[]}\n',
        '{"_tag":"Ack","requestId":"77"}\n',
        '{"_tag":"Interrupt","requestId":{}}\n',
        `{"_tag":"Request","id":"3","tag":"port.write","payload":{"id":"x","path":"../up","mode":"create","bytes":"AA=="},"headers":[]}\n`,
        "\u0000\u0001\u0002\n"
      ]
      for (const frame of frames) {
        yield* Effect.promise(
          () =>
            new Promise<void>((resolve) => {
              const socket = connect({ path: pathOf(address) })
              socket.on("error", () => resolve())
              socket.on("close", () => resolve())
              socket.on("data", () => socket.destroy())
              socket.end(frame)
            })
        )
        assert.strictEqual(yield* fs.readString("a.txt"), "text")
      }
      assert.deepStrictEqual((yield* local.list()).length, 1)
    })
  )

  it.live("the server refuses a path of the port that is not in normal form", () =>
    Effect.gen(function* () {
      const local = yield* memory
      const address = yield* unixAddress
      yield* serve(local, address)
      const { port } = yield* remote(address)
      for (const path of ["../up", "/etc/passwd", "a/../b", "a//b", "\u000061", "a/\u00002e2e"]) {
        const refused = yield* Effect.flip(port.write<never, never>(path as never, new Uint8Array(1), "create"))
        assert.strictEqual(refused._tag, "InvalidPath", JSON.stringify(path))
      }
    })
  )

  it.live("a client cannot bypass the rules of the served filesystem through the port", () =>
    Effect.gen(function* () {
      const local = yield* memory
      yield* local.write("a.txt", "text")
      const mounted = yield* mount("m", yield* memory)(local)
      const address = yield* unixAddress
      yield* serve(mounted, address)
      const { port } = yield* remote(address)
      const path = "m" as FsPath
      assert.deepStrictEqual(yield* Effect.flip(port.remove(path)), accessDenied("root"))
      assert.deepStrictEqual(yield* Effect.flip(port.rename(path, "n" as FsPath, { replace: false })), accessDenied("root"))
      const readOnlyAddress = yield* unixAddress
      yield* serve(readOnly(local), readOnlyAddress)
      const { port: view } = yield* remote(readOnlyAddress)
      const remove = Effect.provideService(view.remove("a.txt" as FsPath), TakingBack, true)
      assert.deepStrictEqual(yield* Effect.flip(remove), accessDenied("readOnly"))
      assert.strictEqual(yield* local.readString("a.txt"), "text")
    })
  )
})
