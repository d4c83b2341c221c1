/** The comparison of two texts by line, tested without a browser. */
import { assert, describe, it } from "@effect/vitest"
import { differences } from "../../../src/debug/page/panels/differences.ts"

/** Applies the differences to `a`, and checks that they are in order and cover whole lines. */
const applied = (a: string, b: string): string => {
  let made = ""
  let at = 0
  for (const { fromA, fromB, toA, toB } of differences(a, b)) {
    assert.isAtLeast(fromA, at)
    assert.isTrue(toA > fromA || toB > fromB)
    for (const [text, place] of [
      [a, fromA],
      [a, toA],
      [b, fromB],
      [b, toB]
    ] as const) {
      assert.isTrue(place === 0 || place === text.length || text[place - 1] === "\n")
    }
    made += a.slice(at, fromA) + b.slice(fromB, toB)
    at = toA
  }
  return made + a.slice(at)
}

const textOf = (lines: ReadonlyArray<string>): string => lines.map((line) => `${line}\n`).join("")

/** Returns a generator of pseudo-random numbers, the same in every run. */
const random = (seed: number) => (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below

describe("the comparison by line", () => {
  it("finds differences that turn one text into the other, for texts with many equal lines", () => {
    const next = random(11)
    for (let run = 0; run < 400; run++) {
      const [a, b] = [0, 0].map(() => Array.from({ length: next(12) }, () => "abcd"[next(4)]!))
      const [before, after] = [textOf(a!).slice(next(2)), textOf(b!).slice(0, next(2) === 0 ? undefined : -1)]
      assert.strictEqual(applied(before!, after!), after, `${a!.join("")} → ${b!.join("")}`)
    }
  })

  it("finds the smallest number of changed lines for short texts", () => {
    const kept = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): number =>
      a.length - differences(textOf(a), textOf(b)).reduce((sum, { fromA, toA }) => sum + (toA - fromA) / 2, 0)
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

  it("finds a few changes in a long text as separate differences", () => {
    const a = Array.from({ length: 50_000 }, (_, index) => (index % 3 === 0 ? "}" : `line ${index}`))
    const b = a.slice()
    for (const line of [49_000, 30_001, 20_000, 100]) b[line] = "other"
    b.splice(40_000, 2)
    b.splice(10_000, 0, "new", "}")
    assert.strictEqual(applied(textOf(a), textOf(b)), textOf(b))
    assert.lengthOf(differences(textOf(a), textOf(b)), 6)
  })

  it("finds one difference if all lines differ", () => {
    const [a, b] = ["a", "b"].map((name) => Array.from({ length: 5000 }, (_, index) => `${name}${index}`)).map(textOf)
    assert.deepStrictEqual(differences(a!, b!), [{ fromA: 0, toA: a!.length, fromB: 0, toB: b!.length }])
  })
})
