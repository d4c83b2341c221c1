/** Where two texts differ by lines, without a browser. */
import { assert, describe, it } from "@effect/vitest"
import { diffLines, linesOf } from "../../../src/debug/page/panels/lineDiff.ts"

/** What the hunks make of `a`, if they tell the truth: the lines between them are those of `a`. */
const applied = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<string> => {
  const made: Array<string> = []
  let at = 0
  for (const { fromA, fromB, toA, toB } of diffLines(a, b)) {
    assert.isAtLeast(fromA, at)
    assert.isTrue(toA > fromA || toB > fromB)
    made.push(...a.slice(at, fromA), ...b.slice(fromB, toB))
    at = toA
  }
  return [...made, ...a.slice(at)]
}

/** The same numbers for everyone. */
const random = (seed: number) => (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below

describe("where two texts differ by lines", () => {
  it("lines keep their newlines, and the last one may have none", () => {
    assert.deepStrictEqual(linesOf("a\n\nb"), ["a\n", "\n", "b"])
    assert.deepStrictEqual(linesOf("a\n"), ["a\n"])
    assert.deepStrictEqual(linesOf(""), [])
  })

  it("the hunks make one of the other, of texts with many lines alike", () => {
    const next = random(11)
    for (let run = 0; run < 400; run++) {
      const [a, b] = [0, 0].map(() => Array.from({ length: next(12) }, () => "abcd"[next(4)]!))
      assert.deepStrictEqual(applied(a!, b!), b, `${a!.join("")} → ${b!.join("")}`)
    }
  })

  it("no more is other than has to be, where texts are short", () => {
    const kept = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): number =>
      a.length - diffLines(a, b).reduce((sum, { fromA, toA }) => sum + toA - fromA, 0)
    /** By trying everything. */
    const best = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): number =>
      a.length === 0 || b.length === 0
        ? 0
        : Math.max(best(a.slice(1), b), ...(b.includes(a[0]!) ? [1 + best(a.slice(1), b.slice(b.indexOf(a[0]!) + 1))] : []))
    const next = random(5)
    for (let run = 0; run < 200; run++) {
      const [a, b] = [0, 0].map(() => Array.from({ length: next(8) }, () => "abc"[next(3)]!))
      assert.strictEqual(kept(a!, b!), best(a!, b!), `${a!.join("")} → ${b!.join("")}`)
    }
  })

  it("a few changes in a long text are found one by one", () => {
    const a = Array.from({ length: 50_000 }, (_, index) => (index % 3 === 0 ? "}\n" : `line ${index}\n`))
    const b = a.slice()
    for (const line of [49_000, 30_001, 20_000, 100]) b[line] = "other\n"
    b.splice(40_000, 2)
    b.splice(10_000, 0, "new\n", "}\n")
    assert.deepStrictEqual(applied(a, b), b)
    assert.lengthOf(diffLines(a, b), 6)
  })

  it("a text that is all other is one hunk", () => {
    const [a, b] = ["a", "b"].map((name) => Array.from({ length: 5000 }, (_, index) => `${name}${index}\n`))
    assert.deepStrictEqual(diffLines(a!, b!), [{ fromA: 0, toA: 5000, fromB: 0, toB: 5000 }])
  })
})
