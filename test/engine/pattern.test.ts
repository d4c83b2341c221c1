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
  // The meaning in Python and ripgrep, on one line.
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
    it(`matches ${String(pattern)} on ${JSON.stringify(line)} ${JSON.stringify(options ?? {})} as ${JSON.stringify(match)}`, () => {
      assert.strictEqual(matches(pattern, line, options), match)
    })
  }

  it("reports the position of the whole word", () => {
    const compiled = compile("foo", { wholeWord: true }) as Pattern.Pattern
    assert.strictEqual(new RegExp(compiled.source, compiled.flags).exec("food foo")!.index, 5)
  })

  for (const [name, pattern, options] of [
    ["an empty pattern", "", {}],
    ["an empty literal", "", { literal: true }],
    ["white space", " \t", {}],
    ["an open group", "(", {}],
    ["an open class", "[a", {}],
    ["a lone quantifier", "*", {}],
    ["parentheses that only wholeWord would balance", "a)|(b", { wholeWord: true }],
    ["a lone surrogate", "a\ud800", {}],
    ["1,001 characters", "a".repeat(1001), {}],
    ["a RegExp as a literal", /a/, { literal: true }],
    ["a number", 1 as unknown as string, {}],
    ["undefined", undefined as unknown as string, {}]
  ] as ReadonlyArray<readonly [string, string | RegExp, Pattern.PatternOptions]>) {
    it(`rejects ${name}`, () => {
      const compiled = compile(pattern, options)
      assert.deepInclude(compiled, { _tag: "InvalidArgument", argument: "pattern" })
    })
  }

  it("accepts a thousand characters", () => assert.notProperty(compile("a".repeat(1000)), "_tag"))

  it("ends lines only at LF and CRLF with multiline", () => {
    const found = (pattern: string, text: string) => {
      const { flags, source } = compile(pattern, { multiline: true }) as Pattern.Pattern
      return [...text.matchAll(new RegExp(source, `${flags}g`))].map((match) => match[0])
    }
    assert.deepStrictEqual(found("^.+$", "a\rb\r\nc\u2028d\ne"), ["a\rb", "c\u2028d", "e"])
    assert.deepStrictEqual(found("(?s)a.+c", "a\nb\nc"), ["a\nb\nc"])
    assert.deepStrictEqual(found("b$\\s^c", "b\nc b c"), ["b\nc"])
    assert.deepStrictEqual(found("\\Aa|c\\Z", "a\na\nc\nc"), ["a", "c"])
  })

  it("estimates the steps of simple expressions, and reports hostile expressions as unbounded", () => {
    const steps = (pattern: string | RegExp) => (compile(pattern) as Pattern.Pattern).steps(100)
    for (const harmless of ["abc", "a.c", "[a-z]x", "foo|bar|baz", "^import", "(abc)", "a+b"]) {
      assert.isBelow(steps(harmless), 1e6, harmless)
    }
    for (const hostile of ["^(a+)+$", "(a|a)(a|a)b", "(a*)*b", "(.)\\1", "(?=a+)b", "(?<!a+)b", "(a{2,9}){2,9}", "((a))+"]) {
      assert.strictEqual(steps(hostile), Number.POSITIVE_INFINITY, hostile)
    }
    // Each further quantifier multiplies by the length of the line.
    assert.isAbove(steps("a*b*c*d*e*"), 1e9)
  })

  // Node 24 takes 60 ms for the longest accepted expression and minutes for the shortest rejected one. No worker can be
  // terminated during compilation.
  it("rejects expressions that V8 would take hours to compile, and accepts similar harmless expressions", () => {
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
      // A literal pattern is harmless.
      assert.notProperty(compile(refused, { literal: true }), "_tag", refused)
    }
    assert.notProperty(compile(/^(?:\d{3}-)?\d{3}[ .]?\d{2}(?: ext\.? ?\d{1,5})?(?:\s*;\s*\w*=?"?[^"]*"?)?$/), "_tag")
  })
})
