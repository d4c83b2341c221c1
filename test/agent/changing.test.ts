import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { AnyDefinition } from "../../src/agent/definition.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import * as ToolSettings from "../../src/agent/ToolSettings.ts"
import { applyPatch } from "../../src/agent/tools/applyPatch.ts"
import { copy, mkdir, move } from "../../src/agent/tools/transfer.ts"
import { editFile } from "../../src/agent/tools/editFile.ts"
import { rm } from "../../src/agent/tools/rm.ts"
import { writeFile } from "../../src/agent/tools/writeFile.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import { capture, directory, type Files, link, picture } from "../../src/testing/Files.ts"
import { bytesOf, grounds, host, memory, versionOf } from "./changing.ts"

interface Result {
  readonly success: boolean
  readonly message: string
  readonly value?: unknown
}

const call = (tool: AnyDefinition, input: unknown, fs: Algebra, seen = Memory.make()): Effect.Effect<Result> =>
  invokeUnknown(tool, input, { memory: seen }).pipe(Effect.provideService(Filesystem, fs)) as Effect.Effect<Result>

const text = "one\ntwo\nthree\ntwo\n"

const files: Files = {
  "a.txt": text,
  "d/b.txt": "b\n",
  "d/e/c.txt": "c\n",
  empty: directory,
  bin: new Uint8Array([0xff, 0x00, 0xfe]),
  link: link("a.txt"),
  out: link("../outside")
}
const without = (...gone: ReadonlyArray<string>): Files =>
  Object.fromEntries(Object.entries(files).filter(([path]) => !gone.some((one) => path === one || path.startsWith(`${one}/`))))

type Row = readonly [tool: AnyDefinition, input: unknown, message: string | RegExp, value: unknown, becomes: Files]

const v = versionOf
const edited = (path: string, replacements: number, version: string, diff: string) => ({
  path,
  replacements,
  diff,
  version,
  files: [{ path, replacements, version }]
})

const good: ReadonlyArray<Row> = [
  [
    writeFile,
    { path: " /n/new.txt ", content: "é\ny" },
    `created n/new.txt: 4 bytes, 2 lines, version ${v("é\ny")}`,
    { path: "n/new.txt", bytes_written: 4, mode: "create", version: v("é\ny") },
    { ...files, "n/new.txt": "é\ny" }
  ],
  [
    writeFile,
    { path: "a.txt", content: "", mode: "overwrite", if_match: v(text) },
    `wrote a.txt: 0 bytes, 0 lines, version ${v("")}`,
    { path: "a.txt", bytes_written: 0, mode: "overwrite", version: v("") },
    { ...files, "a.txt": "" }
  ],
  [
    writeFile,
    { path: "a.txt", content: "x", mode: "append", if_match: null },
    `appended to a.txt: 1 byte, 1 line, version ${v(`${text}x`)}`,
    { path: "a.txt", bytes_written: 1, mode: "append", version: v(`${text}x`) },
    { ...files, "a.txt": `${text}x` }
  ],
  [
    editFile,
    { path: "a.txt", old_string: "three\n", new_string: "3\n" },
    `edited a.txt: 1 replacement, version ${v("one\ntwo\n3\ntwo\n")}\n--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n one\n two\n-three\n+3\n two`,
    edited("a.txt", 1, v("one\ntwo\n3\ntwo\n"), "--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n one\n two\n-three\n+3\n two\n"),
    { ...files, "a.txt": "one\ntwo\n3\ntwo\n" }
  ],
  [
    editFile,
    { path: "a.txt", old_string: "two", new_string: "2", replace_all: true },
    /^edited a\.txt: 2 replacements, version /,
    edited(
      "a.txt",
      2,
      v("one\n2\nthree\n2\n"),
      "--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n one\n-two\n+2\n three\n-two\n+2\n"
    ),
    { ...files, "a.txt": "one\n2\nthree\n2\n" }
  ],
  [
    editFile,
    {
      path: "a.txt",
      edits: [
        { old_string: "one", new_string: "1" },
        { path: "/d/b.txt", old_string: "b", new_string: "B", if_match: v("b\n") },
        { old_string: "three", new_string: "" }
      ]
    },
    /^edited 2 files: 3 replacements\n {2}a\.txt: 2 replacements, version .*\n {2}d\/b\.txt: 1 replacement, version /,
    {
      path: "a.txt",
      replacements: 3,
      version: v("1\ntwo\n\ntwo\n"),
      diff: "--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n-one\n+1\n two\n-three\n+\n two\n--- a/d/b.txt\n+++ b/d/b.txt\n@@ -1 +1 @@\n-b\n+B\n",
      files: [
        { path: "a.txt", replacements: 2, version: v("1\ntwo\n\ntwo\n") },
        { path: "d/b.txt", replacements: 1, version: v("B\n") }
      ]
    },
    { ...files, "a.txt": "1\ntwo\n\ntwo\n", "d/b.txt": "B\n" }
  ],
  [
    editFile,
    { path: "a.txt", replace_all: true, if_match: v(text), edits: [{ old_string: "two", new_string: "2" }] },
    /^edited a\.txt: 2 replacements, version /,
    edited(
      "a.txt",
      2,
      v("one\n2\nthree\n2\n"),
      "--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n one\n-two\n+2\n three\n-two\n+2\n"
    ),
    { ...files, "a.txt": "one\n2\nthree\n2\n" }
  ],
  [rm, { path: "a.txt" }, "removed a.txt", { deleted: 1, directories: 0 }, without("a.txt")],
  [rm, { path: "link" }, "removed link", { deleted: 1, directories: 0 }, without("link")],
  [rm, { path: "d" }, "removed d with everything in it: 2 directories, 2 files", { deleted: 2, directories: 2 }, without("d")],
  [
    rm,
    { path: "no", allow_missing: true },
    "nothing was removed, because no does not exist",
    { deleted: 0, directories: 0 },
    files
  ],
  [
    move,
    { from: "d", to: "x/y" },
    "moved d to x/y: 2 directories, 2 files, 4 bytes",
    { files: 2, directories: 2, bytes: 4 },
    { ...without("d"), "x/y/b.txt": "b\n", "x/y/e/c.txt": "c\n" }
  ],
  [
    move,
    { from: "a.txt", to: "d/b.txt", overwrite: true },
    "moved a.txt to d/b.txt: 1 file, 18 bytes",
    { files: 1, directories: 0, bytes: 18 },
    { ...without("a.txt"), "d/b.txt": text }
  ],
  [
    copy,
    { from: "d", to: "x" },
    "copied d to x: 2 directories, 2 files, 4 bytes",
    { files: 2, directories: 2, bytes: 4 },
    { ...files, "x/b.txt": "b\n", "x/e/c.txt": "c\n" }
  ],
  [mkdir, { path: "n/m" }, "made the directory n/m", { path: "n/m", created: true }, { ...files, "n/m": directory }],
  [mkdir, { path: "d" }, "the directory d exists already", { path: "d", created: false }, files]
]

const edits = (...all: ReadonlyArray<object>) => ({ edits: all })
const one = { path: "d/b.txt", old_string: "b", new_string: "B" }

/** Calls that fail, with the parts that each message must contain. */
const bad: ReadonlyArray<readonly [tool: AnyDefinition, input: unknown, ...says: ReadonlyArray<string | RegExp>]> = [
  [writeFile, {}, "path", "content"],
  [writeFile, { path: "n" }, "content"],
  [writeFile, { path: 1, content: "" }, "path"],
  [writeFile, { path: "n", content: ["x"] }, "content"],
  [writeFile, { path: "n", content: "x", mode: "truncate" }, "mode", "overwrite"],
  [writeFile, { path: "n", content: "x", colour: "red" }, "colour"],
  [writeFile, { path: " ", content: "x" }, "path", "blank"],
  [writeFile, { path: ".", content: "x" }, /root/],
  [writeFile, { path: "../n", content: "x" }, "../n"],
  [writeFile, { path: "/..", content: "x" }, ".."],
  [writeFile, { path: "out", content: "x", mode: "overwrite" }, "out"],
  [writeFile, { path: "a\u0000b", content: "x" }, /control/],
  [writeFile, { path: "a.txt", content: "x" }, "a.txt", "edit_file", '"overwrite"'],
  [writeFile, { path: "link", content: "x" }, "link", "edit_file"],
  [writeFile, { path: "d", content: "x" }, '"d"'],
  [writeFile, { path: "d", content: "x", mode: "overwrite" }, '"d"'],
  [writeFile, { path: "a.txt/x", content: "x" }, "a.txt/x"],
  [writeFile, { path: "no", content: "x", mode: "replace" }, '"no"'],
  [writeFile, { path: "no", content: "x", mode: "append_existing" }, '"no"'],
  [writeFile, { path: "a.txt", content: "x", mode: "overwrite", if_match: v("old") }, "a.txt", v(text).slice(0, 12)],
  [writeFile, { path: "no", content: "x", mode: "overwrite", if_match: v("old") }, '"no"'],
  [writeFile, { path: "n", content: "x", if_match: v("old") }, "if_match", '"overwrite"'],
  [writeFile, { path: "n", content: "x".repeat(48_001) }, "48,000"],
  [writeFile, { path: "n", content: "\ud800" }, "surrogate"],
  [editFile, {}, "old_string", "edits"],
  [editFile, { path: "a.txt" }, "old_string", "edits"],
  [editFile, { path: "a.txt", edits: [] }, "old_string", "edits"],
  [editFile, { path: "a.txt", old_string: "one" }, "new_string"],
  [editFile, { path: "a.txt", new_string: "one" }, "old_string", "write_file"],
  [editFile, { path: "a.txt", old_string: 1, new_string: "x" }, "old_string"],
  [editFile, { path: "a.txt", edits: "x" }, "edits"],
  [editFile, { path: "a.txt", edits: [{ old_string: "one" }] }, "new_string"],
  [editFile, { old_string: "one", new_string: "1" }, "path", "blank"],
  [editFile, { path: " ", old_string: "one", new_string: "1" }, "path", "blank"],
  [editFile, edits(one, { old_string: "one", new_string: "1" }), "edits[1].path", "blank"],
  [editFile, { path: "a.txt", old_string: "one", new_string: "1", ...edits(one) }, "edits"],
  [editFile, { if_match: v("b\n"), ...edits(one, { ...one, path: "a.txt" }) }, "if_match"],
  [editFile, { if_match: v("old"), ...edits(one) }, "d/b.txt", v("b\n").slice(0, 12)],
  [editFile, edits({ ...one, if_match: v("1") }, { ...one, if_match: v("2") }), "edits[1].if_match"],
  [editFile, { path: "a.txt", old_string: "", new_string: "x" }, "old_string", "write_file"],
  [editFile, { path: "a.txt", old_string: "one", new_string: "one" }, "new_string", "same"],
  [editFile, { path: "a.txt", old_string: "four", new_string: "4" }, "old_string", "a.txt"],
  [editFile, { path: "a.txt", old_string: "Three", new_string: "4" }, "old_string", "line 3", "case"],
  [editFile, { path: "a.txt", old_string: "two", new_string: "2" }, "old_string", /lines? 2 and 4/],
  [editFile, { path: "no", old_string: "a", new_string: "b" }, '"no"'],
  [editFile, { path: "d", old_string: "a", new_string: "b" }, '"d"'],
  [editFile, { path: "bin", old_string: "a", new_string: "b" }, "bin"],
  [editFile, { path: "out", old_string: "a", new_string: "b" }, "out"],
  [editFile, { path: "../x", old_string: "a", new_string: "b" }, "../x"],
  [editFile, { path: "a.txt", old_string: "one", new_string: "\udc00" }, "new_string", "surrogate"],
  [editFile, { path: "a.txt", old_string: "one", new_string: "x".repeat(48_001) }, "48,000"],
  [editFile, { path: "a.txt", old_string: "one", new_string: "1", if_match: v("old") }, "a.txt", v(text).slice(0, 12)],
  [editFile, edits(one, { ...one, path: "a.txt", old_string: "four" }), "edits[1].old_string", "a.txt"],
  [editFile, edits(one, { ...one, path: "a.txt", old_string: "two" }), "edits[1].old_string", /lines? 2 and 4/],
  [editFile, edits(one, { ...one, path: "a.txt", old_string: "" }), "edits[1].old_string"],
  [editFile, edits(one, { ...one, path: "a.txt", old_string: "one", new_string: "one" }), "edits[1].new_string"],
  [editFile, edits(one, { ...one, path: "no" }), '"no"'],
  [editFile, edits(one, { ...one, path: "d" }), '"d"'],
  [editFile, edits(one, { ...one, path: "bin" }), "bin"],
  [
    editFile,
    edits(one, { path: "a.txt", old_string: "one", new_string: "1", if_match: v("old") }),
    "a.txt",
    v(text).slice(0, 12)
  ],
  [
    editFile,
    edits(
      one,
      { path: "a.txt", old_string: "one\ntwo", new_string: "1" },
      { path: "a.txt", old_string: "two\nthree", new_string: "2" }
    ),
    "edits[1] and edits[2] overlap on line 2"
  ],
  [
    editFile,
    edits(one, { path: "a.txt", old_string: "one", new_string: "ONE" }, { path: "a.txt", old_string: "ONE", new_string: "1" }),
    "edits[2].old_string",
    "edits[1] would insert it"
  ],
  [
    editFile,
    edits({ path: "a.txt", old_string: "one", new_string: "1" }, { path: "link", old_string: "one", new_string: "2" }),
    "edits",
    "link"
  ],
  [rm, {}, "path"],
  [rm, { path: "" }, "path", "blank"],
  [rm, { path: "/" }, /root/],
  [rm, { path: ".", allow_missing: true }, /root/],
  [rm, { path: "no" }, '"no"'],
  [rm, { path: "../no", allow_missing: true }, "../no"],
  [rm, { path: "d", allow_missing: "yes" }, "allow_missing"],
  [move, { from: "a.txt" }, '"to"'],
  [move, { from: " ", to: "x" }, "from", "blank"],
  [move, { from: "a.txt", to: " " }, /\bto\b/, "blank"],
  [move, { from: "/", to: "x" }, /root/],
  [move, { from: "a.txt", to: "/" }, /root/],
  [move, { from: "no", to: "x" }, '"no"'],
  [move, { from: "a.txt", to: "d/b.txt" }, "d/b.txt"],
  [move, { from: "a.txt", to: "d", overwrite: true }, '"d"'],
  [move, { from: "d", to: "d/e/f" }, "d/e/f"],
  [move, { from: "a.txt", to: "../x" }, "../x"],
  [copy, { from: "no", to: "x" }, '"no"'],
  [copy, { from: "a.txt", to: "d/b.txt" }, "d/b.txt"],
  [copy, { from: "d", to: "d/e/f" }, "d/e/f"],
  [copy, { from: "a.txt", to: "x", overwrite: 1 }, "overwrite"],
  [mkdir, { path: " " }, "path", "blank"],
  [mkdir, { path: "a.txt" }, '"a.txt"'],
  [mkdir, { path: "a.txt/x" }, "a.txt/x"],
  [mkdir, { path: "../x" }, "../x"]
]

for (const [name, ground] of Object.entries(grounds)) {
  describe(`tools that change files in ${name}`, () => {
    it.live("make their changes and report them", () =>
      Effect.forEach(
        good,
        ([tool, input, message, value, becomes]) =>
          Effect.scoped(
            Effect.gen(function* () {
              const fs = yield* ground(files)
              const result = yield* call(tool, input, fs)
              const what = `${tool.name} ${JSON.stringify(input)}`
              if (typeof message === "string") assert.strictEqual(result.message, message, what)
              else assert.match(result.message, message, what)
              assert.deepStrictEqual([result.success, result.value], [true, value], what)
              assert.deepStrictEqual(yield* capture(fs.port), picture(becomes), what)
            })
          ),
        { discard: true }
      )
    )

    it.live("change nothing if they fail, and return the reason and advice", () =>
      Effect.gen(function* () {
        const fs = yield* ground(files)
        const complaints: Array<string> = []
        for (const [tool, input, ...says] of bad) {
          const { message, success, ...rest } = yield* call(tool, input, fs)
          const what = `${tool.name} ${JSON.stringify(input).slice(0, 200)}`
          assert.deepStrictEqual([success, rest], [false, {}], what)
          const missing = says.filter((part) => (typeof part === "string" ? !message.includes(part) : !part.test(message)))
          if (missing.length > 0 || !/[.;!?] .*[.?]$/s.test(message))
            complaints.push(`${what} says ${message}, not ${missing.join()}`)
          assert.deepStrictEqual(yield* capture(fs.port), picture(files), what)
        }
        assert.deepStrictEqual(complaints, [])
      })
    )
  })
}

const encodings: ReadonlyArray<readonly [name: string, encode: (text: string) => Uint8Array]> = [
  ["UTF-8", bytesOf],
  ["UTF-8 with a byte order mark", (text) => bytesOf(`\ufeff${text}`)],
  ["UTF-16, little endian", (text) => new Uint8Array(Buffer.from(`\ufeff${text}`, "utf16le"))],
  ["UTF-16, big endian", (text) => new Uint8Array(Buffer.from(`\ufeff${text}`, "utf16le").swap16())]
]

const bytesAt = (fs: Algebra, path: string) => Effect.map(fs.readBytes(path), ({ content }) => [...content])

describe("edit_file", () => {
  for (const [name, encode] of encodings) {
    it.live(`keeps ${name} and the line endings outside of a match, for one file and for several`, () =>
      Effect.gen(function* () {
        const before = "one\r\ntwo é😀\rthree\nfour\r\nlast"
        const after = "one\r\nZWEI\r\nZWEI two é😀\rthree\nfour\r\nlast".replace("ZWEI two", "two")
        const fs = yield* memory({ x: encode(before), y: encode(before) })
        const edit = { path: "x", old_string: "one\ntwo", new_string: "one\nZWEI\ntwo" }
        assert.isTrue((yield* call(editFile, edit, fs)).success)
        assert.deepStrictEqual(yield* bytesAt(fs, "x"), [...encode(after)])
        const back = { path: "x", old_string: "ZWEI\n", new_string: "" }
        assert.isTrue((yield* call(editFile, { edits: [back, { ...edit, path: "y" }] }, fs)).success)
        assert.deepStrictEqual(yield* bytesAt(fs, "x"), [...encode(before)])
        assert.deepStrictEqual(yield* bytesAt(fs, "y"), [...encode(after)])
      })
    )
  }

  it.live("makes 5,000 edits in one call, and refuses more before it changes anything", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ x: Array.from({ length: 5001 }, (_, i) => `<${i}>`).join("\n") })
      const edits = (count: number) =>
        Array.from({ length: count }, (_, i) => ({ path: "x", old_string: `<${i}>`, new_string: `(${i})` }))
      const before = yield* capture(fs.port)
      const { message, success } = yield* call(editFile, { edits: edits(5001) }, fs)
      assert.isFalse(success)
      assert.include(message, "edit_file was given 5,001 edits, but one call may have at most 5,000.")
      assert.deepStrictEqual(yield* capture(fs.port), before)
      assert.isTrue((yield* call(editFile, { edits: edits(5000) }, fs)).success)
    })
  )

  it.live("replaces matches from the left, without overlap", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ x: "aaa", y: "aaa" })
      const all = { old_string: "aa", new_string: "b", replace_all: true }
      for (const input of [{ path: "x", ...all }, { edits: [{ path: "y", ...all }] }]) {
        const { value } = yield* call(editFile, input, fs)
        assert.deepInclude(value, { replacements: 1 })
      }
      assert.deepStrictEqual(yield* capture(fs.port), picture({ x: "ba", y: "ba" }))
    })
  )

  it.live("edits text beyond line 2,000, in files above the write limit", () =>
    Effect.gen(function* () {
      const lines = Array.from({ length: 20_000 }, (_, i) => `line ${i}`)
      const fs = yield* memory({ x: lines.join("\n"), y: lines.join("\n") })
      const edit = { old_string: "line 15000\n", new_string: "here\n" }
      const becomes = lines.map((line) => (line === "line 15000" ? "here" : line)).join("\n")
      assert.isTrue((yield* call(editFile, { edits: ["x", "y"].map((path) => ({ path, ...edit })) }, fs)).success)
      assert.deepStrictEqual(yield* capture(fs.port), picture({ x: becomes, y: becomes }))
    })
  )

  it.live("shortens the diff in the message to the budget, and returns the whole diff in the value", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ x: "a\n".repeat(5000) })
      const run = call(editFile, { path: "x", old_string: "a", new_string: "b", replace_all: true }, fs)
      const settings = { ...ToolSettings.defaults, budget: 1000 }
      const { message, value } = yield* Effect.provideService(run, ToolSettings.ToolSettings, settings)
      assert.isAtMost(message.length, 1000)
      assert.match(message, /^edited x: 5000 replacements, .*\n--- a\/x\n[^]*\n\[cut: \d+ of \d+ lines\]$/)
      assert.strictEqual((value as { readonly diff: string }).diff.split("\n").filter((line) => line === "+b").length, 5000)
    })
  )

  it.live("limits the length of the diff in the message and in the value", () =>
    Effect.gen(function* () {
      const long = '{"a":1,"b":2},'.repeat(40_000)
      const fs = yield* memory({ long, many: "a\n".repeat(30_000), short: "x\n" })
      const edit = { old_string: "a", new_string: "c", replace_all: true }
      const edits = ["long", "many", "short"].map((path) => ({ path, ...edit, ...(path === "short" && { old_string: "x" }) }))
      for (const input of [{ path: "long", ...edit }, { path: "many", ...edit }, { edits }]) {
        const { message, value } = yield* call(editFile, input, fs)
        const { diff } = value as { readonly diff: string }
        for (const text of [message, diff]) {
          assert.isAtMost(text.length, 48_000 + 100)
          for (const line of text.split("\n")) assert.isAtMost(line.length, 2100)
        }
        assert.isAtMost(message.length, 48_000)
        for (const path of "edits" in input ? ["long", "many"] : [input.path]) assert.include(diff, `--- a/${path}\n`)
        if (!("edits" in input) && input.path === "long") {
          assert.match(diff, /^-\{"a":1.* \[cut: characters 1-2000 of 560001\]$/m)
          assert.match(diff, /^\+\{"c":1.* \[cut: characters 1-2000 of 560001\]$/m)
        } else assert.match(diff, /\n\[cut: \d+ of \d{5} lines\]\n$/)
        yield* fs.write("long", long)
        yield* fs.write("many", "a\n".repeat(30_000))
      }
    })
  )

  it.live("records the version that it writes, while move and rm make the session forget a file", () =>
    Effect.gen(function* () {
      const fs = yield* host({ a: "1\n", b: "1\n" })
      const seen = Memory.make()
      yield* call(editFile, { path: "a", old_string: "1", new_string: "2" }, fs, seen)
      assert.deepStrictEqual([seen.seen("a" as never), seen.textOf(v("2\n"))], [v("2\n"), "2\n"])
      const both = ["a", "b"].map((path, i) => ({ path, old_string: i === 0 ? "2" : "1", new_string: "3" }))
      yield* call(editFile, { edits: both }, fs, seen)
      assert.deepStrictEqual([seen.seen("b" as never), seen.textOf(v("3\n"))], [v("3\n"), "3\n"])
      yield* call(move, { from: "a", to: "c" }, fs, seen)
      assert.deepStrictEqual([seen.seen("a" as never), seen.seen("c" as never)], [undefined, v("3\n")])
      yield* call(rm, { path: "c" }, fs, seen)
      assert.strictEqual(seen.seen("c" as never), undefined)
      yield* call(writeFile, { path: "c", content: "new" }, fs, seen)
      assert.deepStrictEqual([seen.seen("c" as never), seen.textOf(v("new"))], [v("new"), "new"])
    })
  )

  it.live("loses no edit if many calls edit the same files at the same time without versions", () =>
    Effect.gen(function* () {
      const names = Array.from({ length: 4 }, (_, i) => `<${i}>`)
      const fs = yield* host({ a: names.join("\n"), b: names.join("\n") })
      const results = yield* Effect.forEach(
        names,
        (name, i) =>
          call(editFile, { edits: ["a", "b"].map((path) => ({ path, old_string: name, new_string: String(i) })) }, fs),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        results.map(({ message, success }) => (success ? "" : message)),
        ["", "", "", ""]
      )
      assert.deepStrictEqual(yield* capture(fs.port), picture({ a: "0\n1\n2\n3", b: "0\n1\n2\n3" }))
    })
  )
})

describe("apply_patch", () => {
  it.live("refuses a patch of more than 250,000 characters with the limit, and changes nothing", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ a: "a\n" })
      const patch = (length: number): string => {
        const [head, end] = ["*** Begin Patch\n*** Update File: a\n@@\n-a\n+b\n", "*** End Patch"]
        return head + "\n".repeat(length - head.length - end.length) + end
      }
      const refused = yield* call(applyPatch, { patch: patch(250_001) }, fs)
      assert.isFalse(refused.success)
      assert.match(refused.message, /^The patch has 250,001 characters, but a patch may have at most 250,000\./)
      assert.strictEqual(yield* fs.readString("a"), "a\n")
      assert.isTrue((yield* call(applyPatch, { patch: patch(250_000) }, fs)).success)
      assert.strictEqual(yield* fs.readString("a"), "b\n")
    })
  )
})
