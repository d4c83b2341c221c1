/** The expected results of a search of a file, by the rules of the plain engine: the decoded text and `scan`. */
import * as fs from "node:fs"
import { isAscii, isUtf8 } from "node:buffer"
import { acrossLines } from "../../src/runtime/acrossLines.ts"
import { code, type Kernel, makePlain, makeSimd } from "../../src/runtime/kernel.ts"
import { makeLineFinder } from "../../src/runtime/lineFinder.ts"
import { type FileFound, found } from "../../src/runtime/packed.ts"
import { type Question, scan } from "../../src/runtime/scan.ts"
import type { Query } from "../../src/model/search.ts"
import { makeSearcher, type Paths, type Searcher, type Tools } from "../../src/runtime/searcher.ts"

export const question = (source: string, options: Partial<Question> = {}): Question => ({
  source,
  flags: "s",
  literal: undefined,
  multiline: false,
  ...options
})

export const query = (question: Question, options: Partial<Query> = {}): Query => ({
  pattern: question,
  needles: undefined,
  maxMatches: Number.POSITIVE_INFINITY,
  maxBytes: Number.POSITIVE_INFINITY,
  includesText: false,
  patternBudgetMillis: Number.POSITIVE_INFINITY,
  ...options
})

export const batchOf = (base: string, names: ReadonlyArray<string>, from = 1): Paths => ({
  bases: [base],
  counts: [names.length],
  names: names.join("/"),
  from
})

const lossy = new TextDecoder("utf-8", { ignoreBOM: true })

export const textOf = (bytes: Uint8Array): string => lossy.decode(bytes)

export const expected = (
  bytes: Uint8Array,
  { maxBytes, maxMatches: most, pattern: question }: Query,
  from: number
): FileFound => {
  if (bytes.length > maxBytes) return "tooLarge"
  if (bytes.slice(0, 8192).some((byte) => byte === 0)) return "binary"
  const found = scan(question, textOf(bytes), from, most)
  return found.length > 0 && !isUtf8(bytes) ? "binary" : found
}

/** Kernels. Two of them have space for few results, so that a search must continue several times. */
export const kernels: Record<string, () => Kernel> = {
  plain: () => makePlain(3),
  "WebAssembly, little room": () => makeSimd(code, 3)!,
  WebAssembly: () => makeSimd(code)!
}

/** Makes a searcher. With a constant clock all strategies seem equally fast, and the searcher takes the first one. */
export const searcherWith = (kernel: Kernel, now = () => 0, calls: Tools["fs"] = fs): Searcher =>
  makeSearcher({ fs: calls, isAscii, isUtf8, kernel, scan, acrossLines, makeLineFinder, now })

export const searchAll = (searcher: Searcher, query: Query, batch: Paths) => {
  const search = searcher.begin(query, batch)
  while (search.next());
  const packed = search.answer()
  return { found: found(packed), texts: packed.texts }
}

export const random = (seed: number) => {
  let state = seed
  const below = (limit: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
  return { below, of: <A>(values: ReadonlyArray<A>): A => values[below(values.length)]! }
}

const words =
  'foo import bar from ZQX_needle return Return FOO a aa aab x 12 1234 .. ( _ - " foobar barfoo \u00e9t\u00e9 \ud83d\ude00 \u2028 \u00a0 \ufeff \u017f \u212a \ufffd'.split(
    " "
  )
const gaps = [" ", " ", "  ", "", "\t", "\n", "\n", "\n", "\n\n", "\r\n", "\r\n", "\r", "\r\r\n", "\v", "\u2029"]
const bad = [[0xff], [0xc3], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98], [0xc0, 0x80]]

/** Returns the content of a file: lines of words, sometimes with bytes that make it binary. */
export const content = (seed: number, length: number): Buffer => {
  const { below, of } = random(seed)
  const isPlain = below(3) === 0
  const isUnix = below(2) === 0
  const longLines = below(6) === 0
  const parts: Array<Buffer> = []
  if (below(5) === 0) parts.push(Buffer.from("\ufeff"))
  for (let size = 0; size < length;) {
    const word = of(isPlain ? words.slice(0, 17) : words)
    const gap = longLines && below(50) > 0 ? " " : of(isPlain ? gaps.slice(0, isUnix ? 9 : 14) : gaps)
    const part = Buffer.from(word + gap)
    parts.push(part)
    size += part.length
  }
  const all = Buffer.concat(parts).subarray(0, length)
  // Cutting may leave half a character at the end, which is invalid UTF-8 too.
  if (below(8) === 0) all.set(of(bad).slice(0, all.length), below(Math.max(1, all.length - 4)))
  if (below(10) === 0 && all.length > 0) all[below(all.length)] = 0
  return all
}

const both = (source: string, options: Partial<Question>, texts: ReadonlyArray<string>, fold = false): Array<Query> => [
  query(question(source, options)),
  query(question(source, options), { needles: { texts, fold } })
]

const word = (source: string): string => `(?<![A-Za-z0-9_])(?:${source})(?![A-Za-z0-9_])`

/** The queries, some of them with and without the texts that every match contains. */
export const queries: ReadonlyArray<Query> = [
  ...both("ZQX_needle", { literal: "ZQX_needle" }, ["ZQX_needle"]),
  ...both("^import .* from", {}, ["import "]),
  ...both("foo|bar", {}, ["foo", "bar"]),
  ...both("return", { flags: "is" }, ["return"], true),
  ...both("from$", {}, ["from"]),
  ...both(word("foo|x"), {}, ["foo", "x"]),
  ...both("\u00e9t\u00e9", { literal: "\u00e9t\u00e9" }, ["\u00e9t\u00e9"]),
  ...both("\ufffd", { literal: "\ufffd" }, ["\ufffd"]),
  ...both("foo\\s+bar", { flags: "", multiline: true }, ["foo"]),
  ...both("from\r?\nfoo", { flags: "", multiline: true }, ["from"]),
  ...both("foo\nbar", { literal: "foo\nbar", multiline: true, flags: "" }, ["foo\nbar"]),
  ...both("foo\nbar", { literal: "foo\nbar" }, ["foo\nbar"]),
  ...both("foo\r", { literal: "foo\r" }, ["foo"]),
  query(question("", { literal: "" })),
  query(question("x".repeat(300), { literal: "aa".repeat(150) })),
  ...[
    "^$",
    "$",
    "^",
    "x*",
    "\\b\\w{5,}\\b",
    "\\s+$",
    "^\\s",
    "[^a-z]{3}",
    "[^]x",
    "\\W{2,}",
    "a.b",
    "(ab|a)b?[ab]c*",
    "[\\s\\S]x",
    "\\S{9}",
    "(?<=foo)bar",
    "(?!foo)\\w+$",
    "(foo) \\1",
    "\\u00e9",
    "[-.]",
    "[^-a]\\b",
    "(?:^|\\W)x(?:$|\\W)",
    "\\x66oo",
    "foo\\n",
    "\\D\\d+\\D",
    "(?<year>\\d{4})",
    "a{2}",
    "[^\\w\\s]",
    "\\B\\.",
    "\\r",
    "x|^|y$",
    "(?i:FOO)r",
    "\\ufeff",
    "[\\t-~]{20}"
  ].map((source) => query(question(source))),
  ...["\\p{L}{4}", "\\P{L}{3}", "\\u{1f600}.", "k|\\W{3}", "^.$"].map((source) => query(question(source, { flags: "isu" })))
]
