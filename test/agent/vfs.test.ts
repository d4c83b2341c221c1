import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { AnyDefinition } from "../../src/agent/definition.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import { type ToolResult } from "../../src/agent/ToolResult.ts"
import { defaults, ToolSettings } from "../../src/agent/ToolSettings.ts"
import { deleteFile, listDirectory, readFile, writeFile } from "../../src/agent/tools/vfs.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"

const sha256 = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex")

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")

type Value = Record<string, unknown>

/** Starts a session of the four tools. */
const session = () => {
  const memory = Memory.make()
  const call = (tool: AnyDefinition) => (input: unknown) =>
    invokeUnknown(tool, input, { memory }) as Effect.Effect<ToolResult<Value>, never, Filesystem>
  return {
    memory,
    list: call(listDirectory),
    read: call(readFile),
    write: call(writeFile),
    remove: call(deleteFile)
  }
}

const refusedWith = (result: ToolResult<unknown>, ...parts: ReadonlyArray<string>): void => {
  assert.isFalse(result.success, result.message)
  assert.notProperty(result, "value")
  for (const part of parts) assert.include(result.message, part)
}

const host = Layer.unwrap(
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => realpathSync(mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "fs-algebra-vfs-")))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    ),
    (root) => PosixHost.layer({ root })
  )
)

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64"
)

describe("list_directory", () => {
  it.effect("lists directories and files separately, with sizes, versions and times in the message", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 0, 31, 23, 59, 58, 7))
      const { list } = session()
      const result = yield* list({}).pipe(
        Effect.provide(InMemory.layer({ tree: { "b.txt": "hello\n", a: { "c.txt": "" }, "empty.bin": new Uint8Array() } }))
      )
      assert.deepStrictEqual<unknown>(result.value, { path: ".", directories: ["a"], files: ["b.txt", "empty.bin"] })
      const at = "2026-01-31T23:59:58.007Z"
      assert.deepStrictEqual(result.message.split("\n"), [
        "the root: 1 directory, 2 files",
        "a/",
        `b.txt (6 bytes, version ${sha256("hello\n").slice(0, 12)}, created ${at}, updated ${at})`,
        `empty.bin (0 bytes, version ${sha256("").slice(0, 12)}, created ${at}, updated ${at})`
      ])
    })
  )

  it.effect(
    "lists one level, returns no entries for a missing directory, and fails for a file and for a path outside the root",
    () =>
      Effect.gen(function* () {
        const { list } = session()
        const missing = yield* list({ path: "not/there" })
        assert.deepStrictEqual<unknown>(missing.value, { path: "not/there", directories: [], files: [] })
        refusedWith(yield* list({ path: "d/f" }), "not a directory")
        const some = yield* list({ path: " /d/ " })
        assert.deepStrictEqual<unknown>(some.value, { path: "d", directories: ["e"], files: ["f"] })
        const nothing = yield* list({ path: "d/e" })
        assert.deepStrictEqual<unknown>(
          [nothing.value, nothing.message],
          [{ path: "d/e", directories: [], files: [] }, "d/e is empty"]
        )
        refusedWith(yield* list({ path: "../up" }), "root")
      }).pipe(Effect.provide(InMemory.layer({ tree: { d: { f: "1", e: {} } } })))
  )

  it.effect("lists a link with the kind of its target", () =>
    Effect.gen(function* () {
      const { list } = session()
      const { message, value } = yield* list({})
      assert.deepStrictEqual<unknown>(value, { path: ".", directories: ["d", "to-d"], files: ["dangling", "f", "to-f"] })
      assert.include(message, "to-d/")
      assert.include(message, "dangling (a broken link)")
      assert.include(message, `to-f (3 bytes, version ${sha256("abc").slice(0, 12)}`)
    }).pipe(
      Effect.provide(
        InMemory.layer({ tree: { d: {}, f: "abc", "to-d": { link: "d" }, "to-f": { link: "f" }, dangling: { link: "gone" } } })
      )
    )
  )

  it.effect("cuts a long listing in the message at a line within the budget, but not in the value", () =>
    Effect.gen(function* () {
      const tree = Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`f${i}`, "x"]))
      const { list } = session()
      const { message, value } = yield* list({}).pipe(Effect.provide(InMemory.layer({ tree })))
      assert.isAtMost(message.length, 48_000)
      const lines = message.split("\n")
      assert.strictEqual(lines.at(-1), `[cut: ${lines.length - 2} of 600 entries]`)
      assert.lengthOf(value!["files"] as Array<string>, 600)
    })
  )
})

describe("read_file of the four tools", () => {
  it.effect("returns text with numbered lines and the metadata of the file", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(0)
      const { read } = session()
      const text = "one\r\ntwo\nthree"
      const { message, value } = yield* read({ path: "a.txt" }).pipe(
        Effect.provide(InMemory.layer({ tree: { "a.txt": text } }))
      )
      const at = "1970-01-01T00:00:00.000Z"
      assert.deepStrictEqual<unknown>(value, {
        file: { path: "a.txt", encoding: "utf-8", size_bytes: 14, version: sha256(text), created_at: at, updated_at: at },
        content: text
      })
      assert.deepStrictEqual(message.split("\n"), [
        `a.txt (utf-8, 14 bytes, version ${sha256(text).slice(0, 12)}, created ${at}, updated ${at}): 3 lines`,
        "   1 | one",
        "   2 | two",
        "   3 | three"
      ])
    })
  )

  it.effect("returns binary content as base64, and an image also as an image", () =>
    Effect.gen(function* () {
      const { read } = session()
      for (const [path, bytes] of [
        ["nul", new Uint8Array([65, 0, 66])],
        ["latin1", new Uint8Array([0xe9])],
        ["i.png", png]
      ] as const) {
        const { message, value } = yield* read({ path }).pipe(Effect.provide(InMemory.layer({ tree: { [path]: bytes } })))
        assert.deepStrictEqual<unknown>(
          [(value!["file"] as Value)["encoding"], (value!["file"] as Value)["size_bytes"], value!["content"]],
          ["binary", bytes.length, base64(bytes)]
        )
        assert.include(message, "base64")
        const images = readFile.images!(value as never)
        assert.deepStrictEqual<unknown>(images, path === "i.png" ? [{ mediaType: "image/png", base64: base64(png) }] : [])
      }
    })
  )

  it.effect("fails for a missing path, a directory and a blank path", () =>
    Effect.gen(function* () {
      const { read } = session()
      refusedWith(yield* read({ path: "nope" }), "nope")
      refusedWith(yield* read({ path: "d" }), "d")
      refusedWith(yield* read({ path: "  " }), "path")
      refusedWith(yield* read({}), "path")
    }).pipe(Effect.provide(InMemory.layer({ tree: { d: {} } })))
  )

  it.effect("cuts a long text in the message at a line within the budget, but not in the value", () =>
    Effect.gen(function* () {
      const text = "0123456789\n".repeat(4363)
      const { read } = session()
      const { message, value } = yield* read({ path: "a" }).pipe(Effect.provide(InMemory.layer({ tree: { a: text } })))
      assert.isAtMost(message.length, 48_000)
      const lines = message.split("\n")
      assert.include(lines.at(-1)!, `[cut: ${lines.length - 2} of 4363 lines`)
      assert.strictEqual(value!["content"], text)
    })
  )
})

describe("write_file of the four tools", () => {
  it.effect("creates files by default, and replaces an existing file only in overwrite mode", () =>
    Effect.gen(function* () {
      const { read, write } = session()
      const made = yield* write({ path: "/d/e/a.txt ", content: "é\n" })
      assert.deepStrictEqual<unknown>(made.value, { path: "d/e/a.txt", content: "é\n", mode: "create", encoding: "utf-8" })
      assert.strictEqual(made.message, `Created d/e/a.txt: 2 characters, now version ${sha256("é\n").slice(0, 12)}`)
      refusedWith(yield* write({ path: "d/e/a.txt", content: "b" }), "exists", "overwrite")
      yield* write({ path: "d/e/a.txt", content: "b", mode: "overwrite" })
      assert.strictEqual((yield* read({ path: "d/e/a.txt" })).value!["content"], "b")
      refusedWith(yield* write({ path: "d", content: "b", mode: "overwrite" }), "d")
    }).pipe(Effect.provide(InMemory.layer()))
  )

  it.effect("creates missing files in overwrite and append mode, except with strict", () =>
    Effect.gen(function* () {
      const { read, write } = session()
      for (const mode of ["overwrite", "append"]) {
        assert.isTrue((yield* write({ path: `${mode}.txt`, content: "x", mode })).success)
        const strictly = Effect.provideService(ToolSettings, { ...defaults, strict: true })
        refusedWith(yield* write({ path: `${mode}.new`, content: "x", mode }).pipe(strictly), `${mode}.new`)
        refusedWith(yield* read({ path: `${mode}.new` }), `${mode}.new`)
        assert.isTrue((yield* write({ path: `${mode}.txt`, content: "y", mode }).pipe(strictly)).success)
      }
      assert.strictEqual((yield* read({ path: "append.txt" })).value!["content"], "xy")
      assert.strictEqual((yield* read({ path: "overwrite.txt" })).value!["content"], "y")
    }).pipe(Effect.provide(InMemory.layer()))
  )

  it.effect("accepts base64 with line breaks and without padding, and refuses invalid base64", () =>
    Effect.gen(function* () {
      const { write } = session()
      const fs = yield* Filesystem
      const sent = { mode: "overwrite", encoding: "binary", path: "b" }
      for (const content of ["/wAB", "/w\r\nAB ", "/wA", "/wA=", ""]) {
        const { value } = yield* write({ ...sent, content })
        assert.deepStrictEqual<unknown>(value, { ...sent, content })
        assert.deepStrictEqual((yield* fs.readBytes("b")).content, new Uint8Array(Buffer.from(content, "base64")))
      }
      for (const content of ["é", "a", "=", "ab=c", "-_-_", "abc=="]) {
        refusedWith(yield* write({ ...sent, content }), "content", "base64")
      }
      assert.strictEqual((yield* fs.readBytes("b")).sizeBytes, 0)
    }).pipe(Effect.provide(InMemory.layer()))
  )

  it.effect("appends in the encoding of the file if no encoding is given", () =>
    Effect.gen(function* () {
      const { write } = session()
      const fs = yield* Filesystem
      const onto = (path: string, content: string, encoding?: string) =>
        write({ path, content, mode: "append", ...(encoding !== undefined && { encoding }) })
      assert.strictEqual((yield* onto("bin", "/w==")).value!["encoding"], "binary")
      assert.deepStrictEqual([...(yield* fs.readBytes("bin")).content], [0, 255, 255])
      assert.strictEqual((yield* onto("text", "/w==")).value!["encoding"], "utf-8")
      assert.strictEqual(yield* fs.readString("text"), "é/w==")
      refusedWith(yield* onto("bin", "text", "utf-8"), "bin", "binary")
      yield* onto("text", "IQ==", "binary")
      assert.strictEqual(yield* fs.readString("text"), "é/w==!")
      // A character crosses the end of the part that is inspected.
      assert.strictEqual((yield* onto("long", "b")).value!["encoding"], "utf-8")
    }).pipe(
      Effect.provide(InMemory.layer({ tree: { bin: new Uint8Array([0, 255]), text: "é", long: `a${"é".repeat(40_000)}` } }))
    )
  )

  it.effect("accepts at most 48,000 characters, or 48,000 decoded bytes", () =>
    Effect.gen(function* () {
      const { write } = session()
      const text = (count: number) => write({ path: "t", content: "😀".repeat(count), mode: "overwrite" })
      const bytes = (count: number) =>
        write({ path: "b", content: base64(new Uint8Array(count)), encoding: "binary", mode: "overwrite" })
      assert.isTrue((yield* text(48_000)).success)
      assert.isTrue((yield* bytes(48_000)).success)
      refusedWith(yield* text(48_001), "48,000")
      refusedWith(yield* bytes(48_001), "48,000")
      const fs = yield* Filesystem
      assert.strictEqual((yield* fs.stat("t")).sizeBytes, 4 * 48_000)
      assert.strictEqual((yield* fs.stat("b")).sizeBytes, 48_000)
    }).pipe(Effect.provide(InMemory.layer()))
  )

  it.effect("accepts a whole version, or the prefix that messages contain, as if_version", () =>
    Effect.gen(function* () {
      const { read, write } = session()
      const onto = (content: string, if_version: string, mode = "overwrite") => write({ path: "a", content, mode, if_version })
      assert.isTrue((yield* onto("two", sha256("one"))).success)
      const shown = / version ([0-9a-f]{12}),/.exec((yield* read({ path: "a" })).message)![1]!
      assert.strictEqual(shown, sha256("two").slice(0, 12))
      assert.deepStrictEqual<unknown>((yield* onto("!", shown, "append")).value!["if_version"], sha256("two"))
      for (const old of [sha256("one"), shown, shown.slice(0, 11), "", "x".repeat(12)]) {
        refusedWith(yield* onto("lost", old), sha256("two!").slice(0, 12))
      }
      refusedWith(yield* write({ path: "new", content: "x", mode: "overwrite", if_version: shown }), "new")
      refusedWith(yield* write({ path: "b", content: "x", if_version: shown }), "if_version", "overwrite")
      assert.strictEqual((yield* read({ path: "a" })).value!["content"], "two!")
    }).pipe(Effect.provide(InMemory.layer({ tree: { a: "one" } })))
  )

  it.effect("refuses a lone surrogate and writes nothing", () =>
    Effect.gen(function* () {
      const { list, write } = session()
      refusedWith(yield* write({ path: "a", content: "\ud800" }), "content")
      assert.deepStrictEqual<unknown>((yield* list({})).value!["files"], [])
    }).pipe(Effect.provide(InMemory.layer()))
  )

  it.effect("refuses paths that are too deep, too long or outside of the root", () =>
    Effect.gen(function* () {
      const { write } = session()
      const at = (path: string) => write({ path, content: "x" })
      assert.isTrue((yield* at(Array.from({ length: 16 }, () => "d").join("/"))).success)
      refusedWith(yield* at(Array.from({ length: 17 }, () => "d").join("/")), "16")
      assert.isTrue((yield* at("n".repeat(80))).success)
      refusedWith(yield* at("n".repeat(81)), "80")
      refusedWith(yield* at("../out"), "..")
      refusedWith(yield* at(""), "path")
      refusedWith(yield* at("a\0b"), "path")
    }).pipe(Effect.provide(InMemory.layer()))
  )
})

describe("delete_file", () => {
  it.effect("removes a file, or a directory with everything in it, and nothing else", () =>
    Effect.gen(function* () {
      const { list, remove } = session()
      assert.deepStrictEqual<unknown>((yield* remove({ path: "/a.txt" })).value, { path: "a.txt", deleted: 1 })
      const { message, value } = yield* remove({ path: "d" })
      assert.deepStrictEqual<unknown>(value, { path: "d", deleted: 2 })
      assert.strictEqual(message, "Deleted d: 2 files and 2 directories")
      assert.deepStrictEqual<unknown>((yield* list({})).value, { path: ".", directories: [], files: ["d.txt"] })
    }).pipe(Effect.provide(InMemory.layer({ tree: { "a.txt": "1", "d.txt": "2", d: { f: "3", e: { g: "4" } } } })))
  )

  it.effect("fails for a missing path unless allow_missing is set, and refuses the root", () =>
    Effect.gen(function* () {
      const { remove } = session()
      refusedWith(yield* remove({ path: "nope" }), "nope")
      assert.deepStrictEqual<unknown>((yield* remove({ path: "nope", allow_missing: true })).value, {
        path: "nope",
        deleted: 0
      })
      refusedWith(yield* remove({ path: "/" }), "root")
      refusedWith(yield* remove({ path: "" }), "path")
    }).pipe(Effect.provide(InMemory.layer({ tree: { a: "1" } })))
  )
})

describe("the memory of a session", () => {
  it.effect("contains the versions that the session read and wrote, until the file is deleted", () =>
    Effect.gen(function* () {
      const { memory, read, remove, write } = session()
      const seen = (path: string) => memory.seen(path as never)
      assert.isUndefined(seen("a"))
      yield* read({ path: "a" })
      assert.strictEqual(seen("a"), sha256("one"))
      assert.strictEqual(memory.textOf(sha256("one")), "one")
      yield* write({ path: "a", content: "!", mode: "append" })
      assert.strictEqual(seen("a"), sha256("one!"))
      yield* write({ path: "b", content: "/w==", encoding: "binary" })
      assert.strictEqual(seen("b"), sha256(new Uint8Array([255])))
      yield* remove({ path: "a" })
      assert.isUndefined(seen("a"))
    }).pipe(Effect.provide(InMemory.layer({ tree: { a: "one" } })))
  )
})

describe("the four tools on memory and on a directory", () => {
  const Content = Schema.Union([Schema.String, Schema.Uint8Array])
  const write = Arbitrary.schema(
    Schema.Struct({
      path: Schema.Literals(["a", "b", "d/c", "d/e/f", "d"]),
      content: Content,
      mode: Schema.Literals(["create", "overwrite", "append"])
    })
  )

  it.live.prop(
    "give equal results, and read the content that they wrote",
    [Arbitrary.array(write)],
    ([writes]) =>
      Effect.gen(function* () {
        const answers = yield* Effect.forEach([InMemory.layer(), host], (layer) =>
          Effect.gen(function* () {
            const { list, read, remove, write: put } = session()
            const said: Array<unknown> = []
            const note = ({ message, ...result }: ToolResult<Value>) =>
              said.push(JSON.parse(JSON.stringify([result, message]).replaceAll(/\d{4}-[^"\s,]*Z/g, "TIME")))
            for (const { content, mode, path } of writes.slice(0, 8)) {
              const isText = typeof content === "string"
              const sent = { path, mode, content: isText ? content : base64(content), encoding: isText ? "utf-8" : "binary" }
              const result = yield* put(sent)
              note(result)
              const back = yield* read({ path })
              note(back)
              if (!result.success || mode === "append") continue
              const { content: found, file } = back.value as { content: string; file: { encoding: string; version: string } }
              const bytes = Buffer.from(found, file.encoding === "binary" ? "base64" : "utf8")
              assert.deepStrictEqual(bytes, Buffer.from(content as string))
              assert.strictEqual(file.version, sha256(bytes))
            }
            for (const path of [".", "d", "d/e"]) note(yield* list({ path }))
            note(yield* remove({ path: "d" }))
            note(yield* list({}))
            return said
          }).pipe(Effect.provide(layer, { local: true }), Effect.scoped)
        )
        assert.deepStrictEqual(answers[1], answers[0])
      }),
    { arbitrary: { runs: 25, seed: 6 } }
  )
})
