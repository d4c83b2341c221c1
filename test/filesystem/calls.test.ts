import { afterAll, assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { FileStat } from "../../src/model/Entry.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Limits from "../../src/model/Limits.ts"
import type { CommonOptions } from "../../src/port/Rules.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import { plant } from "../../src/testing/Files.ts"
import * as Names from "../runtime/names.ts"

const roots: Array<string> = []
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true, force: true })
})
const root = () => {
  roots.push(mkdtempSync(join(tmpdir(), "fs-algebra-calls-")))
  return roots.at(-1)!
}

const backends: Record<string, (options?: CommonOptions) => Layer.Layer<Filesystem.Filesystem, unknown>> = {
  InMemory: (options) => InMemory.layer({ ...options, tree: undefined }),
  PosixHost: (options) => PosixHost.layer({ ...options, root: root() })
}

const tag = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, { onSuccess: () => "success", onFailure: (error) => error._tag })

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

for (const [name, layer] of Object.entries(backends)) {
  const on = <A, E>(program: (fs: Filesystem.Algebra) => Effect.Effect<A, E>, options?: CommonOptions) =>
    Effect.gen(function* () {
      return yield* program(yield* Filesystem.Filesystem)
    }).pipe(Effect.provide(layer(options)))

  describe(`calls on ${name}:`, () => {
    it.live("a call that starts while a write runs sees the written content", () =>
      on((fs) =>
        Effect.gen(function* () {
          const big = "x".repeat(4 * 1024 * 1024)
          for (const [i, next] of [
            (path: string) => tag(fs.edit(path, { oldText: "x", newText: "y", match: "first" })),
            (path: string) => tag(fs.write(path, "z", { mode: "replace" })),
            (path: string) => tag(fs.write(path, "z", { mode: "appendExisting" })),
            (path: string) => tag(fs.move(path, `${path}.moved`)),
            (path: string) => tag(fs.setAttributes(path, { mode: 0o600 })),
            (path: string) => tag(fs.write(path, "z", { ifMatch: sha256(big) })),
            (path: string) => tag(fs.delete(path))
          ].entries()) {
            const path = `f${i}`
            const [, then] = yield* Effect.all([fs.write(path, big), next(path)], { concurrency: "unbounded" })
            assert.strictEqual(then, "success", String(i))
          }
        })
      )
    )

    it.live("a call that starts while a delete runs finds the path free", () =>
      on((fs) =>
        Effect.gen(function* () {
          for (const next of [
            tag(fs.mkdir("d", { existOk: false })),
            tag(fs.write("d", "x", { ifMatch: null })),
            tag(Stream.run(Stream.make(new Uint8Array(1)), fs.sink("d"))),
            tag(fs.symlink("d", "elsewhere"))
          ]) {
            for (let i = 0; i < 300; i++) yield* fs.write(`d/f${i}`, "")
            const [, then] = yield* Effect.all([fs.delete("d", { recursive: true }), next], { concurrency: "unbounded" })
            assert.strictEqual(then, "success")
            yield* fs.delete("d", { recursive: true })
          }
        })
      )
    )

    it.live("without permission to delete, writes succeed, and a failed write removes the entries that it created", () =>
      on(
        (fs) =>
          Effect.gen(function* () {
            yield* fs.write("f", "1")
            yield* fs.write("g", "2")
            yield* fs.symlink("l", "f")
            assert.strictEqual(yield* tag(fs.copy("g", "l", { overwrite: true })), "success")
            assert.strictEqual(yield* fs.readString("l"), "2")
            const failing = Stream.concat(Stream.make(new Uint8Array(9)), Stream.fail({ _tag: "Boom" as const }))
            assert.strictEqual(yield* tag(Stream.run(failing, fs.sink("a/b/f"))), "Boom")
            assert.isFalse(yield* fs.exists("a"))
            const left = yield* fs.port.list("." as never)
            assert.deepStrictEqual(left.map(({ name }) => name).sort(), ["f", "g", "l"])
            assert.strictEqual(yield* tag(fs.delete("f")), "AccessDenied")
          }),
        { allowDelete: false }
      )
    )

    it.live("a link cannot lead to an invalid name", () =>
      on((fs) =>
        Effect.gen(function* () {
          for (const target of [".~fsa-q.tmp", "a\nb", "a\0b", "x/\x7f"]) {
            assert.strictEqual(yield* tag(fs.symlink("l", target)), "InvalidArgument", JSON.stringify(target))
          }
          yield* fs.port.links!.make("made-elsewhere" as never, ".~fsa-q.tmp")
          assert.strictEqual(yield* tag(fs.write("made-elsewhere", "x")), "InvalidPath")
          yield* fs.symlink("long", "n".repeat(81))
          const limited = Effect.provideService(fs.write("long", "x"), Limits.Limits, Limits.agent)
          assert.strictEqual(yield* tag(limited), "PathTooLong")
        })
      )
    )

    it.live("a link to another program's entry with a temporary name is followed, and no call creates such entries", () =>
      on((fs) =>
        Effect.gen(function* () {
          for (const name of [".~fsa-q.tmp", Names.forged(Names.dead())]) {
            const port = fs.port
            yield* plant(port, { [`${name}/file`]: "his" })
            yield* port.links!.make("to-file" as FsPath, `${name}/file`)
            yield* port.links!.make("to-directory" as FsPath, name)
            assert.strictEqual(yield* fs.readString("to-file"), "his")
            assert.strictEqual(yield* fs.readString("to-directory/file"), "his")
            assert.deepStrictEqual(
              (yield* fs.list("to-directory")).map(({ name }) => name as string),
              ["file"]
            )
            for (const path of ["to-directory/new", "to-directory/in/new"]) {
              assert.strictEqual(yield* tag(fs.write(path, "x")), "InvalidPath", path)
              assert.strictEqual(yield* tag(fs.mkdir(path)), "InvalidPath", path)
            }
            yield* fs.delete("to-file")
            assert.strictEqual(yield* fs.readString(`${name}/file`), "his")
            yield* fs.delete("to-directory")
            yield* fs.delete(name, { recursive: true })
          }
          const held = TemporaryNames.make()
          yield* fs.port.links!.make("to-work" as FsPath, held)
          assert.strictEqual(yield* tag(fs.readString("to-work")), "InvalidPath")
          yield* fs.port.makeDirectory(held as FsPath)
          assert.strictEqual(yield* tag(fs.list("to-work")), "InvalidPath")
          TemporaryNames.forget(held)
        })
      )
    )

    it.live("a sink re-creates its new parents if another call removes them", () =>
      on((fs) =>
        Effect.gen(function* () {
          const [fail, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          const first = Stream.concat(
            Stream.make(new Uint8Array(1)),
            Stream.fromEffect(Effect.andThen(Deferred.await(fail), Effect.fail({ _tag: "Boom" as const })))
          )
          const second = Stream.concat(
            Stream.make(new Uint8Array(1)),
            Stream.fromEffect(Effect.as(Deferred.await(go), new Uint8Array(1)))
          )
          const a = yield* Effect.forkChild(tag(Stream.run(first, fs.sink("a/b/x"))), { startImmediately: true })
          const b = yield* Effect.forkChild(tag(Stream.run(second, fs.sink("a/b/y"))), { startImmediately: true })
          yield* Deferred.succeed(fail, undefined)
          assert.strictEqual(yield* Fiber.join(a), "Boom")
          yield* Deferred.succeed(go, undefined)
          assert.strictEqual(yield* Fiber.join(b), "success")
          assert.strictEqual((yield* fs.readBytes("a/b/y")).sizeBytes, 2)
        })
      )
    )

    it.live("a sink fails for an invalid target before its stream runs", () =>
      on((fs) =>
        Effect.gen(function* () {
          yield* fs.write("d/f", "old")
          const boom = Stream.fail({ _tag: "Boom" as const })
          assert.strictEqual(yield* tag(Stream.run(boom, fs.sink("d/f", { mode: "create" }))), "AlreadyExists")
          assert.strictEqual(yield* tag(Stream.run(boom, fs.sink("d"))), "NotAFile")
          assert.strictEqual(yield* tag(Stream.run(boom, fs.sink("no/f", { createParents: false }))), "NotFound")
          assert.strictEqual(yield* tag(Stream.run(boom, fs.sink("d/f/g"))), "NotADirectory")
        })
      )
    )

    it.live("arguments are checked before the file is looked up", () =>
      on((fs) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* tag(fs.read("nope", { encoding: "nope" })), "InvalidArgument")
          assert.strictEqual(yield* tag(fs.readString("nope", "nope")), "InvalidArgument")
          const limited = Effect.provideService(fs.edit("nope", { oldText: "a", newText: "b".repeat(50) }), Limits.Limits, {
            ...Limits.standard,
            maxFileSize: 10
          })
          assert.strictEqual(yield* tag(limited), "LimitExceeded")
        })
      )
    )

    it.live("errors of a copy or move have the path at fault, as the caller wrote it", () =>
      on((fs) =>
        Effect.gen(function* () {
          yield* fs.write("f.txt", "")
          yield* fs.mkdir("d")
          const path = (effect: Effect.Effect<unknown, { readonly path: string }>) =>
            Effect.map(Effect.flip(effect), (e) => e.path)
          assert.strictEqual(yield* path(fs.copy("f.txt", "/")), "/")
          assert.strictEqual(yield* path(fs.move("f.txt", "a/..")), "a/..")
          assert.strictEqual(yield* path(fs.copy("f.txt", "./f.txt")), "./f.txt")
          assert.strictEqual(yield* path(fs.copy("d", "/d/x")), "/d/x")
          assert.strictEqual(yield* path(fs.copy("./nope", "x")), "./nope")
        })
      )
    )

    it.live("arguments of wrong types are accepted or cause errors, but no defects", () =>
      on((fs) =>
        Effect.gen(function* () {
          const odd = Object.create(null) as never
          assert.strictEqual(yield* tag(fs.stat(odd)), "InvalidPath")
          assert.strictEqual(yield* tag(fs.copy(odd, "x")), "InvalidPath")
          assert.strictEqual(yield* tag(fs.grep("x", { context: null as never })), "InvalidArgument")
          assert.strictEqual(yield* tag(fs.grep("x", { context: [1] as never })), "InvalidArgument")
          assert.strictEqual(yield* tag(fs.glob("*", null as never)), "success")
          assert.strictEqual(yield* tag(fs.glob("*", { path: null as never })), "InvalidPath")
          // Functions of Node accept an encoding instead of options.
          for (const options of [null, "utf8", 7]) yield* fs.write("f", "12345", options as never)
          yield* fs.write("f", "12345")
          assert.strictEqual(yield* tag(fs.setAttributes("f", null as never)), "success")
          assert.strictEqual(yield* tag(fs.delete("f", { ifMatch: 5 as never })), "InvalidArgument")
          const fraction = { ...Limits.standard, maxFileSize: 2.5, maxReadBytes: 2.5 }
          assert.strictEqual(yield* tag(Effect.provideService(fs.write("f", "123"), Limits.Limits, fraction)), "LimitExceeded")
          assert.strictEqual(yield* tag(Effect.provideService(fs.readBytes("f"), Limits.Limits, fraction)), "LimitExceeded")
          const wrong = yield* Effect.flip(Stream.runDrain(fs.walk(".", { maxDepth: -1 })))
          assert.include(wrong.message, "maxDepth")
          yield* fs.setAttributes("f", {
            modifiedAt: DateTime.makeZonedUnsafe(86_400_000, { timeZone: "Europe/Berlin" }) as never
          })
          assert.isString(JSON.stringify(Schema.encodeSync(Schema.toCodecJson(FileStat))(yield* fs.stat("f"))))
        })
      )
    )

    it.live("a glob with maxMatches 0 returns a cursor", () =>
      on((fs) =>
        Effect.gen(function* () {
          yield* fs.write("a", "")
          yield* fs.write(".b", "")
          const { next, truncated } = yield* fs.glob("*", { maxMatches: 0 })
          assert.isTrue(truncated)
          assert.strictEqual((yield* fs.glob("*", { after: next })).matches.length, 2)
        })
      )
    )
  })
}

describe("a file that cannot be read", () => {
  it.effect("is not appended to if the append must return its version", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { f: "1234" } })
      const denied = () => Effect.fail({ _tag: "AccessDenied" as const, why: "permission" })
      const fs = Filesystem.make({ ...port, open: denied, perform: undefined, explore: undefined })
      const bytes = Stream.make(new Uint8Array(3))
      assert.strictEqual(yield* tag(fs.write("f", "xyz", { mode: "append", version: true })), "AccessDenied")
      assert.strictEqual(yield* tag(Stream.run(bytes, fs.sink("f", { mode: "append", version: true }))), "AccessDenied")
      assert.strictEqual((yield* fs.stat("f")).sizeBytes, 4)
    })
  )
})

describe("a file that another process creates and removes again", () => {
  it.effect("is a Conflict for a write that expects no file, whether it writes bytes or a stream", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const write = () => Effect.fail({ _tag: "AlreadyExists" as const })
      const fs = Filesystem.make({ ...port, write: write as typeof port.write })
      assert.strictEqual(yield* tag(fs.write("f", "x", { ifMatch: null })), "Conflict")
      assert.strictEqual(yield* tag(Stream.run(Stream.make(new Uint8Array(3)), fs.sink("f", { ifMatch: null }))), "Conflict")
      assert.strictEqual(yield* tag(fs.write("f", "x", { mode: "create" })), "AlreadyExists")
    })
  )
})

describe("a version", () => {
  // `tsc` checks the lines that expect an error.
  it.effect("is a string if it was requested, and can guard the next call", () =>
    Effect.gen(function* () {
      const fs = Filesystem.make(yield* InMemory.make({ tree: { a: "old" } }))
      const page = yield* fs.read("a", { version: true })
      const written = yield* fs.write("a", "new", { ifMatch: page.version, version: true })
      const edited = yield* fs.edit("a", { oldText: "new", newText: "newer" }, { ifMatch: written.version, version: true })
      const poured = yield* Stream.run(Stream.make(new Uint8Array(1)), fs.sink("a", { ifMatch: edited.version, version: true }))
      const bytes = yield* fs.readBytes("a", { version: true })
      const versions: ReadonlyArray<string> = [poured.version, bytes.version]
      assert.strictEqual(versions[0], versions[1])
      yield* fs.delete("a", { ifMatch: bytes.version })
      assert.isFalse(yield* fs.exists("a"))
    })
  )

  it.effect("is missing from the type if it was not requested, and an absent version is rejected as precondition", () =>
    Effect.gen(function* () {
      const fs = Filesystem.make(yield* InMemory.make({ tree: { a: "old" } }))
      const page = yield* fs.read("a")
      // @ts-expect-error: there is no version without `version: true`
      const forgotten = fs.write("a", "new", { ifMatch: page.version })
      assert.strictEqual((yield* Effect.flip(forgotten))._tag, "InvalidArgument")
      const asks: boolean = page.totalLines > 1
      const perhaps = yield* fs.read("a", { version: asks })
      // @ts-expect-error: the version may be absent
      const unguarded = fs.delete("a", { ifMatch: perhaps.version })
      assert.strictEqual((yield* Effect.flip(unguarded))._tag, "InvalidArgument")
      // @ts-expect-error: undefined is no precondition
      const nothing = fs.edit("a", { oldText: "old", newText: "new" }, { ifMatch: undefined })
      assert.strictEqual((yield* Effect.flip(nothing))._tag, "InvalidArgument")
      assert.strictEqual(yield* fs.readString("a"), "old")
    })
  )
})

const linkMode: Fault = { _tag: "InvalidArgument", argument: "mode", detail: "a link has no permission bits of its own" }

/** Makes a filesystem on which `f` is a link the first few times its attributes are set. */
const swapped = (times: number) =>
  Effect.map(InMemory.make({ tree: { f: "x", l: { link: "f" } } }), (port) => {
    let left = times
    const set = (path: FsPath, values: { readonly mode?: number | undefined }) =>
      left-- > 0 ? Effect.fail(linkMode) : port.attributes!.set(path, values)
    return Filesystem.make({ ...port, attributes: { set } })
  })

describe("setAttributes of a file that another program replaces by a link", () => {
  it.effect("succeeds when it is a file again", () =>
    Effect.gen(function* () {
      const fs = yield* swapped(3)
      yield* fs.setAttributes("f", { mode: 0o600 })
      assert.strictEqual((yield* fs.stat("f")).mode, 0o600)
    })
  )

  it.effect("fails with IoError if it stays a link, and the error does not name the mode", () =>
    Effect.gen(function* () {
      const fs = yield* swapped(Number.POSITIVE_INFINITY)
      const error = yield* Effect.flip(fs.setAttributes("f", { mode: 0o600 }))
      assert.strictEqual(error._tag, "IoError")
      assert.notInclude(error.message, "mode")
    })
  )
})
