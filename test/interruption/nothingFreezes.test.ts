/**
 * No file content blocks the event loop. Each row is a computation over content of an unusual shape. Double the content costs at
 * most 2.5 times the steps, and the event loop runs after a bounded number of steps. No clock is used.
 */
import { type Counted, counted } from "../steps.ts"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as InMemory from "../../src/backends/InMemory.ts"
import { changedLines } from "../../src/agent/advice.ts"
import { similarNames } from "../../src/engine/nearest.ts"
import { applyHunks } from "../../src/agent/patch/apply.ts"
import { parse } from "../../src/agent/patch/parse.ts"
import * as Text from "../../src/engine/text.ts"
import { mergeText } from "../../src/history/mergeText.ts"
import { readAny } from "../../src/history/zip/reader.ts"
import * as Spool from "../../src/history/zip/spool.ts"
import type { FileEntry } from "../../src/model/Entry.ts"
import type * as FsPath from "../../src/model/FsPath.ts"
import * as Limits from "../../src/model/Limits.ts"
import { runInSlices } from "../../src/runtime/steps.ts"
import * as Edit from "../../src/engine/edit.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { build } from "../history/zipBuilder.ts"

/** The most steps between two turns of the event loop, about 5 ms. Every row takes many more steps in total. */
const maxHold = 2_500_000
const maxGrowth = 2.5
const size = 100_000
/** The fewest steps to compare. Below this number, fixed costs outweigh the rest. */
const least = 20_000

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const filled = (unit: string, length: number): string => unit.repeat(Math.ceil(length / unit.length)).slice(0, length)

/** Returns content of this many UTF-16 units. */
type Shape = (length: number) => string

const shapes: Readonly<Record<string, Shape>> = {
  "minified JSON in one line": (length) => filled('{"a":1,"b":2},', length),
  "line ends only": (length) => filled("\n", length),
  "CRLF only": (length) => filled("\r\n", length),
  "NUL only": (length) => filled("\0", length),
  "equal lines": (length) => filled("the same line again\n", length),
  "two alternating lines": (length) => filled("a\nb\n", length),
  "surrogate pairs": (length) => filled("😀", length & ~1),
  "one line that ends in CRLF": (length) => `${filled("a,", length)}\r\n`,
  "letters of two bytes": (length) => filled("é", length)
}

interface Row {
  readonly name: string
  /** Returns the computation over content of this length. Its preparation is not counted. */
  readonly make: (length: number) => Effect.Effect<unknown, unknown>
  readonly size?: number
}

const edits: Readonly<Record<string, (text: string) => ReadonlyArray<Edit.Edit>>> = {
  "a text that must be unique but occurs everywhere": (text) => [
    { oldText: text.includes(",") ? "," : text.slice(0, 2), newText: "x" }
  ],
  "all occurrences": (text) => [{ oldText: text.includes(",") ? "," : text.slice(0, 2), newText: "x\ny", match: "all" }],
  "the first occurrence": (text) => [{ oldText: text.includes(",") ? "," : text.slice(0, 2), newText: "x\ny", match: "first" }],
  "a text that does not occur": (text) => [{ oldText: `${text.slice(0, 240)}!`, newText: "x" }],
  "a long text that does not occur": (text) => [{ oldText: `${text.slice(0, text.length / 2)}!`, newText: "x" }],
  "the whole text": (text) => [{ oldText: text, newText: text.replaceAll(/[a,\n]/g, "xy") }],
  "two texts that overlap": (text) => [
    { oldText: text.slice(-2), newText: "x", match: "all" },
    { oldText: text.slice(-4), newText: "x", match: "all" }
  ]
}

/** The slowest edits. The diff of a million changed lines is cut off after a fixed number of steps. */
const long = new Set(["all occurrences", "the whole text"])

const editing: ReadonlyArray<Row> = Object.entries(shapes).flatMap(([shape, of]) =>
  Object.entries(edits)
    .filter(([edit]) => !long.has(edit) || shape === "minified JSON in one line" || shape === "CRLF only")
    .map(([edit, make]) => ({
      name: `an edit of ${edit}, in ${shape}`,
      make: (length: number) => {
        const text = of(length)
        return Edit.applyEdits(utf8(text), make(text), "f")
      }
    }))
)

/** Returns lines of a few kinds in an order that never repeats, which is the hardest input for a diff. */
const shuffled = (length: number, kinds: number, seed: number): string => {
  const lines: Array<number> = []
  let state = seed
  for (let units = 0; units < length; units += 3) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    lines.push((state >> 8) % kinds)
  }
  return lines.join("\n")
}

const entry = (name: string): FileEntry => ({
  name,
  path: `d/${name}` as FsPath.FsPath,
  kind: "file",
  isFile: true,
  isDirectory: false,
  sizeBytes: 0,
  addressable: true
})

const others: ReadonlyArray<Row> = [
  ...[2, 50].map((kinds) => ({
    name: `the difference of two texts of ${kinds} kinds of lines`,
    make: (length: number) => runInSlices(() => changedLines(shuffled(length, kinds, 1), shuffled(length, kinds, 2)))
  })),
  ...[2, 50].map((kinds) => ({
    name: `a merge of three texts of ${kinds} kinds of lines`,
    make: (length: number) => {
      const [base, ours, theirs] = [1, 2, 3].map((seed) => utf8(shuffled(length / 4, kinds, seed)))
      return runInSlices(() => mergeText(base!, ours!, theirs!))
    }
  })),
  ...["\n", "a\r\n", "\0", "é"].map((unit) => ({
    name: `a page at the end of a file of ${JSON.stringify(unit)}`,
    make: (length: number) => {
      const text = filled(unit, 4 * length)
      return runInSlices(() => Text.pageSteps(text, text.length - 10, 5))
    }
  })),
  ...["utf-8", "shift_jis", "iso-2022-jp", "gb18030"].map((encoding) => ({
    name: `${encoding} with a bad byte at its end`,
    make: (length: number) => {
      const bytes = utf8(`${filled("ab\n", 4 * length)}.`)
      bytes[bytes.length - 1] = 0xff
      return runInSlices(() => Text.decodeSteps(bytes, encoding))
    }
  })),
  {
    name: "the search for similar names of a missing file",
    make: (length) => {
      const name = filled("edcba", 79)
      const entries = Array.from({ length: length / 100 }, (_, index) => entry(filled(`abcde${index}`, 80)))
      return runInSlices(() => similarNames(name, entries))
    }
  },
  {
    name: "a hunk that almost matches at every line of a file",
    make: (length) => {
      const parsed = parse(`*** Begin Patch\n*** Update File: x\n@@\n${" a\n".repeat(200)}-b\n+c\n*** End Patch\n`)
      if ("_tag" in parsed) throw new Error(parsed.happened)
      return runInSlices(() => applyHunks(parsed[0]!, filled("a\n", length), "x"))
    }
  }
]

/** Walks over names of 101 characters that no rule of a long ignore file matches. */
const ignoring = (rule: string): Row => ({
  name: `a walk beside an ignore file of ${JSON.stringify(rule)} many times over`,
  size: 50_000,
  make: (length) =>
    Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      yield* fs.write(".gitignore", filled(`${rule}\n`, length))
      for (const end of ["1", "2"]) yield* fs.write(`${"b".repeat(100)}${end}/c`, "")
      yield* fs.glob("**", { gitignore: true })
    }).pipe(Effect.provide(Filesystem.layer(InMemory.make())))
})

const unpacking: Row = {
  name: "the names of an archive",
  size: 2_000,
  make: (length) => {
    const parts = Array.from({ length }, (_, index) => ({ name: `${"d/".repeat(200)}${index}` }))
    return readAny(Spool.fromBytes(build(parts)), { limits: Limits.unlimited, policy: undefined })
  }
}

const rows = [unpacking, ignoring("!*a*"), ignoring("*a*/*c"), ...editing, ...others]

const growth = (small: Counted, large: Counted): number => large.total / Math.max(small.total, least)

describe("the event loop keeps running, and the work grows in proportion to the content, for", () => {
  for (const { make, name, size: own = size } of rows) {
    it(name, async () => {
      const small = await counted(make(own))
      const large = await counted(make(2 * own))
      const said = `${small.total} steps, twice as much ${large.total}, ${large.longest} in a row`
      assert.isAtMost(growth(small, large), maxGrowth, said)
      assert.isAtMost(large.longest, maxHold, said)
    })
  }
})

describe("an edit of a large file", () => {
  it("can be interrupted, and leaves the file unchanged", async () => {
    const text = filled('{"a":1,"b":2},', 2_000_000)
    const after = await Effect.runPromise(
      Effect.gen(function* () {
        const fs = yield* Filesystem.Filesystem
        yield* fs.write("data.json", text)
        const editing = yield* Effect.forkChild(fs.edit("data.json", [{ oldText: ",", newText: ";\n", match: "all" }]))
        // An edit that never pauses would be over when this fiber continues.
        for (let turns = 0; turns < 5; turns++) yield* Effect.yieldNow
        yield* Fiber.interrupt(editing)
        return yield* fs.readString("data.json")
      }).pipe(Effect.provide(Filesystem.layer(InMemory.make())))
    )
    assert.isTrue(after === text)
  })
})
