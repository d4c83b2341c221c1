import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as FileStore from "../../src/history/FileStore.ts"
import * as Limits from "../../src/model/Limits.ts"
import { capture, picture } from "../../src/testing/Files.ts"

const host = Layer.unwrap(
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => Fs.mkdtempSync(join(tmpdir(), "fs-algebra-store-"))),
      (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
    ),
    (root) => PosixHost.layer({ root })
  )
)

const store = FileStore.layer

const onBoth = (name: string, body: Effect.Effect<void, unknown, FileStore.FileStore | Filesystem | Scope.Scope>) => {
  it.effect(`${name} (in memory)`, () => Effect.provide(body, Layer.provideMerge(store, InMemory.layer())))
  it.effect(`${name} (on a host)`, () => Effect.provide(body, Layer.provideMerge(store, host)))
}

describe("FileStore", () => {
  onBoth(
    "reads what it wrote, creates parents, and returns the number of bytes",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      assert.strictEqual(yield* self.write("a/b/c.txt", "hé\nlo\n"), 7)
      assert.deepStrictEqual(yield* self.read("a/b/c.txt"), {
        path: "a/b/c.txt" as never,
        content: "hé\nlo",
        totalLines: 2,
        offset: 0,
        limit: 2,
        truncated: false,
        endsWithNewline: true
      })
    })
  )

  onBoth(
    "replaces an existing file",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      yield* self.write("a", "first")
      assert.strictEqual(yield* self.write("a", "2"), 1)
      assert.strictEqual((yield* self.read("a")).content, "2")
    })
  )

  onBoth(
    "reads all lines by default, and a window on request",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      const lines = Array.from({ length: 5000 }, (_, i) => `line ${i}`)
      yield* self.write("long", lines.join("\n"))
      const whole = yield* self.read("long")
      assert.strictEqual(whole.content, lines.join("\n"))
      assert.deepInclude(whole, { totalLines: 5000, limit: 5000, truncated: false })
      assert.deepInclude(yield* self.read("long", { offset: 4998, limit: 1 }), {
        content: "line 4998",
        offset: 4998,
        limit: 1,
        truncated: true,
        next: 4999
      })
      assert.deepInclude(yield* self.read("long", { offset: 4999 }), { content: "line 4999", truncated: false })
    })
  )

  onBoth(
    "fails to read a missing file, a directory, and a file that is not text",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      yield* (yield* Filesystem).writeBytes("binary", new Uint8Array([0x61, 0xff]))
      yield* self.write("d/f", "")
      const tags = yield* Effect.forEach(["none", "d", "binary", "../x"], (path) =>
        Effect.map(Effect.flip(self.read(path)), (error) => error._tag)
      )
      assert.deepStrictEqual(tags, ["NotFound", "NotAFile", "NotText", "InvalidPath"])
    })
  )

  onBoth(
    "deletes files and whole directories, and returns the number of files, or 1 for an empty directory",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      for (const path of ["tests/a", "tests/b/c", "tests/b/d/e", "kept"]) yield* self.write(path, "x")
      yield* (yield* Filesystem).mkdir("empty/inner")
      assert.strictEqual(yield* self.delete("tests/a"), 1)
      assert.strictEqual(yield* self.delete("tests/"), 2)
      assert.strictEqual(yield* self.delete("empty"), 1)
      assert.deepStrictEqual(
        (yield* self.list()).map(({ name }) => name),
        ["kept"]
      )
    })
  )

  onBoth(
    "deletes nothing at a missing path",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      yield* self.write("f", "x")
      for (const path of ["tests/", "no/where", "f/below"]) assert.strictEqual(yield* self.delete(path), 0)
      const error = yield* Effect.flip(self.delete("."))
      assert.deepInclude(error, { _tag: "AccessDenied", why: "root" })
    })
  )

  onBoth(
    "lists entries by name with kinds and sizes, and nothing for a missing directory",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      yield* self.write("b.txt", "12345")
      yield* self.write("a/x", "")
      const entries = [
        { name: "a", path: "a", kind: "directory", isFile: false, isDirectory: true, sizeBytes: 0, addressable: true },
        { name: "b.txt", path: "b.txt", kind: "file", isFile: true, isDirectory: false, sizeBytes: 5, addressable: true }
      ]
      for (const root of [undefined, "", ".", "/"]) {
        assert.deepStrictEqual(yield* self.list(root), entries as never)
      }
      assert.deepStrictEqual(yield* self.list("none"), [])
      assert.deepStrictEqual(yield* self.list("none/below"), [])
      assert.strictEqual((yield* Effect.flip(self.list("b.txt")))._tag, "NotADirectory")
    })
  )

  onBoth(
    "globs files with their sizes; a name matches at any depth, and a path from the root",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      for (const path of ["r.py", "s/a.py", "s/t/c.py", "s/d.txt"]) yield* self.write(path, path)
      const paths = (pattern: string) => Effect.map(self.glob(pattern), (entries) => entries.map(({ path }) => String(path)))
      assert.deepStrictEqual(yield* paths("*.py"), ["r.py", "s/a.py", "s/t/c.py"])
      assert.deepStrictEqual(yield* paths("**/*.py"), ["r.py", "s/a.py", "s/t/c.py"])
      assert.deepStrictEqual(yield* paths("s/*.py"), ["s/a.py"])
      assert.deepStrictEqual(yield* paths("none/*"), [])
      assert.deepStrictEqual(yield* self.glob("s/d.txt"), [
        { name: "d.txt", path: "s/d.txt", kind: "file", isFile: true, isDirectory: false, sizeBytes: 7, addressable: true }
      ] as never)
      assert.strictEqual((yield* Effect.flip(self.glob("")))._tag, "InvalidArgument")
    })
  )

  onBoth(
    "greps only the files that match a glob, in order of path and line",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      yield* self.write("b.txt", "one\nTODO two")
      yield* self.write("a/c.py", "TODO\nx TODO TODO")
      const found = yield* self.grep("TODO")
      assert.deepStrictEqual(found, [
        { path: "a/c.py", lineNumber: 1, lineContent: "TODO", matchStart: 0, matchEnd: 4 },
        { path: "a/c.py", lineNumber: 2, lineContent: "x TODO TODO", matchStart: 2, matchEnd: 6 },
        { path: "b.txt", lineNumber: 2, lineContent: "TODO two", matchStart: 0, matchEnd: 4 }
      ] as never)
      assert.deepStrictEqual(yield* self.grep("TODO", { fileGlob: "*.txt" }), found.slice(2))
      assert.deepStrictEqual(yield* self.grep("nothing"), [])
      assert.strictEqual((yield* Effect.flip(self.grep("(")))._tag, "InvalidArgument")
    })
  )

  onBoth(
    "ignores the limits of the environment",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      const deep = `${"d/".repeat(20)}${"n".repeat(100)}`
      const lines = "match\n".repeat(1500)
      yield* self.write(deep, lines)
      for (let i = 0; i < 20; i++) yield* self.write(`many/${i}`, "")
      assert.strictEqual((yield* self.read(deep)).totalLines, 1500)
      assert.strictEqual((yield* self.grep("match")).length, 1500)
      assert.strictEqual((yield* self.glob("many/*")).length, 20)
      assert.strictEqual((yield* self.list("many")).length, 20)
      assert.strictEqual(yield* self.delete("many"), 20)
    }).pipe(
      Effect.provideService(Limits.Limits, {
        ...Limits.agent,
        maxFileSize: 5,
        maxReadBytes: 5,
        maxGrepMatches: 3,
        maxGlobMatches: 3,
        maxListEntries: 3
      })
    )
  )

  onBoth(
    "makes a snapshot of the whole tree, which can be restored repeatedly",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      const fs = yield* Filesystem
      yield* fs.mkdir("hollow")
      yield* fs.writeBytes("d/binary", new Uint8Array([0x61, 0xff, 0]))
      yield* self.write("text", "a\r\nb")
      yield* fs.symlink("link", "d/binary")
      const before = yield* capture(fs.port)
      const data = yield* self.snapshot
      const copy = data.slice()
      for (let i = 0; i < 2; i++) {
        yield* self.delete("d")
        yield* self.delete("hollow")
        yield* self.write("text", "other")
        yield* self.write(`new/${i}`, "")
        assert.isUndefined(yield* self.restore(data))
        assert.deepStrictEqual(yield* capture(fs.port), before)
      }
      assert.deepStrictEqual(data, copy)
    })
  )

  onBoth(
    "restores a snapshot of another store on another backend",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      const other = make(yield* InMemory.make({ tree: { a: { b: "from memory" }, run: new Uint8Array([0xfe]) } }))
      yield* self.write("own", "x")
      yield* self.restore(yield* FileStore.make(other).snapshot)
      const fs = yield* Filesystem
      assert.deepStrictEqual(yield* capture(fs.port), picture({ "a/b": "from memory", run: new Uint8Array([0xfe]) }))
    })
  )

  onBoth(
    "rejects invalid or truncated snapshots without any change",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      yield* self.write("kept", "x")
      const data = yield* self.snapshot
      yield* self.write("since", "y")
      for (const bad of [new Uint8Array(0), new Uint8Array(1000), data.subarray(0, -1), data.subarray(1)]) {
        assert.deepInclude(yield* Effect.flip(self.restore(bad)), { _tag: "ArchiveError", reason: "corrupt" })
      }
      for (const bad of [undefined, null, "PK", [1, 2], {}, new ArrayBuffer(8), new Float64Array(2)]) {
        assert.deepInclude(yield* Effect.flip(self.restore(bad as never)), { _tag: "ArchiveError", reason: "corrupt" })
      }
      const fs = yield* Filesystem
      assert.deepStrictEqual(yield* capture(fs.port), picture({ kept: "x", since: "y" }))
      yield* self.restore(Buffer.from(data))
      assert.deepStrictEqual(yield* capture(fs.port), picture({ kept: "x" }))
    })
  )

  onBoth(
    "applies the limits of archives, for entries and bytes",
    Effect.gen(function* () {
      const self = yield* FileStore.FileStore
      yield* self.write(`${"d/".repeat(20)}${"n".repeat(100)}`, "12345")
      yield* self.write("f", "12345")
      const withLimits = <A, E>(effect: Effect.Effect<A, E>, more: Partial<Limits.LimitsShape>) =>
        Effect.provideService(effect, Limits.Limits, { ...Limits.agent, maxFileSize: 2, maxReadBytes: 2, ...more })
      const data = yield* withLimits(self.snapshot, {})
      yield* withLimits(self.restore(data), {})
      const fs = yield* Filesystem
      const before = yield* capture(fs.port)
      for (const more of [{ maxArchiveEntries: 3 }, { maxArchiveBytes: 9 }]) {
        for (const call of [self.snapshot, self.restore(data)]) {
          const error = yield* Effect.flip(withLimits<unknown, unknown>(call, more))
          assert.deepInclude(error as object, { _tag: "ArchiveError", reason: "tooLarge" })
        }
      }
      assert.deepStrictEqual(yield* capture(fs.port), before)
    })
  )

  it.effect("restores only if writing and deleting are permitted, and checks the permissions first", () =>
    Effect.gen(function* () {
      for (const options of [{ readOnly: true }, { allowWrite: false }, { allowDelete: false }]) {
        const fs = make(yield* InMemory.make({ tree: { f: "x" }, ...options }))
        const self = FileStore.make(fs)
        const data = yield* self.snapshot
        for (const any of [data, new Uint8Array(3), "no bytes" as never]) {
          assert.deepInclude(yield* Effect.flip(self.restore(any)), { _tag: "AccessDenied", why: "readOnly" })
        }
        assert.deepStrictEqual(yield* capture(fs.port), picture({ f: "x" }))
      }
    })
  )
})
