import { assert, describe, it } from "@effect/vitest"
import * as Pattern from "../../src/engine/pattern.ts"
import * as Limits from "../../src/model/Limits.ts"

const compile = (pattern: string | RegExp, options: Pattern.PatternOptions = {}) =>
  Pattern.compile(pattern, options, Limits.standard)

const matches = (pattern: string | RegExp, line: string, options: Pattern.PatternOptions = {}): string | null => {
  const compiled = compile(pattern, options)
  if ("_tag" in compiled) throw new Error(String(compiled["detail"]))
  return new RegExp(compiled.source, compiled.flags).exec(line)?.[0] ?? null
}

describe("Pattern.compile", () => {
  // What Python and ripgrep mean by these, on one line (C-20).
  const rows: ReadonlyArray<
    readonly [pattern: string | RegExp, line: string, match: string | null, options?: Pattern.PatternOptions]
  > = [
    ["a.c", "xabcx", "abc"],
    ["a.c", "a\rc", "a\rc"],
    ["a.c", "a\u2028c", "a\u2028c"],
    ["^b", "a\rb", null],
    ["a$", "a\rb", null],
    ["(?i)ABC", "xabc", "abc"],
    ["(?im)ABC", "xabc", "abc"],
    ["abc", "ABC", null],
    ["abc", "ABC", "ABC", { ignoreCase: true }],
    ["(?P<q>['\"]).*(?P=q)", "say 'it' now", "'it'"],
    ["\\Aab", "ab", "ab"],
    ["\\Aab", "xab", null],
    ["ab\\Z", "xab", "ab"],
    ["ab\\Z", "abx", null],
    ["\\\\A", "\\A", "\\A"],
    ["[\\A^$.]", "x.", "."],
    ["\\p{Lu}", "aÉ", "É"],
    ["\\u{1F600}", "a😀", "😀"],
    ["\\\\p{Lu}", "\\p{Lu}", "\\p{Lu}"],
    ["\\-", "a-b", "-"],
    [/ab/i, "xAB", "AB"],
    [/^b/m, "a\rb", null],
    [/./g, "ab", "a"],
    ["a.c", "abc", null, { literal: true }],
    ["a.c", "xa.c", "a.c", { literal: true }],
    ["$^*(", "x$^*(y", "$^*(", { literal: true }],
    ["  ", "a  b", "  ", { literal: true }],
    ["A.C", "xa.c", "a.c", { literal: true, ignoreCase: true }],
    ["foo", "food foo", "foo", { wholeWord: true }],
    ["foo", "food", null, { wholeWord: true }],
    ["foo|bar", "foods bar", "bar", { wholeWord: true }],
    ["-foo", "a -foo b", "-foo", { wholeWord: true }],
    ["foo", "x_foo", null, { wholeWord: true }]
  ]
  for (const [pattern, line, match, options] of rows) {
    it(`${String(pattern)} on ${JSON.stringify(line)} ${JSON.stringify(options ?? {})} is ${JSON.stringify(match)}`, () => {
      assert.strictEqual(matches(pattern, line, options), match)
    })
  }

  it("says of a word where it stands, not only that it does", () => {
    const compiled = compile("foo", { wholeWord: true }) as Pattern.Pattern
    assert.strictEqual(new RegExp(compiled.source, compiled.flags).exec("food foo")!.index, 5)
  })

  for (const [name, pattern, options] of [
    ["nothing", "", {}],
    ["nothing, literally", "", { literal: true }],
    ["white space", " \t", {}],
    ["an open group", "(", {}],
    ["an open class", "[a", {}],
    ["a lone quantifier", "*", {}],
    ["what only whole-word parentheses would balance", "a)|(b", { wholeWord: true }],
    ["a lone surrogate", "a\ud800", {}],
    ["1,001 characters", "a".repeat(1001), {}],
    ["a RegExp, literally", /a/, { literal: true }],
    ["a number", 1 as unknown as string, {}],
    ["nothing at all", undefined as unknown as string, {}]
  ] as ReadonlyArray<readonly [string, string | RegExp, Pattern.PatternOptions]>) {
    it(`refuses ${name}`, () => {
      const compiled = compile(pattern, options)
      assert.deepInclude(compiled, { _tag: "InvalidArgument", argument: "pattern" })
    })
  }

  it("a thousand characters are not too many", () => assert.notProperty(compile("a".repeat(1000)), "_tag"))

  it("multiline knows no line ending but LF and CRLF", () => {
    const found = (pattern: string, text: string) => {
      const { flags, source } = compile(pattern, { multiline: true }) as Pattern.Pattern
      return [...text.matchAll(new RegExp(source, `${flags}g`))].map((match) => match[0])
    }
    assert.deepStrictEqual(found("^.+$", "a\rb\r\nc\u2028d\ne"), ["a\rb", "c\u2028d", "e"])
    assert.deepStrictEqual(found("(?s)a.+c", "a\nb\nc"), ["a\nb\nc"])
    assert.deepStrictEqual(found("b$\\s^c", "b\nc b c"), ["b\nc"])
    assert.deepStrictEqual(found("\\Aa|c\\Z", "a\na\nc\nc"), ["a", "c"])
  })

  it("knows which expressions cannot run away, and promises nothing for the others", () => {
    const steps = (pattern: string | RegExp) => (compile(pattern) as Pattern.Pattern).steps(100)
    for (const harmless of ["abc", "a.c", "[a-z]x", "foo|bar|baz", "^import", "(abc)", "a+b"]) {
      assert.isBelow(steps(harmless), 1e6, harmless)
    }
    for (const hostile of ["^(a+)+$", "(a|a)(a|a)b", "(a*)*b", "(.)\\1", "(?=a+)b", "(?<!a+)b", "(a{2,9}){2,9}", "((a))+"]) {
      assert.strictEqual(steps(hostile), Number.POSITIVE_INFINITY, hostile)
    }
    // Each quantifier more multiplies by the length of the line.
    assert.isAbove(steps("a*b*c*d*e*"), 1e9)
  })

  // V8 24.21 takes 60 ms for the longest of the first and minutes for the shortest of the second, in which no worker can be ended.
  it("refuses what V8 would take hours to compile, and nothing like it", () => {
    const rows: ReadonlyArray<readonly [accepted: string, refused: string]> = [
      ["a?".repeat(24) + "a".repeat(24), "a?".repeat(40) + "a".repeat(40)],
      ["[ab]?".repeat(20) + "c", "[ab]?".repeat(40) + "c".repeat(40)],
      ["(?:a|b|)".repeat(20), "(?:a|b|)".repeat(40) + "c"],
      ["a{0,2}".repeat(20), "a{0,2}".repeat(40)],
      ["a?b".repeat(300), "(?:a?)".repeat(100)],
      ["(?:ab)?c".repeat(100), "(a)?".repeat(100)],
      ["\\s*\\w*".repeat(80), "\\s?\\w?".repeat(80)]
    ]
    for (const [accepted, refused] of rows) {
      assert.notProperty(compile(accepted), "_tag", accepted)
      assert.deepInclude(compile(refused), { _tag: "InvalidArgument", argument: "pattern" }, refused)
      // As text they are harmless.
      assert.notProperty(compile(refused, { literal: true }), "_tag", refused)
    }
    assert.notProperty(compile(/^(?:\d{3}-)?\d{3}[ .]?\d{2}(?: ext\.? ?\d{1,5})?(?:\s*;\s*\w*=?"?[^"]*"?)?$/), "_tag")
  })
})
