import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import * as FsPath from "../../src/model/FsPath.ts"
import * as Limits from "../../src/model/Limits.ts"

const outcome = (input: unknown, policy?: FsPath.PathPolicy) => {
  const path = FsPath.parse(input as string, policy)
  return typeof path === "string" ? path : path._tag
}

describe("FsPath.parse", () => {
  // The input, and the results under standard, vfs and branch rules (C-01 to C-07).
  const rows: ReadonlyArray<readonly [string, string, string, string]> = [
    ["", ".", ".", "."],
    [".", ".", ".", "."],
    ["/", ".", ".", "."],
    ["a", "a", "a", "a"],
    ["/a", "a", "a", "a"],
    ["a/b", "a/b", "a/b", "a/b"],
    ["a/", "a", "a", "InvalidPath"],
    ["a//b", "a/b", "a/b", "InvalidPath"],
    ["//a", "a", "a", "InvalidPath"],
    ["./a", "a", "InvalidPath", "a"],
    ["a/./b", "a/b", "InvalidPath", "a/b"],
    ["a/../b", "b", "InvalidPath", "InvalidPath"],
    ["a/..", ".", "InvalidPath", "InvalidPath"],
    ["..", "InvalidPath", "InvalidPath", "InvalidPath"],
    ["../up.txt", "InvalidPath", "InvalidPath", "InvalidPath"],
    ["/../a", "InvalidPath", "InvalidPath", "InvalidPath"],
    ["a/../../b", "InvalidPath", "InvalidPath", "InvalidPath"],
    ["...", "...", "...", "..."],
    ["a/..b/.c", "a/..b/.c", "a/..b/.c", "a/..b/.c"],
    [" a ", " a ", " a ", " a "],
    ["a\\b", "a\\b", "a\\b", "a\\b"],
    ["%2e%2e/a", "%2e%2e/a", "%2e%2e/a", "%2e%2e/a"],
    ["é", "é", "InvalidPath", "é"],
    ["e\u0301", "e\u0301", "InvalidPath", "e\u0301"],
    ["😀", "😀", "InvalidPath", "😀"],
    ["a\0b", "InvalidPath", "InvalidPath", "InvalidPath"],
    ["a\nb", "InvalidPath", "InvalidPath", "InvalidPath"],
    ["a\x7f", "InvalidPath", "InvalidPath", "InvalidPath"],
    ["a\ud800", "InvalidPath", "InvalidPath", "InvalidPath"],
    ["\udc00\ud800", "InvalidPath", "InvalidPath", "InvalidPath"],
    ["/\ud800", "InvalidPath", "InvalidPath", "InvalidPath"],
    [".~fsa-1.tmp", ".~fsa-1.tmp", ".~fsa-1.tmp", ".~fsa-1.tmp"],
    ["a/.~FSA-1.TMP/b", "a/.~FSA-1.TMP/b", "a/.~FSA-1.TMP/b", "a/.~FSA-1.TMP/b"],
    ["./.~fsa-1.tmp", ".~fsa-1.tmp", "InvalidPath", ".~fsa-1.tmp"],
    [".~fsa-1", ".~fsa-1", ".~fsa-1", ".~fsa-1"]
  ]
  for (const [input, standard, vfs, branch] of rows) {
    it(`turns ${JSON.stringify(input)} into ${standard} (standard), ${vfs} (vfs) or ${branch} (branch)`, () => {
      assert.deepStrictEqual([outcome(input), outcome(input, "vfs"), outcome(input, "branch")], [standard, vfs, branch])
    })
  }

  it("refuses values other than strings", () => {
    for (const input of [undefined, null, 1, {}, [], Symbol("a"), new Uint8Array(1)]) {
      assert.strictEqual(outcome(input), "InvalidPath")
    }
  })

  const Piece = Schema.Literals(["a", "b", ".", "..", "", "/", "é", "~", ".~fsa-1.tmp", "\0", "😀", "\ud800", " "])
  it.prop("is idempotent and never yields an empty, `.` or `..` segment", [Schema.Array(Piece)], ([pieces]) => {
    const path = FsPath.parse(pieces.join("/"))
    if (typeof path !== "string") return
    assert.strictEqual(FsPath.parse(path), path)
    assert.isTrue(path.isWellFormed())
    for (const segment of FsPath.segments(path)) assert.notInclude(["", ".", ".."], segment)
    assert.strictEqual(FsPath.fromSegments(FsPath.segments(path)), path)
    assert.strictEqual(Schema.decodeUnknownSync(FsPath.FsPath)(path), path)
  })
})

describe("FsPath limits", () => {
  const limits = { maxPathLength: 20, maxPathDepth: 3, maxSegmentLength: 5 }
  const check = (path: string, with_ = limits) => FsPath.checkLimits(path as FsPath.FsPath, with_)?._tag
  it("count code points, segments, and characters of a segment", () => {
    assert.strictEqual(check("abcde/abcde/abcde"), undefined)
    assert.strictEqual(check("a/b/c/d"), "PathTooLong")
    assert.strictEqual(check("abcdef"), "PathTooLong")
    assert.strictEqual(check("a/abcdef/b"), "PathTooLong")
    assert.strictEqual(check("😀😀😀😀😀"), undefined)
    assert.strictEqual(check("😀😀😀😀😀😀"), "PathTooLong")
    assert.strictEqual(check("abcde/abcde/abcde", { ...limits, maxPathLength: 16 }), "PathTooLong")
  })
  it("refuse seventeen segments for an agent, and allow them by default", () => {
    const deep = Array(17).fill("a").join("/")
    assert.strictEqual(check(deep, Limits.agent), "PathTooLong")
    assert.strictEqual(check(deep, Limits.standard), undefined)
    assert.strictEqual(check(Array(10_000).fill("a").join("/"), Limits.unlimited), undefined)
  })
})

describe("FsPath order", () => {
  it("is by code point, not by UTF-16 unit", () => {
    // U+FF5E sorts before U+1F600, although the surrogates of U+1F600 are smaller UTF-16 units.
    assert.deepStrictEqual(["😀", "～", "a"].sort(FsPath.compare), ["a", "～", "😀"])
    assert.deepStrictEqual(["a/b.txt", "a.txt", "a-b.txt"].sort(FsPath.compare), ["a-b.txt", "a.txt", "a/b.txt"])
  })
  const text = Arbitrary.map(Arbitrary.schema(Schema.String), (text) => text.toWellFormed())
  it.prop("agrees with the comparison of code point arrays", [text, text], ([a, b]) => {
    const x = [...a].map((c) => c.codePointAt(0)!)
    const y = [...b].map((c) => c.codePointAt(0)!)
    const at = x.findIndex((point, i) => point !== y[i])
    const expected = at === -1 || at >= y.length ? Math.sign(x.length - y.length) : x[at]! < y[at]! ? -1 : 1
    assert.strictEqual(FsPath.compare(a, b), expected)
  })
})
