import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { compile, findNeedles } from "../../src/engine/pattern.ts"
import { is as isFault } from "../../src/model/Fault.ts"
import { standard } from "../../src/model/Limits.ts"
import { runs } from "../runs.ts"

const lower = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
const holds = (text: string, needle: string, fold: boolean) =>
  fold ? lower(text).includes(lower(needle)) : text.includes(needle)

/** The expression, its flags and the expected texts, derived by hand. */
const table: ReadonlyArray<readonly [source: string, flags: string, texts: ReadonlyArray<string> | undefined]> = [
  ["^import .* from", "s", ["import "]],
  ["TODO|FIXME|throw new \\w+LoError", "s", ["TODO", "FIXME", "throw new "]],
  ["\\bfoo\\b", "s", ["foo"]],
  ["(foo|bar)?baz", "s", ["baz"]],
  ["(foo|bar)baz", "s", ["foobaz", "barbaz"]],
  ["(foo|bar)+baz", "s", ["foobaz", "barbaz"]],
  ["a*", "s", undefined],
  ["(?:)", "s", undefined],
  ["", "s", undefined],
  ["x{0}y", "s", undefined],
  ["x{0}yz", "s", ["yz"]],
  ["x{0,}yz", "s", ["yz"]],
  ["[Tt]odo", "s", ["Todo", "todo"]],
  ["[Tt]odo", "is", ["todo"]],
  ["[abcde]todo", "s", ["todo"]],
  ["[ab][ab][ab]foo", "s", ["foo"]],
  ["(?:x|abcdefgh).*foo", "s", ["foo"]],
  ["[a-c]todo", "s", ["todo"]],
  ["[^a]todo", "s", ["todo"]],
  ["[a-]todo", "s", ["atodo", "-todo"]],
  ["[]todo]", "s", ["todo]"]],
  ["[.]todo[\\]]", "s", [".todo]"]],
  ["(?!abc)def", "s", ["def"]],
  ["(?<=abc)def", "s", ["def"]],
  ["(?<!abc)def", "s", ["def"]],
  ["de(?=fg)fg", "s", ["defg"]],
  ["(?=abc)", "s", undefined],
  ["\\b\\w{20,}\\b", "s", undefined],
  ["colou?r", "s", ["colo"]],
  ["ab+c", "s", ["ab"]],
  ["xab+cd", "s", ["xab"]],
  ["ab+cde", "s", ["bcde"]],
  ["ab{2,}cd", "s", ["bbcd"]],
  ["ab{3}cd", "s", ["abbbcd"]],
  ["(?:ab)+?cd", "s", ["abcd"]],
  ["ab*cd", "s", ["cd"]],
  ["ab{,2}c", "s", ["ab{,2}c"]],
  ["foo|", "s", undefined],
  ["foo|b*", "s", undefined],
  ["foo|foobar", "s", ["foo"]],
  ["(?<year>\\d+)-foo", "s", ["-foo"]],
  ["(foo)\\1bar", "s", ["foo"]],
  ["(a)\\10bar", "s", ["bar"]],
  ["(?<n>foo)\\k<n>bar", "s", ["foo"]],
  ["(?i:foo)bar", "s", undefined],
  ["(?-i:foo)bar", "is", undefined],
  ["\\.\\/\\t\\x41\\u0042\\cI", "s", ["./\tAB\t"]],
  ["x\\ciy", "s", ["x\ty"]],
  ["\\u{2}a", "s", ["uua"]],
  ["\\u{61}b", "su", ["ab"]],
  ["\\p{Lu}bcd", "su", ["bcd"]],
  ["\\pbcd", "s", ["pbcd"]],
  ["foo\\dbar", "s", ["foo"]],
  ["foo\\nba", "s", ["foo"]],
  ["\\r\\n", "s", undefined],
  ["\\uFEFFab\\uFFFDabc", "s", ["abc"]],
  ["😀+xy", "s", ["😀"]],
  ["😀+xy", "su", ["😀xy"]],
  ["\\uD83D\\uDE00x", "s", ["😀x"]],
  ["\\uD83D[\\uDE00\\uDE01]x", "s", ["😀x", "😁x"]],
  ["\\uD83Dxy", "s", ["xy"]],
  ["[[abc]--[b]]xy", "sv", ["xy"]],
  ["[ab]xy", "sv", ["axy", "bxy"]],
  ["Kelvin task", "is", ["kelvin task"]],
  ["Kelvin task", "isu", ["elvin ta"]],
  ["Kelvin task", "isv", ["elvin ta"]],
  ["naïveté", "is", ["vet"]],
  ["naïveté", "s", ["naïveté"]],
  ["a", "s", undefined],
  [" ", "s", undefined],
  ["[0a]", "s", undefined],
  [".\\{.", "s", ["{"]],
  ["é", "s", ["é"]],
  ["e|foo", "s", ["e", "foo"]],
  ["(?<![A-Za-z0-9_])(?:foo|bar)(?![A-Za-z0-9_])", "s", ["foo", "bar"]],
  ["(?<![A-Za-z0-9_])(?:foo.*barbaz)(?![A-Za-z0-9_])", "s", ["barbaz"]],
  ["[abc][abc][abc]foo[abc]", "s", ["foo"]],
  ["a{100}", "s", ["a".repeat(64)]],
  ["é{100}", "s", ["é".repeat(32)]],
  ["€{100}", "s", ["€".repeat(21)]],
  ["abc\\r€€", "s", ["€€"]],
  [`${"é".repeat(20)}😀${"x".repeat(30)}`, "s", [`${"é".repeat(20)}😀${"x".repeat(20)}`]],
  [`${"x".repeat(63)}éx`, "s", ["x".repeat(63)]],
  ["((a{64}){64}){64}", "s", ["a".repeat(64)]],
  ["aa|bb|cc|dd|ee|ff|gg|hh|ii|jj|kk|ll|mm|nn|oo|pp", "s", [..."abcdefghijklmnop"].map((one) => one + one)],
  ["aa|bb|cc|dd|ee|ff|gg|hh|ii|jj|kk|ll|mm|nn|oo|pp|qq", "s", undefined],
  ["(".repeat(300) + "foo" + ")".repeat(300), "s", undefined]
]

/** Returns an integer from 0 to below the bound. All random choices of a sample use it. */
type Next = (below: number) => number
interface Piece {
  readonly source: string
  readonly sample: (next: Next) => string
}
type Spelled = readonly [source: string, text: string]

const everywhere: ReadonlyArray<Spelled> = [
  ...[..."abcdkskSKT1-,= é😀ſ\u212a\ufeff\ufffd\r"].map((one): Spelled => [one, one]),
  ...([
    ["ab", "ab"],
    ["foo", "foo"],
    ["TODO", "TODO"],
    ["\\.", "."],
    ["\\n", "\n"],
    ["\\t", "\t"],
    ["\\/", "/"]
  ] as const),
  ...([
    ["\\x61", "a"],
    ["\\u0062", "b"],
    ["\\uD83D\\uDE00", "😀"],
    ["\\cI", "\t"],
    ["\\0", "\0"],
    ["\\1", ""]
  ] as const),
  ...([
    [".", "x"],
    ["\\d", "7"],
    ["\\w", "w"],
    ["\\s", " "],
    ["\\S", "x"],
    ["[^a]", "b"],
    ["[a-c]", "b"]
  ] as const),
  ...([
    ["[Tt]", "T"],
    ["[.]", "."],
    ["[\\]]", "]"],
    ["[ab]", "b"],
    ["[kS]", "s"],
    ["[\\b]", "\b"],
    ["[abcd]", "c"]
  ] as const),
  ...([
    ["\\b", ""],
    ["\\B", ""],
    ["^", ""],
    ["$", ""],
    ["(?=a)", ""],
    ["(?!a)", ""],
    ["(?<=a)", ""],
    ["(?<!ab)", ""]
  ] as const),
  ["(?=(ab|c))", ""],
  ["", ""]
]
const byUnit: ReadonlyArray<Spelled> = [
  ...([
    ["\\a", "a"],
    ["]", "]"],
    ["{", "{"],
    ["}", "}"],
    ["\\u{2}", "uu"],
    ["\\x4", "x4"],
    ["\\c!", "\\c!"],
    ["\\k", "k"]
  ] as const),
  ...([
    ["\\07", "\x07"],
    ["a{,2}", "a{,2}"],
    ["\\12", "\n"],
    ["\\8", "8"],
    ["\\p{2}", "pp"],
    ["[😀é]", "é"],
    ["[-a]", "-"]
  ] as const),
  ...([
    ["[\\d-]", "-"],
    ["[a\\-c]", "-"],
    ["[--a]", "A"],
    ["[\\c1]", "\x11"],
    ["\\k<a>", "k<a>"],
    ["\\uD83D[\\uDE00]", "😀"]
  ] as const)
]
const byPoint: ReadonlyArray<Spelled> = [
  ["\\u{1F600}", "😀"],
  ["\\u{61}", "a"],
  ["\\p{Lu}", "A"],
  ["\\P{Lu}", "b"]
]
const bySet: ReadonlyArray<Spelled> = [
  ["[[ab]--[b]]", "a"],
  ["[\\q{abc|d}]", "abc"],
  ["[[a]b]", "b"],
  ["[\\]\\[]", "["]
]
const spellings: Record<string, ReadonlyArray<Spelled>> = {
  "": [...everywhere, ...byUnit],
  i: [...everywhere, ...byUnit],
  u: [...everywhere, ...byPoint, ["[😀é]", "😀"]],
  iu: [...everywhere, ...byPoint, ["[😀é]", "😀"]],
  v: [...everywhere, ...byPoint, ...bySet],
  iv: [...everywhere, ...byPoint, ...bySet]
}
const quantifiers: ReadonlyArray<readonly [sign: string, least: number, most: number]> = [
  ["*", 0, 2],
  ["+", 1, 3],
  ["?", 0, 1],
  ["{0}", 0, 0],
  ["{1}", 1, 1],
  ["{2}", 2, 2],
  ["{3,}", 3, 4],
  ["{1,2}", 1, 2],
  ["{0,2}", 0, 2],
  ["{2,3}", 2, 3]
]

const oneOf = <A>(next: Next, all: ReadonlyArray<A>): A => all[next(all.length)]!

/** Builds a random expression and a generator of texts that are likely to match. */
const build = (next: Next, flags: string): Piece => {
  let names = 0
  const atom = (depth: number): Piece => {
    const kind = next(depth > 0 ? 10 : 7)
    if (kind < 7) {
      const [source, text] = oneOf(next, spellings[flags]!)
      return { source, sample: () => text }
    }
    const inner = either(depth - 1)
    const open = kind === 7 ? "(" : kind === 8 ? "(?:" : `(?<n${names++}>`
    return { source: `${open}${inner.source})`, sample: inner.sample }
  }
  const item = (depth: number): Piece => {
    const part = atom(depth)
    if (next(3) > 0 || part.source === "") return part
    const [sign, least, most] = oneOf(next, quantifiers)
    const lazy = next(4) === 1 ? "?" : ""
    const sample = (next: Next) => Array.from({ length: least + next(most - least + 1) }, () => part.sample(next)).join("")
    return { source: part.source + sign + lazy, sample }
  }
  const sequence = (depth: number): Piece => {
    const parts = Array.from({ length: 1 + next(5) }, () => item(depth))
    return {
      source: parts.map((part) => part.source).join(""),
      sample: (next) => parts.map((part) => part.sample(next)).join("")
    }
  }
  const either = (depth: number): Piece => {
    const parts = Array.from({ length: next(3) === 1 ? 2 + next(2) : 1 }, () => sequence(depth))
    return { source: parts.map((part) => part.source).join("|"), sample: (next) => oneOf(next, parts).sample(next) }
  }
  const whole = either(2)
  return next(6) === 1 ? { source: `(?<![A-Za-z0-9_])(?:${whole.source})(?![A-Za-z0-9_])`, sample: whole.sample } : whole
}

/** Changes the case of random letters, also to letters outside ASCII that fold to ASCII letters. */
const recased = (text: string, next: Next): string =>
  text.replace(/[a-z]/gi, (letter) => {
    const kind = next(6)
    if (kind === 0 && /k/i.test(letter)) return "\u212a"
    if (kind === 0 && /s/i.test(letter)) return "\u017f"
    return kind < 3 ? letter.toUpperCase() : kind < 5 ? letter.toLowerCase() : letter
  })

const compiled = (source: string, flags: string): RegExp | undefined => {
  try {
    return new RegExp(source, `${flags}s`)
  } catch {
    return undefined
  }
}

const choices = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5039 }))), {
  minLength: 40,
  maxLength: 160
})
const draw = (numbers: ReadonlyArray<number>): Next => {
  let at = 0
  return (below) => (at < numbers.length ? numbers[at++]! % below : 0)
}

describe("findNeedles", () => {
  for (const [source, flags, texts] of table) {
    it(`returns the required texts of /${source.slice(0, 60)}/${flags}`, () => {
      const fold = flags.includes("i")
      void new RegExp(source, flags)
      assert.deepStrictEqual(findNeedles(source, flags, undefined), texts === undefined ? undefined : { texts, fold })
    })
  }

  it("returns a literal pattern as its own text", () => {
    const of = (literal: string) => findNeedles("unused", "s", literal)
    assert.deepStrictEqual(of("a.b*"), { texts: ["a.b*"], fold: false })
    assert.deepStrictEqual(of("foo\nlonger"), { texts: ["longer"], fold: false })
    assert.deepStrictEqual(of("x".repeat(300)), { texts: ["x".repeat(64)], fold: false })
    for (const useless of [" ", "e", "7", "\n", "\ufffd", "\ufeff"]) assert.isUndefined(of(useless))
    assert.deepStrictEqual(of("{"), { texts: ["{"], fold: false })
  })

  it("returns nothing for an expression of more than 10,000 characters", () => {
    assert.deepStrictEqual(findNeedles("x".repeat(10_000), "s", undefined)?.texts, ["x".repeat(64)])
    assert.isUndefined(findNeedles("x".repeat(10_001), "s", undefined))
  })

  it("accepts the output of compile for every option", () => {
    const of = (pattern: string | RegExp, options: Parameters<typeof compile>[1]) => {
      const made = compile(pattern, options, standard)
      if (isFault(made)) throw new Error("does not compile")
      return findNeedles(made.source, made.flags, made.literal)
    }
    assert.deepStrictEqual(of("needle", {}), { texts: ["needle"], fold: false })
    assert.deepStrictEqual(of("a.b(c)", { literal: true }), { texts: ["a.b(c)"], fold: false })
    assert.deepStrictEqual(of("a.b(c)", { literal: true, wholeWord: true }), { texts: ["a.b(c)"], fold: false })
    assert.deepStrictEqual(of("Needle", { ignoreCase: true, wholeWord: true }), { texts: ["needle"], fold: true })
    assert.deepStrictEqual(of("(?i)Needle", {}), { texts: ["needle"], fold: true })
    assert.deepStrictEqual(of("^fo.*bar$", { multiline: true }), { texts: ["bar"], fold: false })
    assert.deepStrictEqual(of("\\Afoo\\Z|(?P<a>bar)(?P=a)", {}), { texts: ["foo", "bar"], fold: false })
    assert.deepStrictEqual(of(/foo[\p{L}--[a-z]]/v, {}), { texts: ["foo"], fold: false })
  })

  for (const flags of ["i", "iu", "iv"]) {
    it(`with flags "${flags}" uses only characters whose case variants are all in ASCII`, () => {
      const every = Array.from({ length: 0x110000 }, (_, point) => String.fromCodePoint(point)).join("")
      const units = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit)).join("")
      const unusable: Array<string> = []
      for (let code = 0; code < 128; code++) {
        const one = String.fromCharCode(code)
        const source = one.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&")
        if (findNeedles(`${source}${source}`, flags, undefined) === undefined) unusable.push(one)
        else {
          const matched = (flags === "i" ? units : every).match(new RegExp(source, `${flags}g`)) ?? []
          assert.deepStrictEqual([...new Set(matched.map(lower))], [lower(one)])
        }
      }
      assert.deepStrictEqual(unusable, flags === "i" ? ["\n", "\r"] : ["\n", "\r", "K", "S", "k", "s"])
    })
  }

  for (const flags of Object.keys(spellings)) {
    it.effect(`returns texts of which every match contains at least one, with flags "${flags}"`, () =>
      Effect.gen(function* () {
        let said = 0
        let folded = 0
        const result = yield* Arbitrary.checkEffect(
          choices,
          (numbers) => {
            const next = draw(numbers)
            const { sample, source } = build(next, flags)
            const regex = compiled(source, flags)
            const needles = regex === undefined ? undefined : findNeedles(source, flags, undefined)
            if (regex === undefined || needles === undefined) return true
            return Array.from({ length: 12 }, (_, round) => {
              const middle = flags.includes("i") && round > 0 ? recased(sample(next), next) : sample(next)
              const [before, after] = [oneOf(next, ["", " ", "a", "ab", "\u{1F600}"]), oneOf(next, ["", " ", "b", "a", "foo"])]
              const match = regex.exec(round % 3 === 0 ? middle : before + middle + after)
              if (match === null) return true
              said++
              if (match[0] !== lower(match[0])) folded++
              return needles.texts.some((text) => holds(match[0], text, needles.fold))
            }).every(Boolean)
          },
          { runs: runs(2500) }
        )
        assert.isUndefined(Arbitrary.formatCheckFailure(result))
        // Without matches the property would hold vacuously.
        assert.isAbove(said, runs(1500))
        assert.isAbove(folded, runs(300))
      })
    )
  }

  it.prop(
    "returns valid search texts of at most 64 bytes",
    [choices, Schema.Literals(Object.keys(spellings))],
    ([numbers, flags]) => {
      const { source } = build(draw(numbers), flags)
      const needles = compiled(source, flags) === undefined ? undefined : findNeedles(source, flags, undefined)
      if (needles === undefined) return
      assert.isTrue(needles.texts.length >= 1 && needles.texts.length <= 16)
      assert.strictEqual(needles.fold, flags.includes("i"))
      for (const text of needles.texts) {
        const bytes = Buffer.from(text)
        assert.isTrue(bytes.length >= 1 && bytes.length <= 64)
        assert.strictEqual(bytes.toString(), text)
        assert.notMatch(text, /[\r\n\uFEFF\uFFFD]/)
        if (needles.fold) assert.match(text, /^[\0-\x7F]*$/)
      }
    }
  )
})
