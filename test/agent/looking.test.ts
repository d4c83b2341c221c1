import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { type Progress, ToolProgress } from "../../src/agent/definition.ts"
import { ls, stat } from "../../src/agent/tools/ls.ts"
import { readFile } from "../../src/agent/tools/readFile.ts"
import { withProgress } from "../../src/agent/tools/searching.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import { agent } from "../../src/model/Limits.ts"
import { call, hint, imagesOf, linesOf, memory, message, type Result, withSettings, withTree } from "./looking.ts"

const int = (minimum: number, maximum: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))
const utf8 = (text: string) => new TextEncoder().encode(text)
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")
const seven = "a\nb\nc\nd\ne\nf\ng\n"

describe("read_file", () => {
  it.effect.each([
    [
      "returns no lines far past the end",
      { path: "one", offset: 1e9 },
      "there are no lines from offset 1000000000: one has 1 line"
    ],
    ["counts an empty line", { path: "newline" }, "   1 | \nlines 1-1 of 1"],
    ["treats a CR before a CRLF as text", { path: "crs" }, "   1 | \r\nlines 1-1 of 1"],
    ["ends lines at CRLF, and not at a lone CR", { path: "ends" }, "   1 | a\n   2 | b\rc\n   3 | d\r\nlines 1-3 of 3"],
    [
      "ignores white space around the path, a leading slash and nulls",
      { path: " /a.txt ", offset: 6, limit: null },
      "   7 | g\nlines 7-7 of 7"
    ]
  ] as const)("%s", ([, input, expected]) =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* message(readFile, input, {
          "a.txt": seven,
          newline: "\n",
          crs: "\r\r\n",
          one: "x",
          ends: "a\r\nb\rc\r\nd\r"
        }),
        expected
      )
    })
  )

  it.effect.each([[{ path: "a", limit: 2001 }], [{ path: "a", limit: 1e15 }], [{ path: "a" }]])(
    "returns at most 2,000 lines for %j",
    ([input]) =>
      Effect.gen(function* () {
        const { value } = yield* call(readFile, input)
        assert.deepStrictEqual([value.limit, value.next, value.total_lines], [2000, 2000, 2500])
      }).pipe(withTree({ a: "x\n".repeat(2500) }))
  )

  it.effect.each([
    [{ path: "a", limit: 0 }],
    [{ path: "a", limit: -1 }],
    [{ path: "a", offset: -1 }],
    [{ path: "a", offset: 0.5 }],
    [{ path: " " }],
    [{}],
    [{ path: 7 }]
  ])("refuses %j with a message", ([input]) =>
    Effect.gen(function* () {
      const result = yield* call(readFile, input)
      assert.isFalse(result.success)
      assert.isUndefined(result.value)
      assert.isAbove(result.message.length, 20)
    }).pipe(withTree({ a: "x" }))
  )

  it.effect("accepts the mount point as the name of the root", () =>
    Effect.gen(function* () {
      const { value } = yield* call(readFile, { path: "/workspace/d/a.txt" })
      assert.strictEqual(value.path, "d/a.txt")
    }).pipe(withSettings({ mountPoint: "/workspace" }), withTree({ d: { "a.txt": "x" } }))
  )

  it.effect("remembers the version and the whole text of a file that it read", () =>
    Effect.gen(function* () {
      const session = memory()
      const path = FsPath.parse("d/a") as FsPath.FsPath
      const version = sha256(utf8(seven))
      yield* call(readFile, { path: "d/./a", offset: 3, limit: 1 }, session)
      assert.strictEqual(session.seen(path), version)
      assert.strictEqual(session.textOf(version), seven)
      assert.isUndefined(session.seen(FsPath.root))
    }).pipe(withTree({ d: { a: seven } }))
  )

  const piece = Arbitrary.schema(
    Schema.Literals([
      "\n",
      "\n",
      "\r\n",
      "\r",
      "",
      "x",
      "é",
      "😀",
      "\u2028",
      "\uFEFF",
      " | ",
      "; continue with offset=0",
      "\n   1 | x",
      "w".repeat(1999),
      "😀".repeat(1500)
    ])
  )
  const text = Arbitrary.map(Arbitrary.array(piece, { maxLength: 30 }), (parts) => parts.join(""))

  /** Tests whether a line of a page shows a line of the file: completely, or as a prefix with the full length. */
  const standsFor = (shown: string, line: string): boolean => {
    if (shown === line) return true
    const cut = /^([^]*) \[cut: characters 1-(\d+) of (\d+)\]$/.exec(shown)
    return (
      cut !== null &&
      line.startsWith(cut[1]!) &&
      Number(cut[2]) === cut[1]!.length &&
      Number(cut[3]) === line.length &&
      cut[1]! !== ""
    )
  }

  const reading = Effect.fnUntraced(function* (
    text: string,
    limit: number,
    next: (result: { readonly message: string; readonly value: { readonly next?: number } }) => number | undefined
  ) {
    const expected = linesOf(text)
    const read: Array<string> = []
    let offset: number | undefined = 0
    while (offset !== undefined) {
      assert.strictEqual(offset, read.length)
      const { message, value } = yield* call(readFile, { path: "a", offset, limit })
      const rows = message.split("\n").flatMap((row) => {
        const found = /^ *(\d+) \| ([^]*)$/.exec(row)
        return found === null ? [] : [found.slice(1)]
      })
      rows.forEach(([number, shown], index) => {
        assert.strictEqual(Number(number), read.length + index + 1)
        assert.isTrue(standsFor(shown!, expected[read.length + index]!), shown)
      })
      assert.strictEqual(rows.length, value.limit)
      // The value contains the lines of the message.
      assert.deepStrictEqual(
        rows.length === 0 ? [""] : value.content.split(/\r?\n/),
        rows.length === 0 ? [""] : rows.map(([, shown]) => shown!)
      )
      const cut = rows.flatMap(([number, shown], index) => (shown === expected[read.length + index] ? [] : [Number(number)]))
      assert.deepStrictEqual(value.cut_lines ?? [], cut)
      read.push(...rows.map(([, shown]) => shown!))
      const isEnded = read.length < expected.length || text.endsWith("\n")
      assert.strictEqual(value.ends_with_newline, rows.length > 0 && isEnded)
      offset = next({ message, value })
      assert.strictEqual(value.truncated, offset !== undefined)
    }
    assert.strictEqual(read.length, expected.length)
  })

  const fromMessage = ({ message }: { readonly message: string }) => {
    const offset = hint(message.replace(/\n[^\n]*rest of that line:[^\n]*$/, ""), "offset")
    return offset === undefined ? undefined : Number(offset)
  }

  it.effect.prop(
    "shows every line once when the hints in its messages are followed, for any text, limit and budget",
    [text, int(1, 9), Arbitrary.schema(Schema.Literals([1, 30, 100, 300, 5000]))],
    ([text, limit, budget]) => reading(text, limit, fromMessage).pipe(withSettings({ budget }), withTree({ a: text })),
    { arbitrary: { runs: 150 } }
  )

  it.effect.prop(
    "shows every line once when `next` in its values is followed, with a budget in tokens",
    [text, int(1, 9), int(1, 60)],
    ([text, limit, budget]) =>
      reading(text, limit, ({ value }) => value.next).pipe(
        withSettings({ budget, measure: (text) => text.split(/\b/).length }),
        withTree({ a: text })
      ),
    { arbitrary: { runs: 150 } }
  )

  it.effect.prop(
    "keeps every message within the budget, except a message that shows a single character of a line",
    [text, int(60, 4000)],
    ([text, budget]) =>
      Effect.gen(function* () {
        const { message, value } = yield* call(readFile, { path: "a" })
        if (message.length > budget) assert.match(message, /^ {3}1 \| [^]{0,2} \[cut: characters 1-[12] of /u)
        else if (value.truncated) assert.isAtLeast(value.limit, 1)
      }).pipe(withSettings({ budget }), withTree({ a: text })),
    { arbitrary: { runs: 100 } }
  )

  it.effect("returns pages that, joined, equal the text byte for byte", () =>
    Effect.gen(function* () {
      const text = "a\r\n\r\nb\rc\n\nlast"
      let content = ""
      for (let offset: number | undefined = 0; offset !== undefined;) {
        const { value }: Result = yield* call(readFile, { path: "a", offset, limit: 2 })
        const end = text.indexOf("\n", content.length + value.content.length)
        content += value.content + (value.ends_with_newline ? text.slice(content.length + value.content.length, end + 1) : "")
        offset = value.next
      }
      assert.strictEqual(content, text)
    }).pipe(withTree({ a: "a\r\n\r\nb\rc\n\nlast" }))
  )

  it.effect.each([
    ["utf-8", utf8(`é\n${"😀x".repeat(1000)}\r\nb`)],
    ["utf-16le", new Uint8Array(Buffer.from(`\uFEFFé\n${"😀x".repeat(1000)}\r\nb`, "utf16le"))]
  ] as const)("names the range of bytes that continues a shortened line, in %s", ([encoding, bytes]) =>
    Effect.gen(function* () {
      const { message, value } = yield* call(readFile, { path: "a" })
      assert.strictEqual(value.encoding, encoding)
      const [, offset, limit] = /rest of that line: encoding="base64", offset=(\d+), limit=(\d+)/.exec(message)!
      const rest = yield* call(readFile, { path: "a", encoding: "base64", offset: Number(offset), limit: Number(limit) })
      const [, shown] = /\n {3}2 \| ([^]*?) \[cut: characters 1-(?:2000|1999) of 3000\]/.exec(message)!
      assert.strictEqual(
        shown + new TextDecoder(encoding).decode(Buffer.from(rest.value.content, "base64")),
        "😀x".repeat(1000)
      )
    }).pipe(withTree({ a: bytes }))
  )

  it.effect("reads a text above the read limit, page by page", () =>
    Effect.gen(function* () {
      const session = memory()
      const { message, value } = yield* call(readFile, { path: "a", offset: 999, limit: 2 }, session)
      assert.strictEqual(message, "1000 | 999\n1001 | 1000\nlines 1000-1001 of 3000; continue with offset=1001")
      assert.strictEqual(value.version, sha256(utf8(large)))
      assert.strictEqual(session.seen("a" as FsPath.FsPath), value.version)
      const last = yield* call(readFile, { path: "a", offset: 2999 })
      assert.deepStrictEqual([last.value.content, last.value.ends_with_newline, last.value.next], ["2999", true, undefined])
    }).pipe(withSettings({ limits: { ...agent, maxReadBytes: 10_000 } }), withTree({ a: large }))
  )
  const large = Array.from({ length: 3000 }, (_, line) => `${line}\r\n`).join("")

  it.effect("refuses a binary file, and names its type, its size and the way to get its bytes", () =>
    Effect.gen(function* () {
      for (const [path, what] of [
        ["elf", "ELF program or library (application/x-elf), 7 bytes"],
        ["nul", "unknown type, 4 bytes"],
        ["latin", "unknown type, 1 byte"]
      ] as const) {
        const result = yield* call(readFile, { path })
        assert.isFalse(result.success)
        assert.isUndefined(result.value)
        assert.include(result.message, path)
        assert.include(result.message, what)
        assert.include(result.message, 'encoding="base64"')
      }
    }).pipe(withTree({ elf: Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 0, 0, 0), nul: "a\0b\n", latin: Uint8Array.of(0xe9) }))
  )

  it.effect.prop(
    "returns base64 windows that, joined, equal the file",
    [int(0, 100), int(1, 70), int(1, 120)],
    ([size, limit, budget]) =>
      Effect.gen(function* () {
        const bytes = Uint8Array.from({ length: size }, (_, at) => (at * 37) % 256)
        const read: Array<Buffer> = []
        let offset: string | undefined = "0"
        while (offset !== undefined) {
          const { message, value } = yield* call(readFile, { path: "a", encoding: "base64", offset: Number(offset), limit })
          const window = Buffer.from(value.content, "base64")
          assert.strictEqual(window.length, value.limit)
          assert.isTrue(size === 0 || window.length > 0)
          assert.strictEqual(value.size_bytes, size)
          assert.strictEqual(value.version, sha256(bytes))
          if (size > 0) assert.strictEqual(message.split("\n")[0], value.content)
          read.push(window)
          offset = hint(message, "offset")
          assert.strictEqual(offset, value.next?.toString())
        }
        assert.deepStrictEqual(new Uint8Array(Buffer.concat(read)), bytes)
      }).pipe(withSettings({ budget }), withTree({ a: Uint8Array.from({ length: size }, (_, at) => (at * 37) % 256) })),
    { arbitrary: { runs: 40 } }
  )

  const png = Uint8Array.from(
    Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64")
  )

  it.effect("returns an image as image content", () =>
    Effect.gen(function* () {
      const session = memory()
      const result = yield* call(readFile, { path: "p" }, session)
      assert.strictEqual(result.message, `p: PNG image, ${png.length} bytes`)
      assert.deepStrictEqual(imagesOf(readFile, result), [
        { mediaType: "image/png", base64: Buffer.from(png).toString("base64") }
      ])
      assert.strictEqual(session.seen("p" as FsPath.FsPath), sha256(png))
    }).pipe(withTree({ p: png }))
  )

  it.effect("refuses an image over 5 MiB, and returns a range of an image only as bytes", () =>
    Effect.gen(function* () {
      const large = yield* call(readFile, { path: "large" })
      assert.isFalse(large.success)
      assert.include(large.message, "PNG image (image/png), 6.0 MiB")
      const part = yield* call(readFile, { path: "p", encoding: "base64", limit: 30 })
      assert.deepStrictEqual(imagesOf(readFile, part), [])
      const text = yield* call(readFile, { path: "text" })
      assert.deepStrictEqual(imagesOf(readFile, text), [])
    }).pipe(withTree({ large: Buffer.concat([png.subarray(0, 8), new Uint8Array(6 * 1024 * 1024)]), p: png, text: "x" }))
  )

  it.effect.each([["missing"], ["d"], ["a/b"], ["../up"]])("returns a failure without a value for %s", ([path]) =>
    Effect.gen(function* () {
      const result = yield* call(readFile, { path })
      assert.isFalse(result.success)
      assert.isUndefined(result.value)
    }).pipe(withTree({ a: "x", d: {} }))
  )
})

describe("ls", () => {
  it.effect.each([
    [{ path: "a" }, "x (0 bytes)\n0 directories, 1 file"],
    [{ path: "e/" }, "e is empty"],
    [{ path: "  " }, "a/\ne/\n2 directories, 0 files"]
  ] as const)("lists the expected entries for %j", ([input, expected]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* message(ls, input, { a: { x: "" }, e: {} }), expected)
    })
  )

  it.effect.each([["b.txt"], ["missing"], [".."]])("fails for a file, a missing path and a path above the root: %s", ([path]) =>
    Effect.gen(function* () {
      const result = yield* call(ls, { path })
      assert.isFalse(result.success)
    }).pipe(withTree({ "b.txt": "" }))
  )

  const names = Arbitrary.array(
    Arbitrary.schema(Schema.Literals(["a", "b", "B", 'a"b', "é", "😀", "a b", "\uFFEE", "z".repeat(30)])),
    { maxLength: 9 }
  )
  it.effect.prop("lists every entry once and in order when its hints are followed", [names, int(1, 80)], ([names, budget]) => {
    const tree = Object.fromEntries(names.map((name) => [name, name]))
    return Effect.gen(function* () {
      const found: Array<string> = []
      let after: string | undefined = ""
      while (after !== undefined) {
        const { message, value } = yield* call(ls, { after })
        const shown = message.split("\n").slice(0, -1)
        assert.deepStrictEqual(
          shown.map((line) => line.replace(/ \(\d+ bytes?\)$/, "")),
          value.entries.map(({ name }: { name: string }) => name)
        )
        found.push(...value.entries.map(({ name }: { name: string }) => name))
        after = hint(message, "after")
        assert.strictEqual(after, value.next)
      }
      const points = (name: string) =>
        [...name].map((character) => character.codePointAt(0)!.toString(16).padStart(6, "0")).join()
      assert.deepStrictEqual(
        found,
        [...new Set(names)].sort((a, b) => (points(a) < points(b) ? -1 : 1))
      )
    }).pipe(withSettings({ budget }), withTree(tree))
  })
})

describe("stat", () => {
  it.effect("returns kind, size, times, mode and version", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2024, 4, 6, 7, 8, 9, 10))
      yield* Effect.gen(function* () {
        const result = yield* call(stat, { path: "a" })
        assert.deepStrictEqual(result.value, {
          path: "a",
          kind: "file",
          size_bytes: 2000,
          modified_at: "2024-05-06T07:08:09.010Z",
          created_at: "2024-05-06T07:08:09.010Z",
          mode: "0644",
          is_symlink: false,
          version: sha256(utf8("x".repeat(2000)))
        })
        assert.include(result.message, "a: file\nsize 2.0 KiB (2000 bytes)\nmodified 2024-05-06T07:08:09.010Z")
        const link = yield* call(stat, { path: "l" })
        assert.isTrue(link.value.is_symlink)
        assert.match(link.message, /^l: file, reached through a link\n/)
        const root = yield* call(stat, {})
        assert.deepStrictEqual(
          [root.value.path, root.value.kind, root.value.size_bytes, root.value.version],
          [".", "directory", undefined, undefined]
        )
      }).pipe(withTree({ a: "x".repeat(2000), l: { link: "a" } }))
    })
  )

  it.effect("does not count as reading the file, and fails for a missing file", () =>
    Effect.gen(function* () {
      const session = memory()
      yield* call(stat, { path: "a" }, session)
      assert.isUndefined(session.seen("a" as FsPath.FsPath))
      assert.isFalse((yield* call(stat, { path: "b" }, session)).success)
    }).pipe(withTree({ a: "x" }))
  )
})

describe("progress", () => {
  it.effect("is reported once a second while a search runs, and stops with the search", () =>
    Effect.gen(function* () {
      const told: Array<Progress> = []
      const done = yield* Deferred.make<string>()
      const search = withProgress(Deferred.await(done)).pipe(
        Effect.provideService(ToolProgress, (progress) => Effect.sync(() => void told.push(progress)))
      )
      const fiber = yield* Effect.forkChild(search)
      yield* TestClock.adjust("3500 millis")
      assert.deepStrictEqual(
        told.map(({ done }) => done),
        [1, 2, 3]
      )
      assert.strictEqual(told[0]!.message, "searching for 1 second")
      yield* Deferred.succeed(done, "found")
      assert.strictEqual(yield* Fiber.join(fiber), "found")
      yield* withProgress(Effect.void).pipe(
        Effect.provideService(ToolProgress, (progress) => Effect.sync(() => void told.push(progress)))
      )
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(told.length, 3)
    })
  )
})
