import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Tree } from "../../src/backends/InMemory.ts"
import * as FileSystemEntry from "../../src/journal/FileSystemEntry.ts"
import { Journal } from "../../src/journal/Journal.ts"
import * as Spells from "../../src/journal/Spells.ts"
import { standard } from "../../src/model/Limits.ts"
import { entries, type Kind, kinds, whole } from "./spelling.ts"

const tree: Tree = {
  "a.txt": "one\ntwo\nthree\n",
  "empty.txt": "",
  "raw.bin": new Uint8Array([0, 1, 2, 255]),
  "latin1.txt": new Uint8Array([99, 97, 102, 233]),
  docs: { "b.md": "# b\n", deep: { "c.md": "# c\n" } },
  hollow: {}
}

/** A text that fits neither in one entry nor in one chunk, with characters that chunks cut. */
const long = "a line of text, with ä, € and 😀\n".repeat(60_000)

type Faulty = readonly [
  spell: Spells.SpellName,
  parameters: unknown,
  kind: Spells.SpellFaultKind,
  settings?: Parameters<Kind["leaf"]>[1]
]

const name = "x".repeat(300)

const faults: ReadonlyArray<Faulty> = [
  ["read_file", { path: "none" }, "NotFound"],
  ["read_file", { path: "docs" }, "NotAFile"],
  ["read_file", { path: "../a.txt" }, "InvalidPath"],
  ["read_file", { path: "docs//b.md" }, "InvalidPath"],
  ["read_file", { path: "a\u0000b" }, "InvalidPath"],
  ["read_file", { path: name }, "PathTooLong"],
  ["write_file", { path: "a.txt", content: "x" }, "AlreadyExists"],
  ["write_file", { path: "none", content: "x", mode: "replace" }, "NotFound"],
  ["write_file", { path: "none", content: "x", mode: "append_existing" }, "NotFound"],
  ["write_file", { path: "docs", content: "x", mode: "overwrite" }, "NotAFile"],
  ["write_file", { path: "a.txt/below", content: "x" }, "NotADirectory"],
  ["write_file", { path: "docs/../x", content: "x" }, "InvalidPath"],
  ["write_file", { path: name, content: "x" }, "PathTooLong"],
  ["write_file", { path: "x", content: "x" }, "AccessDenied", { allowWrite: false }],
  ["list_directory", { path: "a.txt" }, "NotADirectory"],
  ["list_directory", { path: ".." }, "InvalidPath"],
  ["delete_file", { path: "none" }, "NotFound"],
  ["delete_file", { path: "docs" }, "DirectoryNotEmpty"],
  ["delete_file", { path: "a//b" }, "InvalidPath"],
  ["delete_file", { path: "a.txt" }, "AccessDenied", { allowDelete: false }],
  ["delete_file", { path: "/", recursive: true }, "AccessDenied"],
  ["edit_file", { path: "none", old_string: "a", new_string: "b" }, "NotFound"],
  ["edit_file", { path: "docs", old_string: "a", new_string: "b" }, "NotAFile"],
  ["edit_file", { path: "latin1.txt", old_string: "caf", new_string: "b" }, "NotText"],
  ["edit_file", { path: "a.txt", old_string: "four", new_string: "b" }, "InvalidArgument"],
  ["edit_file", { path: "a.txt", old_string: "e\n", new_string: "b" }, "InvalidArgument"],
  ["edit_file", { path: "a.txt", old_string: "two", new_string: "2" }, "AccessDenied", { allowWrite: false }],
  ["edit_file", { path: "../a.txt", old_string: "two", new_string: "2" }, "InvalidPath"]
]

const badParameters: ReadonlyArray<readonly [spell: Spells.SpellName, parameters: unknown]> = [
  ["read_file", null],
  ["read_file", {}],
  ["read_file", { path: 1 }],
  ["read_file", { path: "a.txt", pth: "b" }],
  ["write_file", { path: "a.txt" }],
  ["write_file", { path: "a.txt", content: "x", mode: "clobber" }],
  ["write_file", { path: "a.txt", content: "not base64!", encoding: "binary" }],
  ["write_file", { path: "a.txt", content: "\ud800" }],
  ["list_directory", { recursive: "yes" }],
  ["delete_file", []],
  ["edit_file", { path: "a.txt" }],
  ["edit_file", { path: "a.txt", old_string: "a" }],
  ["edit_file", { path: "a.txt", edits: [] }],
  ["edit_file", { path: "a.txt", old_string: "a", new_string: "b", edits: [{ old_string: "a", new_string: "b" }] }]
]

const raw = (spell: string, parameters: unknown, correlationId: string) =>
  new Spells.SpellInvocation({ correlationId, spell, parameters: parameters as never })

const read = (path: string) => Effect.map(Spells.call("read_file", { path }), ({ content }) => content)

describe.each(kinds)("a spell through branch and leaf over $name:", (kind) => {
  it.effect("read_file returns text as text and other content as base64", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Spells.call("read_file", { path: "a.txt" }), {
        path: "a.txt",
        encoding: "utf-8",
        content: "one\ntwo\nthree\n",
        size_bytes: 14
      })
      assert.deepInclude(yield* Spells.call("read_file", { path: "/docs/deep/c.md" }), { content: "# c\n" })
      assert.deepInclude(yield* Spells.call("read_file", { path: "empty.txt" }), { content: "", size_bytes: 0 })
      assert.deepInclude(yield* Spells.call("read_file", { path: "raw.bin" }), { encoding: "binary", content: "AAEC/w==" })
      assert.deepInclude(yield* Spells.call("read_file", { path: "latin1.txt" }), {
        encoding: "binary",
        content: "Y2Fm6Q=="
      })
    }).pipe(Effect.provide(whole(kind, tree)))
  )

  it.effect("read_file reads a large file in chunks, and edit_file changes the file", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* read("long.txt"), long)
      yield* Spells.call("write_file", { path: "long.txt", content: "the end\n", mode: "append" })
      const { replacements } = yield* Spells.call("edit_file", {
        path: "long.txt",
        old_string: "the end",
        new_string: "The End"
      })
      assert.strictEqual(replacements, 1)
      assert.strictEqual(yield* read("long.txt"), `${long}The End\n`)
      const journal = yield* Journal
      const chunks = (yield* entries(journal)).filter(({ _tag }) => _tag === "FileContentChunk")
      assert.isAbove(chunks.length, 2 * Math.floor(long.length / 65_536))
    }).pipe(Effect.provide(whole(kind, { "long.txt": long }, { chunkSize: 65_535 })))
  )

  it.effect("write_file obeys its mode, decodes binary content and creates missing directories", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Spells.call("write_file", { path: "new/x.txt", content: "ä" }), {
        path: "new/x.txt",
        bytes_written: 2,
        mode: "create"
      })
      assert.strictEqual(yield* read("new/x.txt"), "ä")
      yield* Spells.call("write_file", { path: "new/x.txt", content: "b", mode: "append" })
      assert.strictEqual(yield* read("new/x.txt"), "äb")
      yield* Spells.call("write_file", { path: "new/x.txt", content: "c", mode: "append_existing" })
      assert.strictEqual(yield* read("new/x.txt"), "äbc")
      yield* Spells.call("write_file", { path: "new/x.txt", content: "d", mode: "replace" })
      assert.strictEqual(yield* read("new/x.txt"), "d")
      yield* Spells.call("write_file", { path: "new/x.txt", content: "e", mode: "overwrite" })
      assert.strictEqual(yield* read("new/x.txt"), "e")
      const binary = { path: "new/x.bin", content: "AAEC\n/w==", encoding: "binary" } as const
      assert.strictEqual((yield* Spells.call("write_file", binary)).bytes_written, 4)
      assert.deepInclude(yield* Spells.call("read_file", { path: "new/x.bin" }), { content: "AAEC/w==", size_bytes: 4 })
    }).pipe(Effect.provide(whole(kind, tree)))
  )

  it.effect("list_directory separates directories from files, and returns no entries for a missing directory", () =>
    Effect.gen(function* () {
      const files = ["a.txt", "empty.txt", "latin1.txt", "raw.bin"]
      assert.deepStrictEqual(yield* Spells.call("list_directory", {}), { path: "/", directories: ["docs", "hollow"], files })
      assert.deepStrictEqual(yield* Spells.call("list_directory", { path: "docs", recursive: true }), {
        path: "docs",
        directories: ["deep"],
        files: ["b.md", "deep/c.md"]
      })
      assert.deepStrictEqual(yield* Spells.call("list_directory", { pattern: "*.txt" }), {
        path: "/",
        directories: [],
        files: ["a.txt", "empty.txt", "latin1.txt"]
      })
      const nothing = { directories: [], files: [] }
      assert.deepStrictEqual(yield* Spells.call("list_directory", { path: "hollow" }), { path: "hollow", ...nothing })
      assert.deepStrictEqual(yield* Spells.call("list_directory", { path: "none" }), { path: "none", ...nothing })
    }).pipe(Effect.provide(whole(kind, tree)))
  )

  it.effect("delete_file deletes a file, deletes a tree with recursive, and accepts a missing path with allow_missing", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Spells.call("delete_file", { path: "a.txt" }), { path: "a.txt", deleted: 1 })
      assert.deepStrictEqual(yield* Spells.call("delete_file", { path: "docs", recursive: true }), {
        path: "docs",
        deleted: 2
      })
      assert.deepStrictEqual(yield* Spells.call("delete_file", { path: "docs", allow_missing: true }), {
        path: "docs",
        deleted: 0
      })
      const { directories, files } = yield* Spells.call("list_directory", {})
      assert.deepStrictEqual([directories, files], [["hollow"], ["empty.txt", "latin1.txt", "raw.bin"]])
    }).pipe(Effect.provide(whole(kind, tree)))
  )

  it.effect("edit_file changes the text and reports the changes", () =>
    Effect.gen(function* () {
      const one = yield* Spells.call("edit_file", { path: "a.txt", old_string: "two", new_string: "2" })
      assert.strictEqual(yield* read("a.txt"), "one\n2\nthree\n")
      assert.deepStrictEqual([one.path, one.replacements, one.bytes_written], ["a.txt", 1, 12])
      assert.match(one.diff, /^-two\n\+2$/m)
      const all = yield* Spells.call("edit_file", { path: "a.txt", old_string: "e", new_string: "E", replace_all: true })
      assert.strictEqual(all.replacements, 3)
      assert.strictEqual(yield* read("a.txt"), "onE\n2\nthrEE\n")
      const edits = [
        { old_string: "onE", new_string: "2" },
        { old_string: "2", new_string: "onE" }
      ]
      assert.strictEqual((yield* Spells.call("edit_file", { path: "a.txt", edits })).replacements, 2)
      assert.strictEqual(yield* read("a.txt"), "2\nonE\nthrEE\n")
    }).pipe(Effect.provide(whole(kind, tree)))
  )

  it.effect.each(faults)("%s with %j fails with %s", ([spell, parameters, expected, settings]) =>
    Effect.gen(function* () {
      const answer = yield* Spells.cast(raw(spell, parameters, "id"))
      assert.strictEqual(answer._tag, "SpellFault", JSON.stringify(answer))
      if (answer._tag !== "SpellFault") return
      assert.deepStrictEqual([answer.correlationId, answer.spell, answer.faultKind], ["id", spell, expected], answer.message)
      assert.notStrictEqual(answer.message, "")
      const after = yield* Spells.call("read_file", { path: "a.txt" })
      assert.strictEqual(after.content, "one\ntwo\nthree\n")
    }).pipe(Effect.provide(whole(kind, tree, settings)))
  )

  it.effect("a read or an edit of a file over the limit fails with LimitExceeded", () =>
    Effect.gen(function* () {
      const kindOf = (self: Effect.Effect<unknown, Spells.SpellFault | Spells.CastError, Spells.Spells>) =>
        Effect.map(Effect.flip(self), (fault) => (fault._tag === "SpellFault" ? fault.faultKind : fault._tag))
      assert.strictEqual(yield* read("fits"), "x".repeat(10))
      assert.strictEqual(yield* kindOf(read("large")), "LimitExceeded")
      assert.strictEqual(yield* kindOf(read("chunked")), "LimitExceeded")
      if (kind.extended) return
      const change = { path: "large", old_string: "x", new_string: "y", replace_all: true }
      assert.strictEqual(yield* kindOf(Spells.call("edit_file", change)), "LimitExceeded")
    }).pipe(
      Effect.provide(
        whole(
          kind,
          { fits: "x".repeat(10), large: "x".repeat(11), chunked: "x".repeat(100) },
          { streamingThreshold: 20, chunkSize: 5 },
          { maxBytes: 10 }
        )
      )
    )
  )

  it.effect("a write over the limits of the leaf fails with LimitExceeded, or IoError for basic kinds of entry", () =>
    Effect.gen(function* () {
      const fault = yield* Effect.flip(Spells.call("write_file", { path: "x", content: "12345678901" }))
      assert.strictEqual(fault._tag === "SpellFault" && fault.faultKind, kind.extended ? "LimitExceeded" : "IoError")
    }).pipe(Effect.provide(whole(kind, {}, {}, { limits: { ...standard, maxFileSize: 10 } })))
  )

  it.effect.each(badParameters)(
    "%s with %j fails with InvalidParameters, and sends no request to a leaf",
    ([spell, parameters]) =>
      Effect.gen(function* () {
        const answer = yield* Spells.cast(raw(spell, parameters, "id"))
        assert.deepInclude(answer, { _tag: "SpellFault", spell, faultKind: "InvalidParameters" })
        assert.deepStrictEqual((yield* entries(yield* Journal)).filter(FileSystemEntry.isEfferent), [])
      }).pipe(Effect.provide(whole(kind, tree)))
  )

  it.effect("an unknown spell fails with UnknownSpell and the names of the known spells", () =>
    Effect.gen(function* () {
      for (const spell of ["fireball", "", "toString", "__proto__"]) {
        const answer = yield* Spells.cast(raw(spell, {}, `id of ${spell}`))
        assert.deepInclude(answer, { _tag: "SpellFault", spell, faultKind: "UnknownSpell" })
        if (answer._tag === "SpellFault") assert.include(answer.message, "read_file, write_file, list_directory")
      }
      assert.deepStrictEqual((yield* entries(yield* Journal)).filter(FileSystemEntry.isEfferent), [])
    }).pipe(Effect.provide(whole(kind, tree)))
  )

  it.effect("concurrent spells get separate answers, and are executed once", () =>
    Effect.gen(function* () {
      const numbers = Array.from({ length: 100 }, (_, index) => index)
      const each = (index: number) =>
        Effect.gen(function* () {
          const path = `many/${index}`
          yield* Spells.call("write_file", { path, content: `${index}` })
          yield* Spells.call("write_file", { path: "log", content: ".", mode: "append" })
          yield* Spells.call("edit_file", { path, old_string: `${index}`, new_string: `<${index}>` })
          return yield* read(path)
        })
      const got = yield* Effect.forEach(numbers, each, { concurrency: "unbounded" })
      assert.deepStrictEqual(
        got,
        numbers.map((index) => `<${index}>`)
      )
      assert.strictEqual(yield* read("log"), ".".repeat(100))
      const journal = yield* Journal
      const all = yield* entries(journal)
      const asked = all.filter(FileSystemEntry.isEfferent).map(({ correlationId }) => correlationId)
      const answered = all.filter(FileSystemEntry.isTerminal).map(({ correlationId }) => correlationId)
      assert.strictEqual(new Set(asked).size, asked.length)
      assert.sameMembers(answered, asked)
      const spells = yield* entries(yield* Spells.SpellJournal)
      assert.strictEqual(spells.length, 2 * (4 * 100 + 1))
    }).pipe(Effect.provide(whole(kind, tree)))
  )
})
