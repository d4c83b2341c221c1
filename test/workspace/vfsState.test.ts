/** The records of VfsState about its files, its path rules, and its directories. */
import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Limits from "../../src/model/Limits.ts"
import { agrees } from "../../src/testing/Agreement.ts"
import { program } from "../../src/testing/Arbitraries.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { Bench } from "../../src/testing/Law.ts"
import * as VfsState from "../../src/workspace/VfsState.ts"
import { failing, systemError } from "../backends/posixFailures.ts"
import { filesOf, versionsOf, workspace } from "./vfsStates.ts"

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const on = (root: string): ReadonlyArray<string> => Fs.readdirSync(root, { recursive: true, encoding: "utf8" }).sort()

describe("the record of a file", () => {
  it.effect("has version 1 after the creation, and each write or append adds 1 to the version", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      const writes: ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown>]> = [
        ["create", fs.write("a", "1", { mode: "create" })],
        ["overwrite", fs.write("a", "2")],
        ["append", fs.write("a", "3", { mode: "append" })],
        ["replace", fs.writeBytes("a", utf8("old"), { mode: "replace" })],
        ["appendExisting", fs.write("a", "4", { mode: "appendExisting" })],
        ["edit", fs.edit("a", { oldText: "old", newText: "new" })],
        ["sink", Stream.run(Stream.make(utf8("s"), utf8("t")), fs.sink("a"))],
        ["sink, append", Stream.run(Stream.make(utf8("u")), fs.sink("a", { mode: "append" }))],
        ["copy", Effect.andThen(fs.write("b", "of b"), fs.copy("b", "a", { overwrite: true }))]
      ]
      for (const [index, [name, write]] of writes.entries()) {
        yield* write
        const file = (yield* filesOf(session)).find(({ path }) => path[0] === "a")
        assert.strictEqual(file?.version, index + 1, name)
        assert.strictEqual(file?.sizeBytes, (yield* fs.stat("a")).sizeBytes, name)
      }
      assert.strictEqual(yield* fs.readString("a"), "of b")
    })
  )

  it.effect("has the creation time and the time of the last write by the Clock, in milliseconds", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      yield* TestClock.setTime(1_000_000_000_001)
      yield* fs.write("a", "x")
      yield* TestClock.adjust("1234 millis")
      yield* fs.write("a", "y", { mode: "append" })
      const [file] = yield* filesOf(session)
      assert.strictEqual(DateTime.formatIso(file!.createdAt), "2001-09-09T01:46:40.001Z")
      assert.strictEqual(DateTime.formatIso(file!.updatedAt), "2001-09-09T01:46:41.235Z")
      assert.deepStrictEqual((yield* fs.stat("a")).createdAt, file!.createdAt)
    })
  )

  it.live("never has a creation time after the modification time, even if the disk's clock lags", () =>
    Effect.gen(function* () {
      const { fs } = yield* workspace()
      for (let i = 0; i < 200; i++) {
        yield* fs.write(`f${i}`, "x")
        const { createdAt, modifiedAt } = yield* fs.stat(`f${i}`)
        assert.isAtMost(createdAt!.epochMilliseconds, modifiedAt!.epochMilliseconds)
      }
    })
  )

  it.effect("begins at version 1 again after a deletion", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      yield* fs.write("a", "1")
      yield* fs.write("a", "2")
      yield* fs.delete("a")
      assert.deepStrictEqual(yield* versionsOf(session), [])
      yield* fs.write("a", "3")
      assert.deepStrictEqual(yield* versionsOf(session), ["a@1"])
    })
  )

  it.effect("is listed in the order of path segments", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace({ policy: "standard" })
      for (const path of ["a.txt", "b", "a/c", "a-b", "a/b/c", "\u{10000}", "\uffee"]) yield* fs.write(path, "")
      assert.deepStrictEqual(
        (yield* filesOf(session)).map(({ path }) => path.join("/")),
        ["a/b/c", "a/c", "a-b", "a.txt", "b", "\uffee", "\u{10000}"]
      )
    })
  )

  const hints: ReadonlyArray<readonly [string, ReadonlyArray<Uint8Array>, string]> = [
    ["nothing", [], "utf-8"],
    ["text", [utf8("é日😀\r\n")], "utf-8"],
    ["a character across two chunks", [utf8("😀").subarray(0, 1), utf8("😀").subarray(1, 3), utf8("😀x").subarray(3)], "utf-8"],
    ["a NUL", [utf8("a\0b")], "binary"],
    ["half a character at the end", [utf8("é").subarray(0, 1)], "binary"],
    ["a byte that no UTF-8 has", [utf8("a"), new Uint8Array([0xff]), utf8("b")], "binary"],
    ["an over-long form", [new Uint8Array([0xc0, 0x80])], "binary"]
  ]
  for (const [name, chunks, expected] of hints) {
    it.effect(`has the encoding ${expected} for ${name}, written as a whole or as a stream`, () =>
      Effect.gen(function* () {
        const { fs, session } = yield* workspace()
        yield* fs.writeBytes("a", Buffer.concat(chunks))
        yield* Stream.run(Stream.fromIterable(chunks), fs.sink("b"))
        assert.deepStrictEqual(
          (yield* filesOf(session)).map(({ encoding }) => encoding),
          [expected, expected]
        )
      })
    )
  }

  it.effect(
    "has the encoding utf-8 after an append of text, binary after an append of bytes, and none for a foreign file",
    () =>
      Effect.gen(function* () {
        const { fs, session, state } = yield* workspace()
        Fs.writeFileSync(join(yield* state.rootPath, "c"), "foreign")
        yield* fs.write("a", "x")
        yield* fs.write("a", "y", { mode: "append" })
        yield* fs.write("b", "x")
        yield* fs.writeBytes("b", new Uint8Array([0]), { mode: "append" })
        yield* fs.write("c", "y", { mode: "append" })
        assert.deepStrictEqual(
          (yield* filesOf(session)).map(({ encoding, path }) => [path[0], encoding]),
          [
            ["a", "utf-8"],
            ["b", "binary"],
            ["c", null]
          ]
        )
      })
  )

  it.effect("moves with the file, and a replaced file gets a new version", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      yield* fs.write("d/a", "1")
      yield* fs.write("d/a", "2")
      yield* fs.write("d/e/b", "1")
      const before = yield* filesOf(session)
      yield* TestClock.adjust("1 hour")
      yield* fs.move("d", "m/n")
      const after = yield* filesOf(session)
      assert.deepStrictEqual(
        after.map(({ path, ...facts }) => [path, facts]),
        before.map(({ path, ...facts }) => [["m", "n", ...path.slice(1)], facts])
      )
      for (const text of ["1", "2", "3"]) yield* fs.write("t", text)
      yield* fs.move("m/n/a", "t", { overwrite: true })
      assert.deepStrictEqual(yield* versionsOf(session), ["m/n/e/b@1", "t@4"])
    })
  )

  it.effect("is unchanged by a call that fails", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      yield* fs.write("d/a", "1")
      const before = yield* session.all(VfsState.VirtualFileSystem)
      const broken = Stream.concat(Stream.make(utf8("half")), Stream.die("broken"))
      const calls: ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown>]> = [
        ["create", fs.write("d/a", "2", { mode: "create" })],
        ["a stale version", fs.write("d/a", "2", { ifMatch: "0".repeat(64) })],
        ["an edit of missing text", fs.edit("d/a", { oldText: "none", newText: "x" })],
        ["a full disk", faulty([{ operation: "Write", fault: { _tag: "DiskFull" } }])(fs).write("n/b", "x")],
        ["a stream that dies", Stream.run(broken, fs.sink("d/a"))],
        ["a directory that is not empty", fs.delete("d")],
        ["a move onto something", Effect.andThen(fs.mkdir("e"), fs.move("d/a", "e"))]
      ]
      for (const [name, call] of calls) {
        assert.strictEqual((yield* Effect.exit(call))._tag, "Failure", name)
        assert.strictEqual((yield* session.all(VfsState.VirtualFileSystem))[0], before[0], name)
        assert.strictEqual(yield* fs.readString("d/a"), "1", name)
      }
    })
  )

  it.effect("is unchanged by an interrupted stream", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      yield* fs.write("a", "1")
      const [before] = yield* session.all(VfsState.VirtualFileSystem)
      const begun = yield* Deferred.make<void>()
      const endless = Stream.concat(
        Stream.make(utf8("half")),
        Stream.fromEffect(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
      )
      const writing = yield* Effect.forkChild(Stream.run(endless, fs.sink("a")))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(writing)
      assert.strictEqual((yield* session.all(VfsState.VirtualFileSystem))[0], before)
      assert.strictEqual(yield* fs.readString("a"), "1")
    })
  )

  it.effect("does not change after a session has returned it", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      yield* fs.write("a", "1")
      const [value] = yield* session.all(VfsState.VirtualFileSystem)
      yield* fs.write("a", "2")
      yield* fs.write("b", "1")
      // Compare only now, after the later changes.
      assert.deepStrictEqual(
        value!.files.map(({ path, version }) => [path, version]),
        [[["a"], 1]]
      )
      for (const change of [
        () => ((value as { rootPath: string }).rootPath = "/"),
        () => (value!.files as Array<VfsState.VfsFile>).pop(),
        () => ((value!.files[0] as { version: number }).version = 9),
        () => (value!.files[0]!.path as Array<string>).push("x")
      ]) {
        assert.throws(change)
      }
      assert.deepStrictEqual(yield* versionsOf(session), ["a@2", "b@1"])
    })
  )

  it.effect("is saved as strings and numbers, and loaded unchanged", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      yield* TestClock.setTime(0)
      yield* fs.write("d/a", "12")
      const [value] = yield* session.all(VfsState.VirtualFileSystem)
      const codec = Schema.toCodecJson(VfsState.VirtualFileSystem.schema)
      const encoded = Schema.encodeSync(codec)(value!)
      assert.deepStrictEqual(JSON.parse(JSON.stringify(encoded)), {
        rootPath: value!.rootPath,
        files: [
          {
            path: "d/a",
            encoding: "utf-8",
            sizeBytes: 2,
            version: 1,
            createdAt: "1970-01-01T00:00:00.000Z",
            updatedAt: "1970-01-01T00:00:00.000Z"
          }
        ]
      })
      assert.deepStrictEqual(Schema.decodeSync(codec)(encoded).files, [...value!.files])
    })
  )

  it.effect.prop(
    "exists for exactly the files on disk, with their sizes, after any sequence of calls",
    [program({ links: "none" })],
    ([commands]) =>
      Effect.gen(function* () {
        const { fs, session } = yield* workspace({ policy: "standard" })
        yield* agrees(commands).pipe(Effect.provideService(Filesystem, fs), Effect.provideService(Bench, { prunes: true }))
        const entries = (yield* Stream.runCollect(fs.walk())).filter(({ kind }) => kind === "file")
        const sizes = yield* Effect.forEach(entries, ({ path }) => Effect.map(fs.stat(path), (stat) => [path, stat.sizeBytes]))
        const known = (yield* filesOf(session)).map(({ path, sizeBytes }) => [path.join("/"), sizeBytes])
        assert.deepStrictEqual(new Map(known as never), new Map(sizes as never))
        assert.strictEqual(known.length, sizes.length)
      }).pipe(Effect.scoped),
    { arbitrary: { runs: process.env["FS_ALGEBRA_SOAK"] === "1" ? 1000 : 60 } }
  )
})

describe("a path", () => {
  const calls: ReadonlyArray<
    readonly [string, (fs: Algebra, path: string) => Effect.Effect<unknown, { readonly _tag: string }>]
  > = [
    ["read", (fs, path) => fs.read(path)],
    ["write", (fs, path) => fs.write(path, "x")],
    ["list", (fs, path) => fs.list(path)],
    ["delete", (fs, path) => fs.delete(path)],
    ["mkdir", (fs, path) => fs.mkdir(path)],
    ["move", (fs, path) => fs.move("there", path)]
  ]
  for (const path of ["..", "a/../b", "./a", "a/.", "a/./b", "é", "a/ü/b", "a\0b", "a\u007f", "/../etc/passwd"]) {
    it.effect(`${JSON.stringify(path)} fails with InvalidPath in every call`, () =>
      Effect.gen(function* () {
        const { fs, session } = yield* workspace()
        yield* fs.write("there", "x")
        for (const [name, call] of calls) assert.strictEqual((yield* Effect.flip(call(fs, path)))._tag, "InvalidPath", name)
        assert.deepStrictEqual(yield* versionsOf(session), ["there@1"])
      })
    )
  }

  it.effect("/ means the root of the workspace, and extra slashes are ignored", () =>
    Effect.gen(function* () {
      const { fs, state } = yield* workspace()
      yield* fs.write("/etc//passwd/", "mine")
      assert.strictEqual(Fs.readFileSync(join(yield* state.rootPath, "etc/passwd"), "utf8"), "mine")
      for (const root of ["", ".", "/"])
        assert.deepStrictEqual(
          (yield* fs.list(root)).map(({ name }) => name),
          ["etc"]
        )
    })
  )

  it.effect("may have 16 segments and 80 characters in a segment under the limits of agents, and no more", () =>
    Effect.gen(function* () {
      const { fs } = yield* workspace()
      const longest = Array.from({ length: 16 }, (_, i) => String.fromCharCode(97 + i).repeat(i === 0 ? 80 : 8)).join("/")
      yield* fs.write(longest, "x")
      assert.strictEqual(yield* fs.readString(longest), "x")
      assert.strictEqual((yield* Effect.flip(fs.write(`${longest}/q`, "x")))._tag, "PathTooLong")
      assert.strictEqual((yield* Effect.flip(fs.write("a".repeat(81), "x")))._tag, "PathTooLong")
    }).pipe(Effect.provideService(Limits.Limits, Limits.agent))
  )

  it("is a string in data and an array of segments in code", () => {
    const { decodeUnknownSync, encodeSync } = Schema
    for (const [input, segments] of [
      ["src/main.py", ["src", "main.py"]],
      ["/src//main.py/", ["src", "main.py"]],
      [".", []],
      ["", []]
    ] as const) {
      assert.deepStrictEqual(decodeUnknownSync(VfsState.VfsPath)(input), segments)
    }
    for (const input of ["..", "a/..", "./a", "é", "a\n", 7]) {
      assert.throws(() => decodeUnknownSync(VfsState.VfsPath)(input))
    }
    assert.strictEqual(encodeSync(VfsState.VfsPath)(["src", "main.py"]), "src/main.py")
    for (const segments of [["a/b"], [""], [".."], ["a", "."], ["é"]]) {
      assert.throws(() => encodeSync(VfsState.VfsPath)(segments))
    }
  })
})

describe("a directory", () => {
  it.effect("is deleted with all its contents, but without entries of similar names", () =>
    Effect.gen(function* () {
      const { fs, session, state } = yield* workspace()
      for (const path of ["d/a", "d/e/b", "d/e/f/c", "d2/a", "d.txt", "e/d/a"]) yield* fs.write(path, "x")
      assert.deepStrictEqual(yield* fs.delete("d", { recursive: true }), { deleted: 3, directories: 3 })
      assert.deepStrictEqual(yield* versionsOf(session), ["d.txt@1", "d2/a@1", "e/d/a@1"])
      assert.deepStrictEqual(on(yield* state.rootPath), ["d.txt", "d2", "d2/a", "e", "e/d", "e/d/a"])
    })
  )

  it.effect("is removed with its empty parents when it becomes empty, unless it was created empty", () =>
    Effect.gen(function* () {
      const { fs, state } = yield* workspace()
      const root = yield* state.rootPath
      for (const path of ["p/q/r/a", "p/b", "m/n/a"]) yield* fs.write(path, "x")
      yield* fs.mkdir("empty/inner")
      yield* fs.delete("p/q/r/a")
      yield* fs.move("m/n/a", "moved")
      assert.deepStrictEqual(on(root), ["empty", "empty/inner", "moved", "p", "p/b"])
      yield* fs.write("empty/x", "x")
      yield* fs.delete("empty/x")
      assert.deepStrictEqual(on(root), ["empty", "empty/inner", "moved", "p", "p/b"])
    })
  )

  it.effect("that is partly deleted keeps the records of its remaining files only", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      for (const path of ["d/a", "d/b", "d/c"]) yield* fs.write(path, "x")
      const broken = faulty([{ operation: "Remove", nth: 3, fault: { _tag: "IoError", detail: "planned" } }])(fs)
      assert.strictEqual((yield* Effect.flip(broken.delete("d", { recursive: true })))._tag, "IoError")
      const left = (yield* Stream.runCollect(fs.walk("d"))).map(({ path }) => `${path}@1`)
      assert.strictEqual(left.length, 1)
      assert.deepStrictEqual(yield* versionsOf(session), left)
    })
  )

  it.effect("whose deletion fails at one file on disk keeps the records of its remaining files only", () =>
    Effect.gen(function* () {
      const { fs, session } = yield* workspace()
      for (const path of ["d/a", "d/b", "d/c", "d/e/f"]) yield* fs.write(path, "x")
      const refused = failing("unlinkSync", (at) => (String(at).endsWith("/b") ? systemError("EIO", -5, "unlink") : undefined))
      const error = yield* Effect.flip(Effect.scoped(Effect.andThen(refused, fs.delete("d", { recursive: true }))))
      assert.strictEqual(error._tag, "IoError")
      const left = (yield* Stream.runCollect(fs.walk("d"))).filter(({ kind }) => kind === "file")
      assert.isBelow(left.length, 4)
      assert.deepStrictEqual(
        yield* versionsOf(session),
        left.map(({ path }) => `${path}@1`)
      )
    })
  )
})

describe("a change that another process makes", () => {
  it.effect("by removing a file makes reads fail with NotFound, and the file can be written again", () =>
    Effect.gen(function* () {
      const { fs, state } = yield* workspace()
      yield* fs.write("d/a", "x")
      Fs.rmSync(join(yield* state.rootPath, "d/a"))
      const error = yield* Effect.flip(fs.readString("d/a"))
      assert.deepStrictEqual([error._tag, error.path], ["NotFound", "d/a"])
      yield* fs.write("d/a", "again")
      assert.strictEqual(yield* fs.readString("d/a"), "again")
    })
  )

  it.effect("by adding a file is visible, and the session records the file at its first write", () =>
    Effect.gen(function* () {
      const { fs, session, state } = yield* workspace()
      Fs.writeFileSync(join(yield* state.rootPath, "foreign"), "x")
      assert.strictEqual(yield* fs.readString("foreign"), "x")
      assert.deepStrictEqual(
        (yield* fs.list()).map(({ name }) => name),
        ["foreign"]
      )
      assert.deepStrictEqual(yield* versionsOf(session), [])
      yield* fs.write("foreign", "y")
      assert.deepStrictEqual(yield* versionsOf(session), ["foreign@1"])
    })
  )

  it.effect("by adding a link does not lead out of the directory", () =>
    Effect.gen(function* () {
      const { fs, place, state } = yield* workspace()
      Fs.mkdirSync(join(place, "outside"))
      Fs.writeFileSync(join(place, "outside/secret"), "secret")
      const root = yield* state.rootPath
      Fs.symlinkSync(join(place, "outside"), join(root, "out"))
      Fs.symlinkSync(join(place, "outside/secret"), join(root, "file"))
      for (const path of ["out/secret", "file"]) {
        assert.strictEqual((yield* Effect.result(fs.readString(path)))._tag, "Failure", path)
        assert.strictEqual((yield* Effect.result(fs.write(path, "overwritten")))._tag, "Failure", path)
      }
      assert.strictEqual(Fs.readFileSync(join(place, "outside/secret"), "utf8"), "secret")
    })
  )
})
