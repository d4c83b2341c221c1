import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { acrossLines } from "../../src/runtime/acrossLines.ts"
import { type Found, scan } from "../../src/runtime/scan.ts"
import type { Query } from "../../src/model/search.ts"
import { found } from "../../src/runtime/packed.ts"
import {
  batchOf,
  content,
  expected,
  kernels,
  queries,
  query,
  question,
  random,
  searchAll,
  searcherWith,
  textOf
} from "./searched.ts"

const holding = (files: Record<string, Uint8Array | string>, use: (base: string) => void): void => {
  const base = mkdtempSync(join(tmpdir(), "fs-algebra-searcher-"))
  try {
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(base, name), bytes)
    use(base)
  } finally {
    rmSync(base, { recursive: true })
  }
}

const mebibyte = 2 ** 20
const isSoak = process.env["FS_ALGEBRA_SOAK"] !== undefined
const small = Array.from({ length: isSoak ? 200 : 100 }, (_, seed) => content(seed, seed < 3 ? 0 : (seed * seed * 3) % 6000))
const edges = [
  "",
  "\n",
  "\r\n",
  "\r",
  "a",
  "\ufeff",
  "\ufeff\n",
  "x\n\n",
  "x\r",
  "foo\r",
  "foo\r\nfoo\r",
  "\nx",
  "a\r\r\n",
  "foo\0",
  `${"y".repeat(8191)}\0x`,
  `${"y".repeat(8192)}\0x`,
  `${"ab".repeat(400)}x\n${"a".repeat(500)}`
]
const contents = [...edges.map((text) => Buffer.from(text)), ...small]
/** Sizes around the ends of the buffer, of a block, and of the decoder's block. */
const large = [65_537, 200_000, mebibyte, 1.6 * mebibyte].map((length, i) => content(1000 + i, length))
const named = (all: ReadonlyArray<Uint8Array>) => Object.fromEntries(all.map((bytes, i) => [`f${i}`, bytes]))

const label = ({ needles, pattern: { flags, source } }: Query): string =>
  `/${source}/${flags}${needles === undefined ? "" : ` with ${JSON.stringify(needles.texts)}`}`

describe("a searcher after an error in a file", () => {
  it("does not report the matches of that file for the next file", () =>
    holding({ poison: `foo of the poison\n${"\n".repeat(mebibyte)}`, innocent: "foo of the innocent\n" }, (base) => {
      let open = ""
      const calls = {
        ...fs,
        openSync: (path: string, flags: number) => {
          open = path
          return fs.openSync(path, flags)
        },
        readSync: (file: number, bytes: NodeJS.ArrayBufferView, offset: number, length: number, at: number) => {
          if (open.endsWith("poison") && at > 0) throw new RangeError("Maximum call stack size exceeded")
          return fs.readSync(file, bytes, offset, length, at)
        }
      } as unknown as typeof fs
      const files = [join(base, "poison")]
      const search = searcherWith(kernels["WebAssembly"]!(), undefined, calls).begin(query(question("foo")), {
        files,
        refuseHardlinks: false
      })
      assert.throws(() => search.next(), "Maximum call stack size exceeded")
      files.length = search.done()
      files.push(join(base, "innocent"))
      search.next()
      assert.deepStrictEqual(found(search.answer()), [
        [{ lineNumber: 1, lineContent: "foo of the innocent", matchStart: 0, matchEnd: 3 }]
      ])
    }))
})

for (const [turn, [name, make]] of Object.entries(kernels).entries()) {
  describe(`searcher, ${name}`, () => {
    it("finds the same matches in contents that are searched together as in single contents", () => {
      const searcher = searcherWith(make())
      const many = [...contents, large[0]!, ...contents.slice(0, 20)]
      const asked = queries.filter(({ needles, pattern }) => needles !== undefined || pattern.literal !== undefined)
      const variants: ReadonlyArray<readonly [options: Partial<Query>, from: number]> = [
        [{}, 3],
        [{ maxMatches: 2, maxBytes: 2000, includesText: true }, 1]
      ]
      for (const each of asked) {
        for (const [options, from] of variants) {
          const query = { ...each, ...options }
          const search = searcher.begin(query, { contents: many, from })
          while (search.nextTogether());
          const packed = search.answer()
          const wanted = many.map((bytes, i) => expected(bytes, query, i === 0 ? from : 1))
          assert.deepStrictEqual(found(packed), wanted, label(query))
          const texts = many.filter((_, i) => typeof wanted[i] !== "string" && wanted[i]!.length > 0).map(textOf)
          assert.deepStrictEqual(packed.texts, query.includesText ? texts : undefined)
        }
      }
    })

    const agree = (contents: ReadonlyArray<Uint8Array>, queries: ReadonlyArray<Query>, from: number): void =>
      holding(named(contents), (base) => {
        const searcher = searcherWith(make())
        for (const query of queries) {
          const { found } = searchAll(searcher, query, batchOf(base, Object.keys(named(contents)), from))
          assert.strictEqual(found.length, contents.length)
          for (const [i, bytes] of contents.entries()) {
            const wanted = expected(bytes, query, i === 0 ? from : 1)
            if (JSON.stringify(found[i]) === JSON.stringify(wanted)) continue
            assert.deepStrictEqual(
              found[i],
              wanted,
              `${label(query)} in file ${i}, ${JSON.stringify(textOf(bytes).slice(0, 300))}`
            )
          }
        }
      })

    it("finds the same matches in small files as a search of the decoded text", () => agree(contents, queries, 1))

    it("finds the same matches in files that are read in blocks", () =>
      agree(
        large,
        // Queries without needles do not use the kernel, so each kernel runs only some of them. The soak runs more.
        queries.filter(({ needles }, i) => (isSoak && needles !== undefined) || i % 3 === turn),
        1
      ))

    it("limits the lines per file and the size of files", () =>
      agree(
        [...small.slice(0, 60), large[1]!, large[3]!],
        queries
          .filter((_, i) => i % 5 === 0)
          .flatMap((query) => [1, 2, 7].map((maxMatches) => ({ ...query, maxMatches, maxBytes: 3000 * maxMatches }))),
        1
      ))

    it("starts at the requested line, in the first file only", () => {
      for (const bytes of [small[70]!, small[77]!, large[1]!]) agree([bytes, small[50]!], queries.slice(0, 12), 9)
    })

    it("returns the text of each file with a match", () =>
      holding(
        {
          a: "foo\n",
          b: "bar",
          c: "\ufefffoo \u00e9\r\n",
          d: Buffer.from([102, 111, 111, 255]),
          e: `${"x\n".repeat(mebibyte)}foo`
        },
        (base) => {
          const searcher = searcherWith(make())
          const { texts } = searchAll(
            searcher,
            query(question("foo", { literal: "foo" }), { includesText: true }),
            batchOf(base, ["a", "b", "c", "d", "e"])
          )
          assert.deepStrictEqual(texts, ["foo\n", "\ufefffoo \u00e9\r\n", `${"x\n".repeat(mebibyte)}foo`])
        }
      ))

    it("treats a line longer than a block as one line", () =>
      holding({ a: `foo\n${"x".repeat(3 * mebibyte)}foo${"y".repeat(3 * mebibyte)}\r\nfoo` }, (base) => {
        for (const needles of [undefined, { texts: ["foo"], fold: false }]) {
          const { found } = searchAll(searcherWith(make()), query(question("fo+"), { needles }), batchOf(base, ["a"]))
          const [first, second, third] = found[0] as ReadonlyArray<Found>
          assert.deepStrictEqual([first!.lineNumber, second!.lineNumber, third!.lineNumber], [1, 2, 3])
          assert.deepStrictEqual([second!.matchStart, second!.lineContent.length], [3 * mebibyte, 6 * mebibyte + 3])
        }
      }))

    it("reports a large file with a match and invalid bytes as binary, whether they come before or after the match", () =>
      holding(
        {
          before: Buffer.concat([Buffer.from([255]), Buffer.from("\nx".repeat(2 * mebibyte)), Buffer.from("\nfoo")]),
          after: Buffer.concat([Buffer.from("foo\n"), Buffer.from("\nx".repeat(2 * mebibyte)), Buffer.from([0xc3])]),
          none: Buffer.concat([Buffer.from("x\n".repeat(2 * mebibyte)), Buffer.from([255])])
        },
        (base) => {
          for (const most of [1, 100]) {
            const { found } = searchAll(
              searcherWith(make()),
              query(question("foo"), { maxMatches: most }),
              batchOf(base, ["before", "after", "none"])
            )
            assert.deepStrictEqual(found, ["binary", "binary", []])
          }
        }
      ))

    it("can alternate between two searches without mixing their results", () =>
      holding(named(small), (base) => {
        const searcher = searcherWith(make())
        const batch = batchOf(base, Object.keys(named(small)))
        const [a, b] = [queries[1]!, queries[5]!]
        const alone = [a, b].map((query) => searchAll(searcher, query, batch).found)
        const [first, second] = [searcher.begin(a, batch), searcher.begin(b, batch)]
        while (first.next() && second.next());
        const counts = (found: (typeof alone)[number]) => found.map((file) => (typeof file === "string" ? -1 : file.length))
        const answered = [first, second].map((search) => [...search.answer().files].map((count) => Math.max(count, -1)))
        assert.deepStrictEqual(answered[0], counts(alone[0]!))
        assert.deepStrictEqual(answered[1], counts(alone[1]!).slice(0, answered[1]!.length))
      }))
  })
}

describe("searcher", () => {
  const searcher = searcherWith(kernels["WebAssembly"]!())

  it("reports devices, pipes, links and directories as unreadable, and does not wait for them", () =>
    holding({ file: "foo", other: "foo" }, (base) => {
      mkdirSync(join(base, "directory"))
      symlinkSync("file", join(base, "link"))
      symlinkSync("nowhere", join(base, "dangling"))
      linkSync(join(base, "other"), join(base, "another"))
      const pipes = spawnSync("mkfifo", [join(base, "pipe")]).status === 0 ? ["pipe"] : []
      const names = ["file", "missing", "directory", "link", "dangling", "other", ...pipes]
      const asked = (refuseHardlinks: boolean) =>
        searchAll(searcher, query(question("foo", { literal: "foo" })), {
          ...batchOf(base, names),
          refuseHardlinks
        }).found.map((found) => (typeof found === "string" ? found : found.length))
      const rest = pipes.map(() => "unreadable")
      assert.deepStrictEqual(asked(false), [1, "gone", "unreadable", "unreadable", "unreadable", 1, ...rest])
      assert.deepStrictEqual(asked(true), [1, "gone", "unreadable", "unreadable", "unreadable", "unreadable", ...rest])
      const inFile = searchAll(searcher, query(question("foo")), batchOf(join(base, "file"), ["below"]))
      assert.deepStrictEqual(inFile.found, ["gone"])
      const devices = searchAll(searcher, query(question("foo")), batchOf("/dev", ["null", "zero"]))
      assert.deepStrictEqual(devices.found, ["unreadable", "unreadable"])
    }))

  it("reports a device that returns short reads as unreadable", () => {
    const readSync = (file: number, into: NodeJS.ArrayBufferView, offset: number, length: number, position: number | null) =>
      fs.readSync(file, into, offset, Math.min(length, 1000), position)
    const calls = { ...fs, readSync: readSync as typeof fs.readSync }
    const found = searchAll(
      searcherWith(kernels["WebAssembly"]!(), () => 0, calls),
      query(question("\0")),
      batchOf("/dev", ["zero"])
    )
    assert.deepStrictEqual(found.found, ["unreadable"])
  })

  it("searches several directories, some without files", () =>
    holding({ a: "foo", b: "bar\nfoo" }, (base) => {
      const batch = { bases: [base, base, base], counts: [1, 0, 2], names: "a/b/a", from: 1 }
      const { found } = searchAll(searcher, query(question("foo", { literal: "foo" })), batch)
      assert.deepStrictEqual(
        found.map((file) => (file as ReadonlyArray<Found>)[0]!.lineNumber),
        [1, 2, 1]
      )
    }))

  it("returns no results for no files", () => {
    assert.deepStrictEqual(searchAll(searcher, query(question("x")), { bases: [], counts: [], names: "", from: 1 }).found, [])
  })
})

describe("acrossLines", () => {
  const pieces = [
    ".",
    "a",
    "b",
    "\\w",
    "\\s",
    "\\W",
    "\\D",
    "\\S",
    "[^a]",
    "[^-b]",
    "[a-b]",
    "[\\s,]",
    "[^]",
    "^",
    "$",
    "\\b",
    "\\B",
    "|",
    "(?:a|b)",
    "(a.)",
    "\\.",
    "(?<![A-Za-z0-9_])",
    "(?![A-Za-z0-9_])",
    "(?<n>b)",
    "\\t",
    "[,;.]",
    "\\r",
    "\\p{L}",
    "\\/"
  ]
  const signs = ["a", "b", "a", "b", " ", ",", ".", "_", "\t", "\n", "\n", "-", "\u00e9"]
  const { below, of } = random(7)
  const many = (values: ReadonlyArray<string>, most: number, suffix: () => string) =>
    Array.from({ length: 1 + below(most) }, () => of(values) + suffix()).join("")

  it("finds the same matches in a text as in its single lines", () => {
    let compared = 0
    for (let i = 0; i < 30_000; i++) {
      const source = many(pieces, 5, () => of(["", "", "", "*", "+", "?", "{2}", "+?", "{1,3}"]))
      const flags = of(["s", "is", "su", "isu", ""])
      const asked = question(source, { flags })
      let across: RegExp | undefined
      try {
        void new RegExp(source, flags)
        across = acrossLines(asked)
      } catch {
        continue
      }
      if (across === undefined) continue
      compared++
      const text = many(signs, 30, () => "")
      const found: Array<readonly [line: number, start: number, end: number]> = []
      across.lastIndex = 0
      for (let match = across.exec(text); match !== null; match = across.exec(text)) {
        const begin = match.index === 0 ? 0 : text.lastIndexOf("\n", match.index - 1) + 1
        if (begin === text.length) break
        found.push([text.slice(0, begin).split("\n").length, match.index - begin, match.index - begin + match[0].length])
        const lf = text.indexOf("\n", match.index)
        if (lf === -1) break
        across.lastIndex = lf + 1
      }
      const wanted = scan(asked, text, 1, Infinity).map(({ lineNumber, matchEnd, matchStart }) => [
        lineNumber,
        matchStart,
        matchEnd
      ])
      assert.deepStrictEqual(found as unknown, wanted, `/${source}/${flags} in ${JSON.stringify(text)}`)
    }
    assert.isAbove(compared, 10_000)
  })

  it("is undefined for expressions that cannot be searched across lines", () => {
    for (const source of [
      "(?=a)",
      "(?<=a)b",
      "(?<!b)a",
      "(a)\\1",
      "\\x0a",
      "\\u000a",
      "\\n",
      "\\cJ",
      "\\0",
      "(?-m:^)a",
      "(?i:a)",
      "\n"
    ]) {
      assert.isUndefined(acrossLines(question(source)), source)
    }
    assert.isUndefined(acrossLines(question("[[a]--[b]]", { flags: "v" })))
    assert.isUndefined(acrossLines(question("a", { multiline: true })))
  })
})
