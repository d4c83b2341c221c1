import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { closeSync, openSync, readSync } from "node:fs"
import { gzipSync, zstdCompressSync } from "node:zlib"
import {
  countFitting,
  diffText,
  excerpt,
  excerptDiff,
  joinFitting,
  maxLineLength,
  numberLine,
  numberLines,
  withDiff
} from "../../src/agent/text/fit.ts"
import { countsOf, formatCounts, formatEntry } from "../../src/agent/tools/searching.ts"
import { matchLines } from "../../src/agent/tools/grep.ts"
import { isViewable, mediaTypeOf } from "../../src/agent/text/mediaType.ts"
import { describeSkipped } from "../../src/agent/tools/searching.ts"
import { formatCount as plural, formatSize as size, listed } from "../../src/model/words.ts"
import type { GrepMatch, Kind } from "../../src/model/Entry.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { runAtOnce } from "../../src/runtime/steps.ts"

const int = (minimum: number, maximum: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

describe("the wording of messages", () => {
  it("uses the singular for one and the plural for every other count", () => {
    assert.deepStrictEqual(
      [0, 1, 2, 1000].map((count) => plural(count, "match", "matches")),
      ["0 matches", "1 match", "2 matches", "1000 matches"]
    )
    assert.strictEqual(plural(3, "file"), "3 files")
  })

  it.each([
    [0, "0 bytes"],
    [1, "1 byte"],
    [1023, "1023 bytes"],
    [1024, "1.0 KiB"],
    [1536, "1.5 KiB"],
    // One byte less than a MiB rounds to 1.0 MiB, not to 1024.0 KiB.
    [1024 ** 2 - 1, "1.0 MiB"],
    [1024 ** 2, "1.0 MiB"],
    [5 * 1024 ** 3, "5.0 GiB"],
    [Number.MAX_SAFE_INTEGER, "8.0 PiB"]
  ])("writes %d bytes as %s", (bytes, text) => assert.strictEqual(size(bytes), text))

  it('joins a list with commas and a final "and"', () => {
    assert.deepStrictEqual(
      [[], ["a"], ["a", "b"], ["a", "b", "c"]].map((items) => listed(items)),
      ["", "a", "a and b", "a, b and c"]
    )
  })

  it("counts skipped files by reason, and names the first three unreadable paths", () => {
    const none = { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0, unreadablePaths: [] }
    assert.strictEqual(describeSkipped(none), "")
    assert.strictEqual(describeSkipped({ ...none, binary: 2, ignored: 1 }), "skipped: 1 ignored, 2 binary")
    const unreadablePaths = ["a", "b", "c", "d"] as unknown as ReadonlyArray<FsPath>
    assert.strictEqual(
      describeSkipped({ ...none, tooLarge: 1, unreadable: 120, unreadablePaths }),
      "skipped: 1 too large, 120 unreadable (a, b, c and 117 more)"
    )
  })
})

describe("lines", () => {
  it("have right-aligned numbers of at least four columns, then a bar and the text", () => {
    assert.deepStrictEqual(numberLines(["a", "", "c"], 8), ["   9 | a", "  10 | ", "  11 | c"])
    assert.strictEqual(numberLine(12345, "x"), "12345 | x")
  })

  it("are shown completely up to 2,000 characters, and longer lines are cut and their length is stated", () => {
    assert.deepStrictEqual(excerpt("x".repeat(2000)), { shown: "x".repeat(2000), start: 0, end: 2000, isCut: false })
    assert.strictEqual(excerpt("x".repeat(2001)).shown, `${"x".repeat(2000)} [cut: characters 1-2000 of 2001]`)
    assert.strictEqual(maxLineLength, 2000)
  })

  const text = Arbitrary.map(Arbitrary.array(Arbitrary.schema(Schema.Literals(["a", "é", "😀"])), { maxLength: 30 }), (parts) =>
    parts.join("")
  )
  it.prop("are cut to a non-empty excerpt that splits no character", [text, int(1, 12), int(0, 40)], ([text, width, from]) => {
    const { end, isCut, shown, start } = excerpt(text, width, from)
    assert.strictEqual(isCut, text.length > width)
    const piece = text.slice(start, end)
    assert.isTrue(piece.isWellFormed())
    assert.strictEqual(shown, isCut ? `${piece} [cut: characters ${start + 1}-${end} of ${text.length}]` : text)
    // A character of two UTF-16 units is the shortest possible excerpt.
    assert.isAtMost(piece.length, Math.max(width, 2))
    if (text !== "") assert.isAbove(piece.length, 0)
  })
})

describe("fitting a text to a budget", () => {
  const measures = { characters: (text: string) => text.length, words: (text: string) => text.split(/\s+/).length }
  const items = Arbitrary.array(Arbitrary.schema(Schema.Literals(["a", "bb b", "c ".repeat(9), "d".repeat(60)])), {
    maxLength: 20
  })

  for (const [name, measure] of Object.entries(measures)) {
    it.prop(
      `returns the greatest number of items that fits, and at least 1, in ${name}`,
      [items, int(1, 200)],
      ([items, budget]) => {
        const render = (shown: number) =>
          [...items.slice(0, shown), ...(shown < items.length ? [`more after ${shown}`] : [])].join("\n")
        const fitting = Array.from({ length: items.length + 1 }, (_, count) => count).filter(
          (count) => count > 0 && measure(render(count)) <= budget
        )
        // When all items fit, no line says that there are more.
        const expected = items.length === 0 ? 0 : Math.max(1, ...fitting)
        assert.strictEqual(countFitting(items.length, render, { budget, measure }), expected)
      }
    )
  }

  it("cuts a text at a line end, and adds a line that says so", () => {
    const settings = { budget: 25, measure: measures.characters }
    assert.strictEqual(
      joinFitting(["12345", "67890"], settings, () => "rest"),
      "12345\n67890"
    )
    assert.strictEqual(
      joinFitting(["1234567890", "1234567890", "1234567890"], settings, (shown) => `only ${shown}`),
      "1234567890\nonly 1"
    )
    const diff = runAtOnce(excerptDiff("a\n".repeat(29)))
    assert.strictEqual(withDiff(["a"], diff, settings), "a\na\n[cut: 2 of 30 lines]")
    assert.strictEqual(diffText(diff), "a\n".repeat(29))
    assert.deepStrictEqual(runAtOnce(excerptDiff("")), { lines: [], totalLines: 0 })
  })
})

describe("a listing", () => {
  it("marks a directory with a slash, a file with its size, and links and unaddressable names in words", () => {
    assert.deepStrictEqual(
      [
        formatEntry({ name: "src", kind: "directory", sizeBytes: 0 }),
        formatEntry({ name: "a b.txt", kind: "file", sizeBytes: 1 }),
        formatEntry({ name: "a", kind: "file" }),
        formatEntry({ name: "to", kind: "symlink", sizeBytes: 3 }),
        formatEntry({ name: "pipe", kind: "other" }),
        formatEntry({ name: "a\\xff", kind: "file", sizeBytes: 0, addressable: false })
      ],
      [
        "src/",
        "a b.txt (1 byte)",
        "a",
        "to (link)",
        "pipe (neither file nor directory)",
        "a\\xff (0 bytes, escaped: no path can name it)"
      ]
    )
  })

  it("counts entries by kind", () => {
    const kinds: ReadonlyArray<Kind> = ["directory", "file", "file", "symlink", "other"]
    assert.strictEqual(formatCounts(countsOf(kinds.map((kind) => ({ kind })))), "1 directory, 2 files, 2 others")
    assert.strictEqual(formatCounts(countsOf([])), "0 directories, 0 files")
  })
})

describe("matches", () => {
  const match = (lineNumber: number, rest: Partial<GrepMatch> = {}): GrepMatch => ({
    path: "a.txt" as FsPath,
    lineNumber,
    lineContent: `line ${lineNumber}`,
    matchStart: 0,
    matchEnd: 4,
    ...rest
  })

  it("are shown below the path of their file", () => {
    assert.deepStrictEqual(matchLines([match(3), match(10), match(1, { path: "b" as FsPath })]), [
      "a.txt",
      "   3 | line 3",
      "  10 | line 10",
      "b",
      "   1 | line 1"
    ])
  })

  it("share their context lines, which are shown once", () => {
    const around = (line: number): Partial<GrepMatch> => ({ before: [`line ${line - 1}`], after: [`line ${line + 1}`] })
    assert.deepStrictEqual(matchLines([match(2, around(2)), match(3, around(3)), match(7, around(7))]), [
      "a.txt",
      "   1 - line 1",
      "   2 | line 2",
      "   3 | line 3",
      "   4 - line 4",
      "     ...",
      "   6 - line 6",
      "   7 | line 7",
      "   8 - line 8"
    ])
  })

  it("of a long line are shown with the part around the match", () => {
    const long = `${"x".repeat(5000)}here${"y".repeat(5000)}`
    const [, line] = matchLines([match(1, { lineContent: long, matchStart: 5000, matchEnd: 5004 })])
    assert.include(line, "xherey")
    assert.include(line, "of 10004]")
    assert.isBelow(line!.length, 2100)
  })
})

describe("the detection of media types", () => {
  const beginning = (path: string): Uint8Array => {
    const bytes = new Uint8Array(512)
    const file = openSync(path, "r")
    readSync(file, bytes)
    closeSync(file)
    return bytes
  }
  const base64 = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "base64"))

  it("recognizes files that common programs have written", () => {
    assert.strictEqual(mediaTypeOf(gzipSync("x"))?.type, "application/gzip")
    assert.strictEqual(mediaTypeOf(zstdCompressSync("x"))?.type, "application/zstd")
    if (process.platform === "linux") assert.strictEqual(mediaTypeOf(beginning(process.execPath))?.type, "application/x-elf")
    const module = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)
    const { WebAssembly } = globalThis as unknown as {
      readonly WebAssembly: { readonly validate: (bytes: Uint8Array) => boolean }
    }
    assert.isTrue(WebAssembly.validate(module))
    assert.strictEqual(mediaTypeOf(module)?.type, "application/wasm")
  })

  // Images of one pixel.
  it.each([
    ["image/png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="],
    ["image/gif", "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"],
    ["image/webp", "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"],
    [
      "image/jpeg",
      "/9j/4AAQSkZJRgABAQEAYABgAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8QEBD/"
    ]
  ])("recognizes %s as viewable", (type, text) => {
    assert.strictEqual(mediaTypeOf(base64(text))?.type, type)
    assert.isTrue(isViewable(type))
  })

  it("returns undefined for text, for an empty file and for a truncated header", () => {
    for (const bytes of [Buffer.from("plain text"), new Uint8Array(), Uint8Array.of(0x89, 0x50)]) {
      assert.isUndefined(mediaTypeOf(bytes))
    }
    assert.isFalse(isViewable("application/pdf"))
  })
})
