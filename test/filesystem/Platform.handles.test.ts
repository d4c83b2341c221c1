import { assert, describe, it } from "@effect/vitest"
import { ByteSize, Cause, Context, Deferred, Effect, Exit, Fiber, FileSystem, Layer, Option, Scope, Stream } from "effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Limits from "../../src/model/Limits.ts"
import { overHost, overMemory, served, temporary } from "./platformDisk.ts"

const text = (value: string) => new TextEncoder().encode(value)
const all = (file: FileSystem.File) =>
  Effect.map(file.readAlloc(1000, { position: 0n }), (bytes) =>
    new TextDecoder().decode(Option.getOrElse(bytes, () => new Uint8Array(0)))
  )

const before = { "a.txt": "0123456789", d: { "b.txt": "b" } }

const onBoth = (name: string, body: (fs: FileSystem.FileSystem) => Effect.Effect<void, unknown, Scope.Scope>) => {
  it.effect(`${name} (in memory)`, () => Effect.flatMap(overMemory(before), body))
  it.effect(`${name} (on a host)`, () =>
    Effect.gen(function* () {
      const root = yield* temporary
      Fs.writeFileSync(join(root, "a.txt"), before["a.txt"])
      Fs.mkdirSync(join(root, "d"))
      Fs.writeFileSync(join(root, "d/b.txt"), "b")
      yield* body(yield* overHost(root))
    })
  )
}

/** Opens a file, uses it, and closes it. */
const opened = (
  fs: FileSystem.FileSystem,
  path: string,
  flag: FileSystem.OpenFlag,
  use: (file: FileSystem.File) => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, void, never>
) => Effect.scoped(Effect.flatMap(fs.open(path, { flag }), (file) => Effect.gen(() => use(file))))

const failing = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) =>
  Effect.exit(Effect.scoped(Effect.andThen(effect, Effect.fail("the program failed"))))

describe("a handle that writes", () => {
  onBoth("reads back its writes at once, and publishes them at sync and when its scope closes", (fs) =>
    Effect.gen(function* () {
      yield* opened(fs, "a.txt", "r+", function* (file) {
        yield* file.writeAll(text("abc"))
        assert.strictEqual(yield* all(file), "abc3456789")
        assert.strictEqual(yield* fs.readFileString("a.txt"), "0123456789")
        yield* file.sync
        assert.strictEqual(yield* fs.readFileString("a.txt"), "abc3456789")
        yield* file.truncate(4)
        assert.strictEqual(ByteSize.toNumberUnsafe((yield* file.stat).size), 4)
        assert.strictEqual(yield* fs.readFileString("a.txt"), "abc3456789")
      })
      assert.strictEqual(yield* fs.readFileString("a.txt"), "abc3")
    })
  )

  onBoth("with the flag r+ keeps a change that another writer made after the open", (fs) =>
    Effect.gen(function* () {
      const closed = yield* Effect.exit(
        opened(fs, "a.txt", "r+", function* (file) {
          yield* file.writeAll(text("abc"))
          yield* fs.writeFileString("a.txt", "of another")
          const error = yield* Effect.flip(file.sync)
          assert.include(error.message, "it changed in the meantime")
          yield* file.writeAll(text("again"))
        })
      )
      assert.isTrue(Exit.hasDies(closed))
      assert.strictEqual(yield* fs.readFileString("a.txt"), "of another")
    })
  )

  onBoth("with the flag r+ closes normally after a reported conflict if it has written nothing since", (fs) =>
    Effect.gen(function* () {
      yield* opened(fs, "a.txt", "r+", function* (file) {
        yield* file.writeAll(text("abc"))
        yield* fs.writeFileString("a.txt", "of another")
        yield* Effect.flip(file.sync)
      })
      assert.strictEqual(yield* fs.readFileString("a.txt"), "of another")
    })
  )

  onBoth("with the flag r+ overwrites its own published content, but no content of another writer", (fs) =>
    Effect.gen(function* () {
      const closed = yield* Effect.exit(
        opened(fs, "a.txt", "r+", function* (file) {
          yield* file.writeAll(text("abc"))
          yield* file.sync
          yield* file.writeAll(text("def"))
          yield* file.sync
          assert.strictEqual(yield* fs.readFileString("a.txt"), "abcdef6789")
          yield* file.writeAll(text("ghi"))
          yield* fs.writeFileString("a.txt", "of another")
        })
      )
      assert.isTrue(Exit.hasDies(closed))
      assert.strictEqual(yield* fs.readFileString("a.txt"), "of another")
    })
  )

  onBoth("with the flag r+ does not restore a removed file", (fs) =>
    Effect.gen(function* () {
      const closed = yield* Effect.exit(
        opened(fs, "a.txt", "r+", function* (file) {
          yield* file.writeAll(text("abc"))
          yield* fs.remove("a.txt")
        })
      )
      assert.isTrue(Exit.hasDies(closed))
      assert.isFalse(yield* fs.exists("a.txt"))
    })
  )

  for (const flag of ["r+", "w", "w+"] as const) {
    onBoth(`with the flag ${flag} keeps the old file when the scope fails`, (fs) =>
      Effect.gen(function* () {
        yield* failing(Effect.flatMap(fs.open("a.txt", { flag }), (file) => file.writeAll(text("new"))))
        assert.strictEqual(yield* fs.readFileString("a.txt"), "0123456789")
      })
    )
  }

  onBoth("with the flag w truncates the file even if it writes nothing", (fs) =>
    Effect.gen(function* () {
      yield* Effect.scoped(fs.open("a.txt", { flag: "w" }))
      assert.strictEqual(yield* fs.readFileString("a.txt"), "")
    })
  )

  for (const flag of ["w", "w+"] as const) {
    onBoth(`with the flag ${flag} shows its content at once through the same FileSystem`, (fs) =>
      Effect.gen(function* () {
        yield* fs.symlink("a.txt", "link")
        const file = yield* fs.open("a.txt", { flag })
        assert.strictEqual(yield* fs.readFileString("a.txt"), "")
        yield* file.write(text("one two"))
        assert.strictEqual(yield* fs.readFileString("a.txt"), "one two")
        yield* file.seek(-3n, "current")
        yield* file.write(text("three"))
        assert.strictEqual(yield* fs.readFileString("link"), "one three")
        assert.strictEqual(ByteSize.toNumberUnsafe((yield* fs.stat("a.txt")).size), 9)
        yield* file.truncate(3)
        yield* fs.copyFile("a.txt", "copied")
        assert.strictEqual(yield* fs.readFileString("copied"), "one")
      })
    )
  }

  for (const flag of ["w", "wx", "w+", "wx+"] as const) {
    onBoth(`with the flag ${flag} creates the file at once, and removes it when the scope fails`, (fs) =>
      Effect.gen(function* () {
        yield* failing(
          Effect.gen(function* () {
            const file = yield* fs.open("new.txt", { flag })
            yield* file.writeAll(text("new"))
            assert.isTrue(yield* fs.exists("new.txt"))
            assert.strictEqual(yield* fs.readFileString("new.txt"), "new")
          })
        )
        assert.isFalse(yield* fs.exists("new.txt"))
      })
    )
  }

  onBoth("keeps a created and published file, even if the scope fails later", (fs) =>
    Effect.gen(function* () {
      yield* failing(
        Effect.flatMap(fs.open("new.txt", { flag: "wx" }), (file) => Effect.andThen(file.writeAll(text("new")), file.sync))
      )
      assert.strictEqual(yield* fs.readFileString("new.txt"), "new")
    })
  )

  onBoth("keeps a created and synced file, even if it is empty", (fs) =>
    Effect.gen(function* () {
      yield* failing(Effect.flatMap(fs.open("new.txt", { flag: "wx" }), (file) => file.sync))
      assert.isTrue(yield* fs.exists("new.txt"))
    })
  )

  onBoth("obeys the limits that were in force when it was opened", (fs) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const file = yield* Scope.provide(fs.open("a.txt", { flag: "w" }), scope)
      yield* file.writeAll(text("larger"))
      yield* Effect.provideService(Scope.close(scope, Exit.void), Limits.Limits, { ...Limits.standard, maxFileSize: 1 })
      assert.strictEqual(yield* fs.readFileString("a.txt"), "larger")
    })
  )

  onBoth("does not remove its created file if another writer has written to it", (fs) =>
    Effect.gen(function* () {
      yield* failing(Effect.andThen(fs.open("new.txt", { flag: "w" }), fs.writeFileString("new.txt", "theirs")))
      assert.strictEqual(yield* fs.readFileString("new.txt"), "theirs")
    })
  )

  onBoth("keeps the old file when it is interrupted", (fs) =>
    Effect.gen(function* () {
      const written = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        opened(fs, "a.txt", "w", function* (file) {
          yield* file.writeAll(text("new"))
          yield* Deferred.succeed(written, undefined)
          return yield* Effect.never
        })
      )
      yield* Deferred.await(written)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* fs.readFileString("a.txt"), "0123456789")
    })
  )

  onBoth("with the flag x excludes a second handle as soon as it is opened", (fs) =>
    Effect.gen(function* () {
      yield* fs.open("lock", { flag: "wx" })
      const error = yield* Effect.flip(fs.open("lock", { flag: "wx" }))
      assert.strictEqual(error.reason._tag, "AlreadyExists")
    })
  )

  onBoth("replaces the whole content of another handle: the last handle to close wins", (fs) =>
    Effect.gen(function* () {
      const first = yield* Scope.make()
      const second = yield* Scope.make()
      const one = yield* Scope.provide(fs.open("a.txt", { flag: "w" }), first)
      const two = yield* Scope.provide(fs.open("a.txt", { flag: "w" }), second)
      yield* one.writeAll(text("first"))
      yield* two.writeAll(text("the second"))
      yield* Scope.close(second, Exit.void)
      yield* Scope.close(first, Exit.void)
      assert.strictEqual(yield* fs.readFileString("a.txt"), "first")
    })
  )

  onBoth("fails at sync, and with a defect when its scope closes, if its directory was removed", (fs) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(
        opened(fs, "d/b.txt", "w", function* (file) {
          yield* file.writeAll(text("new"))
          yield* fs.remove("d", { recursive: true })
          yield* file.writeAll(text("er"))
          assert.strictEqual((yield* Effect.flip(file.sync)).reason._tag, "NotFound")
        })
      )
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      assert.isFalse(yield* fs.exists("d"))
    })
  )

  onBoth("rejects a write above the limit at once", (fs) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        opened(fs, "a.txt", "r+", function* (file) {
          yield* file.seek(8n, "start")
          yield* file.writeAll(text("1234"))
          return yield* Effect.fail(new Error("it was written"))
        }).pipe(Effect.provideService(Limits.Limits, { ...Limits.standard, maxFileSize: 11 }))
      )
      assert.match(String((error as { cause?: unknown }).cause), /maxFileSize/)
      assert.strictEqual(yield* fs.readFileString("a.txt"), "0123456789")
    })
  )

  onBoth("with a mode creates the file with that mode before its content", (fs) =>
    Effect.gen(function* () {
      const file = yield* fs.open("secret", { flag: "w", mode: 0o600 })
      assert.strictEqual(yield* fs.readFileString("secret"), "")
      assert.strictEqual((yield* fs.stat("secret")).mode & 0o777, 0o600)
      yield* file.writeAll(text("s"))
      assert.strictEqual((yield* fs.stat("secret")).mode & 0o777, 0o600)
      yield* file.sync
      assert.strictEqual((yield* fs.stat("secret")).mode & 0o777, 0o600)
    })
  )
})

describe("while a handle has unpublished content:", () => {
  const looks: ReadonlyArray<[string, (fs: FileSystem.FileSystem) => Effect.Effect<unknown, unknown>]> = [
    ["stat of its directory", (fs) => fs.stat("d")],
    ["stat of the root", (fs) => fs.stat("/")],
    ["lstat of a symlink to it", (fs) => fs.lstat("link")],
    ["readFile of its directory", (fs) => Effect.flip(fs.readFile("d"))],
    ["open of its directory", (fs) => Effect.scoped(fs.open("d"))],
    ["a refused remove of its directory", (fs) => Effect.flip(fs.remove("d"))]
  ]
  for (const [name, look] of looks) {
    onBoth(`${name} does not publish the file`, (fs) =>
      Effect.gen(function* () {
        yield* fs.symlink("d/b.txt", "link")
        yield* failing(
          Effect.gen(function* () {
            const file = yield* fs.open("d/b.txt", { flag: "w" })
            yield* file.writeAll(text("half"))
            yield* look(fs)
          })
        )
        assert.strictEqual(yield* fs.readFileString("d/b.txt"), "b")
      })
    )
  }

  onBoth("lstat returns the size of the handle's content", (fs) =>
    Effect.gen(function* () {
      const file = yield* fs.open("a.txt", { flag: "w" })
      yield* file.writeAll(text("new"))
      assert.strictEqual(ByteSize.toNumberUnsafe((yield* fs.lstat("a.txt")).size), 3)
    })
  )

  onBoth("rename and copy of a directory include the handle's content of a file in it", (fs) =>
    Effect.gen(function* () {
      const file = yield* fs.open("d/b.txt", { flag: "w" })
      yield* file.writeAll(text("one"))
      yield* fs.copy("d", "copied")
      assert.strictEqual(yield* fs.readFileString("copied/b.txt"), "one")
      yield* file.writeAll(text(" two"))
      yield* fs.rename("d", "moved")
      assert.strictEqual(yield* fs.readFileString("moved/b.txt"), "one two")
    })
  )

  it.effect("a call sees the content under another spelling of the path on a case-insensitive filesystem", () =>
    Effect.gen(function* () {
      const layer = served(InMemory.layer({ caseInsensitive: true, tree: { D: { "A.txt": "old" } } }))
      const fs = Context.get(yield* Layer.build(layer), FileSystem.FileSystem)
      yield* opened(fs, "D/A.txt", "w", function* (file) {
        yield* file.writeAll(text("new"))
        assert.strictEqual(yield* fs.readFileString("d/a.TXT"), "new")
        yield* file.writeAll(text("er"))
        yield* fs.rename("d", "moved")
        assert.strictEqual(yield* fs.readFileString("moved/a.txt"), "newer")
      })
      assert.isFalse(yield* fs.exists("d"))
    })
  )

  const changes: ReadonlyArray<[string, (fs: FileSystem.FileSystem) => Effect.Effect<unknown, unknown>]> = [
    ["writeFile", (fs) => fs.writeFileString("d/b.txt", "source")],
    ["writeFile with a mode", (fs) => fs.writeFileString("d/b.txt", "source", { mode: 0o600 })],
    ["a sink", (fs) => Stream.run(Stream.make(text("source")), fs.sink("d/b.txt"))],
    ["rename onto it", (fs) => fs.rename("source", "d/b.txt")],
    ["copyFile onto it", (fs) => fs.copyFile("source", "d/b.txt")],
    ["copy onto it", (fs) => fs.copy("source", "d/b.txt", { overwrite: true })],
    ["copy onto its directory", (fs) => fs.copy("sources", "d", { overwrite: true })]
  ]
  for (const [name, change] of changes) {
    onBoth(`${name} is not undone by a read or the close of the handle`, (fs) =>
      Effect.gen(function* () {
        yield* fs.writeFileString("source", "source")
        yield* fs.makeDirectory("sources")
        yield* fs.writeFileString("sources/b.txt", "source")
        yield* opened(fs, "d/b.txt", "w", function* (file) {
          yield* file.writeAll(text("of the handle"))
          yield* change(fs)
          assert.strictEqual(yield* fs.readFileString("d/b.txt"), "source")
        })
        assert.strictEqual(yield* fs.readFileString("d/b.txt"), "source")
      })
    )
  }

  onBoth("writeFile with an append flag writes after the handle's content", (fs) =>
    Effect.gen(function* () {
      yield* opened(fs, "a.txt", "w", function* (file) {
        yield* file.writeAll(text("one"))
        yield* fs.writeFileString("a.txt", " two", { flag: "a" })
      })
      assert.strictEqual(yield* fs.readFileString("a.txt"), "one two")
    })
  )

  onBoth("remove of the file or its directory is not undone by the close of the handle", (fs) =>
    Effect.gen(function* () {
      for (const [path, removed] of [
        ["a.txt", "a.txt"],
        ["d/b.txt", "d"]
      ] as const) {
        yield* opened(fs, path, "w", function* (file) {
          yield* file.writeAll(text("new"))
          yield* fs.remove(removed, { recursive: true })
        })
        assert.isFalse(yield* fs.exists(removed))
      }
    })
  )

  onBoth("remove and rename of a symlink keep the handle's content in the target of the symlink", (fs) =>
    Effect.gen(function* () {
      for (const change of [
        (fs: FileSystem.FileSystem) => fs.remove("link"),
        (fs: FileSystem.FileSystem) => fs.rename("link", "l2")
      ]) {
        yield* fs.symlink("a.txt", "link")
        yield* opened(fs, "link", "w", function* (file) {
          yield* file.writeAll(text("new"))
          yield* change(fs)
        })
        assert.isFalse(yield* fs.exists("link"))
        assert.strictEqual(yield* fs.readFileString("a.txt"), "new")
        yield* fs.writeFileString("a.txt", "old")
      }
    })
  )

  onBoth("utimes is not undone by the close of the handle", (fs) =>
    Effect.gen(function* () {
      const time = new Date(1_000_000_000_000)
      yield* opened(fs, "a.txt", "w", function* (file) {
        yield* file.writeAll(text("new"))
        yield* fs.utimes("a.txt", time, time)
      })
      assert.deepStrictEqual((yield* fs.stat("a.txt")).mtime, Option.some(time))
    })
  )

  onBoth("rename moves the content, and later writes of the handle re-create the old name", (fs) =>
    Effect.gen(function* () {
      yield* opened(fs, "a.txt", "w", function* (file) {
        yield* file.writeAll(text("one"))
        yield* fs.rename("a.txt", "moved.txt")
        yield* file.writeAll(text(" two"))
      })
      assert.strictEqual(yield* fs.readFileString("moved.txt"), "one")
      assert.strictEqual(yield* fs.readFileString("a.txt"), "one two")
    })
  )
})

describe("a handle that appends", () => {
  onBoth("keeps its writes when the scope fails", (fs) =>
    Effect.gen(function* () {
      yield* failing(Effect.flatMap(fs.open("a.txt", { flag: "a" }), (file) => file.writeAll(text("+"))))
      assert.strictEqual(yield* fs.readFileString("a.txt"), "0123456789+")
    })
  )

  onBoth("removes the file that it created when the scope fails before a write", (fs) =>
    Effect.gen(function* () {
      yield* failing(fs.open("new.txt", { flag: "ax" }))
      assert.isFalse(yield* fs.exists("new.txt"))
    })
  )

  onBoth("reads at its own cursor, which writes do not move", (fs) =>
    Effect.gen(function* () {
      const file = yield* fs.open("a.txt", { flag: "a+" })
      yield* file.readAlloc(4)
      yield* file.writeAll(text("+"))
      assert.strictEqual(yield* file.seek(0n, "current"), 4n)
      assert.strictEqual(new TextDecoder().decode(Option.getOrThrow(yield* file.readAlloc(99))), "456789+")
    })
  )

  onBoth("fails if the file was removed, and creates no new file", (fs) =>
    Effect.gen(function* () {
      const file = yield* fs.open("a.txt", { flag: "a" })
      yield* fs.remove("a.txt")
      assert.strictEqual((yield* Effect.flip(file.writeAll(text("+")))).reason._tag, "NotFound")
      assert.isFalse(yield* fs.exists("a.txt"))
    })
  )
})

describe("a handle that reads", () => {
  onBoth("reads the file as it was opened, even if the path is replaced or removed", (fs) =>
    Effect.gen(function* () {
      const file = yield* fs.open("a.txt")
      yield* fs.writeFileString("a.txt", "new")
      assert.strictEqual(yield* all(file), "0123456789")
      yield* fs.remove("a.txt")
      assert.strictEqual(yield* all(file), "0123456789")
    })
  )

  onBoth("seeks from the end: 3 before the end of 10 bytes is position 7", (fs) =>
    Effect.gen(function* () {
      const file = yield* fs.open("a.txt")
      const end = "end" as FileSystem.SeekMode
      assert.strictEqual(yield* file.seek(-3n, end), 7n)
      assert.strictEqual(new TextDecoder().decode(Option.getOrThrow(yield* file.readAlloc(9))), "789")
      assert.strictEqual((yield* Effect.flip(file.seek(-11n, end))).reason._tag, "BadArgument")
      assert.strictEqual(yield* file.seek(0n, "current"), 10n)
    })
  )

  it.effect("reads only the requested bytes of a large file from the backend", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { large: new Uint8Array(4 * 1024 * 1024) } })
      const asked: Array<number> = []
      const counting = make({
        ...port,
        perform: undefined,
        explore: undefined,
        open: (path) =>
          Effect.map(port.open(path), (handle) => ({
            ...handle,
            read: (offset, length) => {
              asked.push(length)
              return handle.read(offset, length)
            }
          }))
      })
      const context = yield* Layer.build(served(Layer.succeed(Filesystem, counting)))
      const fs = Context.get(context, FileSystem.FileSystem)
      yield* Effect.scoped(Effect.flatMap(fs.open("large"), (file) => file.readAlloc(1000, { position: 3_000_000n })))
      assert.deepStrictEqual(asked.splice(0), [1000])
      yield* Stream.runDrain(fs.stream("large"))
      assert.strictEqual(Math.max(...asked.splice(0)), 64 * 1024)
      const file = yield* fs.open("large", { flag: "r+" })
      yield* file.seek(100_000n, "start")
      yield* file.writeAll(text("one page is touched"))
      assert.deepStrictEqual(asked, [64 * 1024])
    })
  )
})

describe("a closed handle", () => {
  for (const flag of ["r", "r+", "w", "a+"] as const) {
    onBoth(`with the flag ${flag} fails in every call`, (fs) =>
      Effect.gen(function* () {
        const file = yield* Effect.scoped(fs.open("a.txt", { flag }))
        const calls: ReadonlyArray<
          Effect.Effect<unknown, { readonly reason: { readonly _tag: string; readonly message: string } }>
        > = [
          file.stat,
          file.sync,
          file.seek(0n, "start"),
          file.read(new Uint8Array(1)),
          file.readAlloc(1),
          file.truncate(1),
          file.write(text("x")),
          file.writeAll(text("x")),
          file.writeAll(text(""))
        ]
        for (const call of calls) {
          const error = yield* Effect.flip(call)
          assert.strictEqual(error.reason._tag, "Unknown")
          assert.match(error.reason.message, /the file has been closed/)
        }
      })
    )
  }
})

describe("a sink", () => {
  const broken = Stream.concat(Stream.make(text("new")), Stream.fail("cable" as const))

  onBoth("keeps the old file when its stream fails", (fs) =>
    Effect.gen(function* () {
      yield* Effect.flip(Stream.run(broken, fs.sink("a.txt")))
      assert.strictEqual(yield* fs.readFileString("a.txt"), "0123456789")
      yield* Effect.flip(Stream.run(broken, fs.sink("a.txt", { flag: "r+" })))
      assert.strictEqual(yield* fs.readFileString("a.txt"), "0123456789")
    })
  )

  onBoth("removes the file that it created when its stream fails", (fs) =>
    Effect.gen(function* () {
      for (const options of [{}, { flag: "wx" }, { mode: 0o600 }, { flag: "w+", mode: 0o600 }] as const) {
        yield* Effect.flip(Stream.run(broken, fs.sink("new.txt", options)))
        assert.isFalse(yield* fs.exists("new.txt"))
      }
    })
  )

  onBoth("that appends keeps the written part when its stream fails", (fs) =>
    Effect.gen(function* () {
      yield* Effect.flip(Stream.run(broken, fs.sink("a.txt", { flag: "a" })))
      assert.strictEqual(yield* fs.readFileString("a.txt"), "0123456789new")
    })
  )

  onBoth("can write a file that is streamed from itself", (fs) =>
    Effect.gen(function* () {
      yield* Stream.run(fs.stream("a.txt"), fs.sink("a.txt"))
      assert.strictEqual(yield* fs.readFileString("a.txt"), "0123456789")
    })
  )

  onBoth("fails and consumes nothing of its stream if it cannot write", (fs) =>
    Effect.gen(function* () {
      let pulled = 0
      const source = Stream.fromEffect(
        Effect.sync(() => {
          pulled++
          return text("x")
        })
      )
      const error = yield* Effect.flip(Stream.run(source, fs.sink("d")))
      assert.strictEqual(error.reason._tag, "BadResource")
      assert.strictEqual(pulled, 0)
    })
  )
})
