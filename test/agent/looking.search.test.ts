import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { glob } from "../../src/agent/tools/glob.ts"
import { grep } from "../../src/agent/tools/grep.ts"
import { tree as outline } from "../../src/agent/tools/tree.ts"
import { call, hint, linesOf, message, type Result, withSettings, withTree } from "./looking.ts"

const int = (minimum: number, maximum: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))
const none = { ignored: 0, binary: 0, too_large: 0, unreadable: 0, unreadable_paths: [] }

/** Follows the hints of the messages from page to page, and returns all pages. */
const pages = Effect.fnUntraced(function* (definition: typeof grep | typeof glob, input: object) {
  const found: Array<Result> = []
  let after: string | undefined = ""
  while (after !== undefined) {
    assert.isBelow(found.length, 1000)
    const result: Result = yield* call(definition, { ...input, after })
    assert.isTrue(result.success, result.message)
    found.push(result)
    after = hint(result.message, "after")
    assert.strictEqual(after, result.value.next)
    assert.strictEqual(result.value.truncated, after !== undefined)
  }
  return found
})

describe("glob", () => {
  const tree = {
    "a.ts": "1",
    src: { "b.ts": "22", "c.js": "", deep: { "d.ts": "" } },
    ".gitignore": "dist\n*.log\n",
    dist: { "e.ts": "" },
    "f.log": ""
  }

  it.effect.each([
    [{ pattern: "*.ts" }, "a.ts (1 byte)\nsrc/b.ts (2 bytes)\nsrc/deep/d.ts (0 bytes)\n3 matches; skipped: 2 ignored"],
    [{ pattern: "/*.ts" }, "a.ts (1 byte)\n1 match; skipped: 2 ignored"],
    [{ pattern: "*.ts", path: "src", max_matches: 1 }, 'src/b.ts (2 bytes)\n1 match, and more; continue with after="src/b.ts"'],
    [{ pattern: " /work/src/*.js ", path: null }, "src/c.js (0 bytes)\n1 match; skipped: 2 ignored"],
    [{ pattern: "e.ts", include_ignored: true }, "dist/e.ts (0 bytes)\n1 match"],
    [{ pattern: "e.ts" }, "0 matches; skipped: 2 ignored; include_ignored=true searches ignored files too"]
  ] as const)("lists the expected matches for %j", ([input, expected]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* message(glob, input, tree).pipe(withSettings({ mountPoint: "/work/" })), expected)
    })
  )

  it.effect("returns paths, sizes and skipped counts in its value", () =>
    Effect.gen(function* () {
      const { value } = yield* call(glob, { pattern: "src/*" })
      assert.deepStrictEqual(value, {
        matches: [
          { path: "src/b.ts", size_bytes: 2 },
          { path: "src/c.js", size_bytes: 0 }
        ],
        skipped: { ...none, ignored: 2 },
        truncated: false
      })
    }).pipe(withTree(tree))
  )

  it.effect.each([
    [{ pattern: " " }],
    [{}],
    [{ pattern: "[" }],
    [{ pattern: "*", path: "a.ts" }],
    [{ pattern: "*", path: "nowhere" }],
    [{ pattern: "*", max_matches: 0 }],
    [{ pattern: "../*" }]
  ])("fails with a message for %j", ([input]) =>
    Effect.gen(function* () {
      const result = yield* call(glob, input)
      assert.isFalse(result.success)
      assert.isUndefined(result.value)
    }).pipe(withTree({ "a.ts": "", "[": "" }))
  )

  const names = Arbitrary.array(
    Arbitrary.schema(Schema.Literals(["a", "b", 'q"', "é", "d/a", "d/b", "d-", "d/e/c", "\uFFEE", "😀"])),
    { maxLength: 12 }
  )
  it.effect.prop(
    "lists every file once and in order when its hints are followed",
    [names, int(1, 5), int(1, 120)],
    ([names, maxMatches, budget]) =>
      Effect.gen(function* () {
        const found = yield* pages(glob, { pattern: "**", max_matches: maxMatches })
        const paths = found.flatMap(({ value }) => value.matches.map(({ path }: { path: string }) => path))
        assert.deepStrictEqual(
          paths,
          [...new Set(names)].sort((a, b) => (points(a) < points(b) ? -1 : 1))
        )
        for (const { message, value } of found) {
          assert.isTrue(message.length <= budget || value.matches.length <= 1)
          assert.isAtMost(value.matches.length, maxMatches)
          assert.strictEqual(message.split("\n").length, value.matches.length + 1)
        }
      }).pipe(withSettings({ budget }), withTree(treeOf(Object.fromEntries(names.map((name) => [name, name])))))
  )
})

const points = (text: string): string =>
  [...text].map((character) => character.codePointAt(0)!.toString(16).padStart(6, "0")).join()

/** Builds a nested tree from paths. */
const treeOf = (files: Readonly<Record<string, string>>) => {
  const root: Record<string, object | string> = {}
  for (const [path, content] of Object.entries(files)) {
    const segments = path.split("/")
    let at = root
    for (const segment of segments.slice(0, -1)) at = (at[segment] ??= {}) as typeof root
    at[segments[segments.length - 1]!] = content
  }
  return root as Readonly<Record<string, string>>
}

describe("grep", () => {
  const tree = {
    "a.ts": "const x = 1\nlet y\nconst z",
    src: { "b.md": "a const\r\n", "c.ts": "Const (x)" },
    bin: Uint8Array.of(0, 1, 2),
    ".gitignore": "dist\n",
    dist: { "e.ts": "const" }
  }

  it.effect.each([
    [
      { pattern: "const" },
      "a.ts\n   1 | const x = 1\n   3 | const z\nsrc/b.md\n   1 | a const\n3 matches in 2 files; skipped: 1 ignored, 1 binary"
    ],
    [{ pattern: "const z", path: "a.ts" }, "a.ts\n   3 | const z\n1 match in 1 file"],
    [{ pattern: "let", path: "a.ts", context: 1 }, "a.ts\n   1 - const x = 1\n   2 | let y\n   3 - const z\n1 match in 1 file"],
    [
      { pattern: "const", file_glob: " *.ts ", ignore_case: true, max_matches: 2 },
      'a.ts\n   1 | const x = 1\n   3 | const z\n2 matches in 1 file, and more; continue with after="3:a.ts"'
    ],
    [
      { pattern: "(x)", literal: true, glob: "/work/src/*" },
      "src/c.ts\n   1 | Const (x)\n1 match in 1 file; skipped: 1 ignored"
    ],
    [{ pattern: "const", file_glob: "*.md" }, "src/b.md\n   1 | a const\n1 match in 1 file; skipped: 1 ignored"],
    [{ pattern: "onst", whole_word: true, path: "src" }, "0 matches"],
    [{ pattern: "const", glob: " ", path: "src", mode: "count" }, "src/b.md: 1 match\n1 match in 1 file"],
    [
      { pattern: "const", mode: "count", glob: "*.{ts,md}" },
      "a.ts: 2 matches\nsrc/b.md: 1 match\n3 matches in 2 files; skipped: 1 ignored"
    ],
    [
      { pattern: "const", mode: "files", glob: "*.{ts,md}", max_matches: 1 },
      'a.ts\n2 matches in 1 file, and more; continue with after="2000000000:a.ts"'
    ],
    [{ pattern: "1\nlet", path: "a.ts", multiline: true }, "a.ts\n   1 | const x = 1\n1 match in 1 file"],
    [{ pattern: "const", path: "dist", include_ignored: true }, "dist/e.ts\n   1 | const\n1 match in 1 file"]
  ] as const)("shows the expected matches for %j", ([input, expected]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* message(grep, input, tree).pipe(withSettings({ mountPoint: "/work" })), expected)
    })
  )

  it.effect("returns lines, columns, context and counts in its value", () =>
    Effect.gen(function* () {
      const { value } = yield* call(grep, { pattern: "y$|Const", context: 1, glob: "*.ts" })
      assert.deepStrictEqual(value, {
        matches: [
          {
            path: "a.ts",
            line_number: 2,
            line: "let y",
            match_start: 4,
            match_end: 5,
            before: ["const x = 1"],
            after: ["const z"]
          },
          { path: "src/c.ts", line_number: 1, line: "Const (x)", match_start: 0, match_end: 5, before: [], after: [] }
        ],
        total: 2,
        files_matched: 2,
        files_searched: 2,
        skipped: { ...none, ignored: 1 },
        truncated: false
      })
    }).pipe(withTree(tree))
  )

  it.effect("returns the part of a long line that contains the match", () =>
    Effect.gen(function* () {
      const { message, value } = yield* call(grep, { pattern: "needle" })
      const [match] = value.matches
      assert.strictEqual(match.line.slice(match.match_start, match.match_end), "needle")
      assert.deepStrictEqual([match.cut_from, match.line_length], [9800, 20_006])
      assert.include(message, "[cut: characters 9801-11800 of 20006]")
      assert.isBelow(message.length, 2200)
    }).pipe(withTree({ a: `${"x".repeat(10_000)}needle${"y".repeat(10_000)}` }))
  )

  it.effect.each([
    [{ pattern: "(" }],
    [{ pattern: "" }],
    [{ pattern: "x", context: 101 }],
    [{ pattern: "x", after: "junk" }],
    [{ pattern: "x", mode: "lines" }],
    [{ pattern: "x", max_matches: 0 }],
    [{ pattern: "x", path: "nowhere" }],
    [{ pattern: "x", path: "../up" }]
  ])("fails with a message for %j", ([input]) =>
    Effect.gen(function* () {
      const result = yield* call(grep, input)
      assert.isFalse(result.success)
      assert.isUndefined(result.value)
    }).pipe(withTree(tree))
  )

  it.effect("returns at most 1,000 matches, however many are requested", () =>
    Effect.gen(function* () {
      const { value } = yield* call(grep, { pattern: "x", max_matches: 1e12 })
      assert.deepStrictEqual([value.matches.length, value.next], [1000, "1000:a"])
    }).pipe(withTree({ a: "x\n".repeat(1500) }))
  )

  it.effect("counts all matches of a file, even if they exceed one page of the search", () =>
    Effect.gen(function* () {
      const { value } = yield* call(grep, { pattern: "x", mode: "count" })
      assert.deepStrictEqual(value.files, [
        { path: "a", count: 1 },
        { path: "b", count: 45_000 },
        { path: "c", count: 2 }
      ])
      assert.deepStrictEqual([value.total, value.files_searched, value.skipped.binary], [45_003, 4, 1])
      const first = yield* call(grep, { pattern: "x", mode: "count", max_matches: 2 })
      assert.deepStrictEqual(first.value.files, value.files.slice(0, 2))
      assert.deepStrictEqual([first.value.total, first.value.files_searched, first.value.skipped.binary], [45_001, 2, 0])
    }).pipe(withTree({ a: "x", b: "x\n".repeat(45_000), b2: Uint8Array.of(0), c: "x\nx", d: "y" }))
  )

  const content = Arbitrary.map(
    Arbitrary.array(Arbitrary.schema(Schema.Literals(["x", "y", "\n", "\n", "\r\n", "é", `${"w".repeat(3000)}x`])), {
      maxLength: 8
    }),
    (parts) => parts.join("")
  )
  const files = Arbitrary.map(Arbitrary.all([content, content, content, content]), ([a, b, c, d]) => ({
    a,
    "d-e": b,
    "d/f": c,
    'é"g': d
  }))
  const expected = (files: Readonly<Record<string, string>>): ReadonlyArray<string> =>
    Object.entries(files).flatMap(([path, text]) =>
      linesOf(text).flatMap((line, index) => (line.includes("x") ? [`${index + 1}:${path}`] : []))
    )

  it.effect.prop(
    "lists every match once and in order when its hints are followed, equally in messages and values",
    [files, int(1, 6), int(1, 300), int(0, 2)],
    ([files, maxMatches, budget, context]) =>
      Effect.gen(function* () {
        const found = yield* pages(grep, { pattern: "x", max_matches: maxMatches, context })
        const matches: ReadonlyArray<string> = found.flatMap(({ value }) =>
          value.matches.map(({ line_number, path }: { line_number: number; path: string }) => `${line_number}:${path}`)
        )
        assert.deepStrictEqual(matches, expected(files))
        for (const { message, value } of found) {
          assert.isTrue(message.length <= budget || value.matches.length <= 1)
          const shown = message.split("\n").filter((line) => / *\d+ \| /.test(line))
          assert.deepStrictEqual(
            shown,
            value.matches.map(
              ({ line, line_number }: { line: string; line_number: number }) => `${String(line_number).padStart(4)} | ${line}`
            )
          )
          for (const { line, match_end, match_start } of value.matches)
            assert.strictEqual(line.slice(match_start, match_end), "x")
        }
      }).pipe(withSettings({ budget }), withTree(treeOf(files))),
    { arbitrary: { runs: 60 } }
  )

  it.effect.prop(
    "counts every file once and completely when its hints are followed",
    [files, int(1, 3), int(1, 200), Arbitrary.schema(Schema.Literals(["files", "count"]))],
    ([files, maxMatches, budget, mode]) =>
      Effect.gen(function* () {
        const found = yield* pages(grep, { pattern: "x", max_matches: maxMatches, mode })
        const counts = new Map<string, number>()
        for (const match of expected(files))
          counts.set(match.replace(/^\d+:/, ""), (counts.get(match.replace(/^\d+:/, "")) ?? 0) + 1)
        assert.deepStrictEqual(
          found.flatMap(({ value }) => value.files),
          [...counts].map(([path, count]) => ({ path, count }))
        )
      }).pipe(withSettings({ budget }), withTree(treeOf(files))),
    { arbitrary: { runs: 60 } }
  )
})

describe("the pages of a result that is cut to the budget", () => {
  const counted = (found: ReadonlyArray<Result>, count: (value: Result["value"]) => number) =>
    found.reduce((sum, { value }) => sum + count(value), 0)
  const tree = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [
      [`${at + 10}.a`, "x"],
      [`${at + 10}.b`, Uint8Array.of(0)],
      [`${at + 10}.i`, "x"]
    ]).flat()
  )

  it.effect.each([
    [grep, { pattern: "x" }],
    [grep, { pattern: "x", mode: "files" }],
    [grep, { pattern: "x", mode: "count" }],
    [glob, { pattern: "*.a" }]
  ] as const)("count each skipped file once", ([definition, input]) =>
    Effect.gen(function* () {
      const found = yield* pages(definition, input)
      assert.isAbove(found.length, 1)
      assert.strictEqual(
        counted(found, ({ skipped }) => skipped.ignored),
        20
      )
      assert.strictEqual(
        counted(found, ({ skipped }) => skipped.binary),
        definition === grep ? 20 : 0
      )
    }).pipe(withSettings({ budget: 150 }), withTree({ ...tree, ".ignore": "*.i\n" }))
  )
})

describe("tree", () => {
  const tree = {
    "README.md": "",
    src: { "a.ts": "", deep: { er: { "x.ts": "", "y.ts": "" } }, empty: {} },
    ".gitignore": "node_modules\n",
    node_modules: { x: { "i.js": "" } },
    link: { link: "src" }
  }

  it.effect.each([
    [
      {},
      ".gitignore\nREADME.md\nlink (link)\nsrc/\n  a.ts\n  deep/\n    er/ (2 entries)\n  empty/\n4 directories, 3 files, 1 other; ignored: node_modules"
    ],
    [{ path: "src", depth: 1 }, "a.ts\ndeep/ (1 entry)\nempty/\n2 directories, 1 file"],
    [{ path: "src/deep/", depth: 16 }, "er/\n  x.ts\n  y.ts\n1 directory, 2 files"],
    [{ path: "src/empty" }, "src/empty is empty"],
    // Entries near the root come first, and empty counts are omitted.
    [
      { max_entries: 5, include_ignored: true },
      ".gitignore\nREADME.md\nlink (link)\nnode_modules/ (1 entry)\nsrc/ (3 entries)\n2 directories, 2 files, 1 other"
    ],
    [{ max_entries: 2 }, ".gitignore\nREADME.md\n... 2 more\n0 directories, 2 files; ignored: node_modules"]
  ] as const)("shows the expected outline for %j", ([input, expected]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* message(outline, input, tree), expected)
    })
  )

  it.effect("returns the entries and the number of hidden entries in its value", () =>
    Effect.gen(function* () {
      const { value } = yield* call(outline, { path: "src", depth: 1 })
      assert.deepStrictEqual(value, {
        path: "src",
        depth: 1,
        entries: [
          { path: "src/a.ts", kind: "file" },
          { path: "src/deep", kind: "directory", hidden: 1 },
          { path: "src/empty", kind: "directory" }
        ],
        counts: { files: 1, directories: 2, others: 0 },
        ignored: [],
        unreadable: [],
        truncated: true
      })
    }).pipe(withTree(tree))
  )

  it.effect.each([
    [{ path: "README.md" }, '"README.md" is not a directory'],
    [{ path: "nowhere" }, 'There is no file or directory "nowhere"'],
    [{ depth: 0 }, '"depth"'],
    [{ depth: 17 }, '"depth"'],
    [{ path: ".." }, "not a valid path"]
  ] as const)("fails for %j, and says why", ([input, reason]) =>
    Effect.gen(function* () {
      const result = yield* call(outline, input)
      assert.isFalse(result.success)
      assert.include(result.message, reason)
    }).pipe(withTree(tree))
  )

  const path = Arbitrary.map(
    Arbitrary.array(Arbitrary.schema(Schema.Literals(["a", "b", "c"])), { minLength: 1, maxLength: 4 }),
    (parts) => parts.join("/")
  )
  it.effect.prop(
    "counts every entry of a directory, whether the outline shows or hides the entry",
    [Arbitrary.array(path, { maxLength: 8 }), int(1, 4), int(1, 9), int(40, 200)],
    ([paths, depth, maxEntries, budget]) => {
      const files = paths.filter((path) => !paths.some((other) => other.startsWith(`${path}/`)))
      const all = new Set(files.flatMap((path) => path.split("/").map((_, at, parts) => parts.slice(0, at + 1).join("/"))))
      const inside = (directory: string) =>
        [...all].filter((path) => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ".") === directory)
      return Effect.gen(function* () {
        const { message, value } = yield* call(outline, { depth, max_entries: maxEntries })
        const shown: ReadonlyArray<{ path: string; kind: string; hidden?: number }> = value.entries
        assert.isAtMost(shown.length, maxEntries)
        assert.isTrue(message.length <= budget || shown.length <= 1)
        for (const { hidden = 0, kind, path } of shown) {
          assert.isTrue(all.has(path))
          assert.isAtMost(path.split("/").length, depth)
          const below = inside(path)
          assert.strictEqual(kind, below.length > 0 ? "directory" : "file")
          assert.strictEqual(shown.filter((other) => below.includes(other.path)).length + hidden, below.length)
        }
        const names = message
          .split("\n")
          .slice(0, -1)
          .flatMap((line) => (line.includes("... ") ? [] : [line.trim().replace(/\/?( \(.*)?$/, "")]))
        assert.deepStrictEqual(names.sort(), shown.map(({ path }) => path.slice(path.lastIndexOf("/") + 1)).sort())
      }).pipe(withSettings({ budget }), withTree(treeOf(Object.fromEntries(files.map((path) => [path, ""])))))
    }
  )
})
