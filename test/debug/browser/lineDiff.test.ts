/** The line diff of two texts, tested without a browser. */
import { assert, describe, it } from "@effect/vitest"
import { diffLines, linesOf } from "../../../src/debug/page/panels/lineDiff.ts"

/** Applies the hunks to `a`, and checks that the lines between them are equal in both. */
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

/** Returns a generator of pseudo-random numbers, the same in every run. */
const random = (seed: number) => (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below

describe("the line diff", () => {
  it("keeps the newline of each line, which the last line may lack", () => {
    assert.deepStrictEqual(linesOf("a\n\nb"), ["a\n", "\n", "b"])
    assert.deepStrictEqual(linesOf("a\n"), ["a\n"])
    assert.deepStrictEqual(linesOf(""), [])
  })

  it("turns one text into the other, for texts with many equal lines", () => {
    const next = random(11)
    for (let run = 0; run < 400; run++) {
      const [a, b] = [0, 0].map(() => Array.from({ length: next(12) }, () => "abcd"[next(4)]!))
      assert.deepStrictEqual(applied(a!, b!), b, `${a!.join("")} → ${b!.join("")}`)
    }
  })

  it("has the smallest number of changed lines for short texts", () => {
    const kept = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): number =>
      a.length - diffLines(a, b).reduce((sum, { fromA, toA }) => sum + toA - fromA, 0)
    /** Finds the longest common subsequence by exhaustive search. */
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

  it("finds a few changes in a long text as separate hunks", () => {
    const a = Array.from({ length: 50_000 }, (_, index) => (index % 3 === 0 ? "}\n" : `line ${index}\n`))
    const b = a.slice()
    for (const line of [49_000, 30_001, 20_000, 100]) b[line] = "other\n"
    b.splice(40_000, 2)
    b.splice(10_000, 0, "new\n", "}\n")
    assert.deepStrictEqual(applied(a, b), b)
    assert.lengthOf(diffLines(a, b), 6)
  })

  it("is one hunk when all lines differ", () => {
    const [a, b] = ["a", "b"].map((name) => Array.from({ length: 5000 }, (_, index) => `${name}${index}\n`))
    assert.deepStrictEqual(diffLines(a!, b!), [{ fromA: 0, toA: 5000, fromB: 0, toB: 5000 }])
  })
})
