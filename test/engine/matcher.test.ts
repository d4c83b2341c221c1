import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import picomatch from "picomatch"
import { compile, type CompileOptions, type Matcher, test } from "../../src/engine/matcher.ts"
import { is as isFault } from "../../src/model/Fault.ts"
import { type PlanContext } from "../../src/engine/options.ts"
import { standard, unlimited } from "../../src/model/Limits.ts"
import { alternatives } from "./alternatives.ts"
import { runs } from "../runs.ts"

const sensitive: PlanContext = { limits: standard, caseSensitive: true }
const insensitive: PlanContext = { limits: standard, caseSensitive: false }

const make = (
  patterns: string | ReadonlyArray<string>,
  options: Partial<CompileOptions> = {},
  context: PlanContext = sensitive
): Matcher => {
  const matcher = compile(typeof patterns === "string" ? [patterns] : patterns, { argument: "pattern", ...options }, context)
  if (isFault(matcher)) throw new Error(`${JSON.stringify(patterns)}: ${String(matcher["detail"])}`)
  return matcher
}
const refused = (pattern: unknown, options: Partial<CompileOptions> = {}, context: PlanContext = sensitive) => {
  const matcher = compile([pattern as string], { argument: "pattern", ...options }, context)
  assert.isTrue(isFault(matcher), `${JSON.stringify(pattern)} should be refused`)
  return matcher as unknown as { readonly _tag: string; readonly argument: string; readonly detail: string }
}
const found = (matcher: Matcher, paths: ReadonlyArray<string>): ReadonlyArray<string> =>
  paths.filter((path) => test(matcher, path))

/** Returns the specified meaning: picomatch on the relative path, or on the name if the pattern has no slash. */
const meaning = (pattern: string, caseSensitive: boolean): ((path: string) => boolean) => {
  // picomatch reads a dot after a range as any character.
  const text = pattern
    .replace(/(?<!\\)\{(\w)\.\.(\w)\}/g, "[$1-$2]")
    .replace(/^(?:\.?\/)+/, "")
    .replace(/\/$/, "")
  const anchored = text.includes("/") || /^\.?\//.test(pattern)
  const matches = picomatch(text, {
    dot: true,
    posix: true,
    regex: false,
    nonegate: true,
    strictSlashes: true,
    nocase: !caseSensitive
  })
  return (path) => matches(anchored ? path : path.slice(path.lastIndexOf("/") + 1))
}

/** Returns the union of the alternatives, for braces that contain `**`. */
const oracle = (pattern: string, caseSensitive: boolean): ((path: string) => boolean) => {
  const each = alternatives(pattern).filter((text) => !/^(?:\.?\/)*$/.test(text))
  const all = each.map((text) => meaning(text, caseSensitive))
  return (path) => path === pattern || all.some((matches) => matches(path))
}

const join = (parts: ReadonlyArray<string>, separator: string, minLength: number, maxLength: number) =>
  Arbitrary.map(Arbitrary.array(Arbitrary.schema(Schema.Literals(parts)), { minLength, maxLength }), (all) =>
    all.join(separator)
  )

const common = (
  "a b c . / / * ** **/ /** ? [ab] [a-c] [!a] [^b] *. .a \\* \\. \\[ - ! é A # ~ _ $ ^ + @ , ] } " +
  "{a,b} {a,b/c} {,a} {a/**,b} {a,*} [.] [-a] {1..3}"
)
  .split(" ")
  .concat(" ")
const rare = (
  "a b / / * ** **/ /** ? [ab] *. .a !(a) !(a*) !(*.b) @(a|b) ?(a) +(a) *(a) +(a|b) *(a|ab) (a|b) ) | " +
  '" [[:alpha:]] [[:digit:]a] [\\]] [a/b] \\\\ $$ ++ !(a/b) @(a/**|b) !(!(a)) {a,**/b}'
).split(" ")
const names = [
  "a",
  "b",
  "c",
  "ab",
  "abc",
  ".a",
  "a.b",
  "A",
  "[ab]",
  "a b",
  "é",
  "1",
  "{a,b}",
  "*",
  "a.",
  "-",
  "!a",
  "..a",
  "a+"
]

const agrees = (parts: ReadonlyArray<string>, count: number) =>
  [
    {
      pattern: join(parts, "", 1, 6),
      paths: Arbitrary.array(join(names, "/", 1, 4), { minLength: 8, maxLength: 8 }),
      caseSensitive: Schema.Boolean
    },
    ({ caseSensitive, paths, pattern }: { pattern: string; paths: Array<string>; caseSensitive: boolean }) => {
      const matcher = compile([pattern], { argument: "pattern" }, { limits: standard, caseSensitive })
      if (isFault(matcher)) return
      const expected = oracle(pattern, caseSensitive)
      for (const path of paths) assert.strictEqual(test(matcher, path, true), expected(path), `${pattern} on ${path}`)
    },
    { arbitrary: { runs: count } }
  ] as const

describe("the matcher:", () => {
  const [commonInput, commonBody, commonRuns] = agrees(common, runs(6000))
  it.prop("common patterns have the same meaning as in picomatch", commonInput, commonBody, commonRuns)
  const [rareInput, rareBody, rareRuns] = agrees(rare, runs(4000))
  it.prop("rare patterns have the same meaning as in picomatch", rareInput, rareBody, rareRuns)

  // Patterns for which matching by segments would differ from picomatch without special cases.
  const corners = (
    "a/**/{a,*} a/**/{b,} */**/{,b}* **/{a,*} {a/**,b}/c {a/**,b}} {a/**,b}, x{a/**,b} {**/b,a} {**,b}/c a{b/**} x**{a,b} " +
    "**.js *.* **/*.* *.*.js a++b c+++ a$$b ***. ***/a a/*** {1..3}a.b [!-[-a] [+-9] a[+-9]b a[/]b a|b/c {a.*,b} {a*,b}/**/* {.*,b}"
  ).split(" ")
  const around = "a b c x ab a/b a/c b/c a/b/c xa/b x/a.js a.js a. a.b c+ c+++ a+b a++b a$$b 1aXb 2a.b a[/]b a|b ] + } b} a/b}"
  it("corner cases of picomatch have the same meaning as in picomatch", () => {
    for (const pattern of [...corners, ...corners.map((corner) => `/${corner}`)]) {
      const matcher = make(pattern)
      const expected = oracle(pattern, true)
      for (const path of around.split(" ")) {
        assert.strictEqual(test(matcher, path, true), expected(path), `${pattern} on ${path}`)
      }
    }
  })

  const tree = [
    "a.ts",
    "b.js",
    ".env",
    "src/a.ts",
    "src/b.tsx",
    "src/deep/c.ts",
    "src/deep/.hidden",
    "test/a.ts",
    "s/t/c.py",
    "s/c.py"
  ]
  const rows: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ["*.ts", ["a.ts", "src/a.ts", "src/deep/c.ts", "test/a.ts"]],
    ["/*.ts", ["a.ts"]],
    ["./*.ts", ["a.ts"]],
    ["src/*.ts", ["src/a.ts"]],
    ["s/*.py", ["s/c.py"]],
    ["**/*.py", ["s/t/c.py", "s/c.py"]],
    ["src/**", ["src/a.ts", "src/b.tsx", "src/deep/c.ts", "src/deep/.hidden"]],
    ["**", tree],
    ["*", tree],
    ["src/**/*.{ts,tsx}", ["src/a.ts", "src/b.tsx", "src/deep/c.ts"]],
    ["{src,test}/**/a.ts", ["src/a.ts", "test/a.ts"]],
    [".*", [".env", "src/deep/.hidden"]],
    ["[a-b].*", ["a.ts", "b.js", "src/a.ts", "src/b.tsx", "test/a.ts"]],
    ["**/!(a).ts", ["src/deep/c.ts"]],
    ["src/@(a|b).ts?(x)", ["src/a.ts", "src/b.tsx"]],
    ["src", []],
    ["src/deep", []],
    ["SRC/*", []]
  ]
  for (const [pattern, expected] of rows) {
    it(`${pattern} matches ${expected.join(", ") || "no path"}`, () =>
      assert.deepStrictEqual(found(make(pattern), tree), expected))
  }

  it("a list of patterns is a union, in which ! does not negate", () => {
    assert.deepStrictEqual(found(make(["*.js", "s/*.py"]), tree), ["b.js", "s/c.py"])
    assert.deepStrictEqual(found(make(["!a.ts"]), [...tree, "!a.ts"]), ["!a.ts"])
  })

  it("a trailing slash matches directories only, and does not anchor the pattern", () => {
    const matcher = make("deep/")
    assert.isTrue(test(matcher, "src/deep", true))
    assert.isFalse(test(matcher, "src/deep", false))
    assert.isFalse(test(make("/deep/"), "src/deep", true))
    assert.isFalse(test(make("**/!(deep)/"), "src/deep", true))
  })

  it("names with U+2028 match, although picomatch reads it as a line end", () => {
    for (const pattern of ["**", "**/*.ts", "a\u2028b/**", "**/@(c).ts"]) {
      assert.isTrue(test(make(pattern), "a\u2028b/c.ts"), pattern)
    }
  })

  it("patterns ignore case if the backend ignores case", () => {
    assert.isTrue(test(make("SRC/*.TS", {}, insensitive), "src/a.ts"))
    assert.isTrue(test(make("[A-C]*/É", {}, insensitive), "bx/é"))
    assert.isTrue(test(make("@(SRC)/*", {}, insensitive), "src/a"))
    assert.isFalse(test(make("SRC/*.TS"), "src/a.ts"))
  })

  describe("the check of a pattern", () => {
    const cases: ReadonlyArray<readonly [unknown, RegExp]> = [
      ["", /blank/],
      ["   ", /blank/],
      ["/", /blank/],
      ["./", /blank/],
      [7, /not a string/],
      ["a\0b", /NUL/],
      ["a\ud800", /lone surrogate/],
      ["a[b", /"\[" is not closed/],
      ["[]", /"\[" is not closed/],
      ["{a,b", /"\{" is not closed/],
      ["@(a|b", /"\(" is not closed/],
      ["a\\", /ends with a backslash/],
      ["[z-a]", /runs backwards/],
      ['a"b', /quotation mark is not closed/],
      ["\\\\\\\\", /backslashes in a row/],
      ["{1..5000}", /range .* more than 1024/],
      ["{1..40}{1..40}", /more than 1024/],
      ["{1..9..}", /range/],
      ["{a..5}", /range/],
      ["{1..99999999999999999999}", /range/],
      ["{1..100000}", /range/],
      ["../a", /"\.\." segment/],
      ["a/..", /"\.\." segment/],
      ["a/../b", /"\.\." segment/],
      ["\\.\\./a", /"\.\." segment/],
      ["a/.{.,x}/b", /"\.\." segment/],
      ["{.,x}{.,y}/b", /"\.\." segment/],
      ["@(..|x)/b", /"\.\." segment/],
      ['".."/b', /"\.\." segment/],
      ["{..,x}/b", /range/],
      ["{a,b}".repeat(11), /more than 1024/],
      [`+(a)${"{a,b}".repeat(11)}`, /more than 1024/],
      ["a".repeat(1001), /more than 1000 characters/],
      ["(?<=a)b", /globs do not have/],
      ["a(?<n>b)", /globs do not have/]
    ]
    for (const [pattern, detail] of cases) {
      it(`rejects ${JSON.stringify(pattern)?.slice(0, 40)} with the reason`, () => {
        const fault = refused(pattern)
        assert.strictEqual(fault._tag, "InvalidArgument")
        assert.strictEqual(fault.argument, "pattern")
        assert.match(fault.detail, detail)
      })
    }

    it("names the parameter in the error", () => {
      assert.strictEqual(refused("[", { argument: "exclude", rules: true }).argument, "exclude")
    })

    it("counts characters against the limit, which the caller can raise", () => {
      assert.isFalse(isFault(compile(["😀".repeat(1000)], { argument: "pattern" }, sensitive)))
      assert.isFalse(isFault(compile(["a".repeat(5000)], { argument: "pattern" }, { ...sensitive, limits: unlimited })))
    })

    it("accepts unmatched closing characters, and ten pairs of alternatives", () => {
      assert.isTrue(test(make("a]b}c"), "a]b}c"))
      assert.isTrue(test(make("{a,b}".repeat(10)), "abababbaba"))
      assert.isTrue(test(make("{a}"), "{a}"))
    })
  })

  describe("a hostile pattern is matched in bounded time:", () => {
    // picomatch needs minutes or more for each of these. The test asserts that matching ends at all.
    const cases: ReadonlyArray<readonly [string, string, boolean]> = [
      [`${"*a".repeat(20)}*b`, "a".repeat(60), false],
      [`${"*a".repeat(100)}*`, "a".repeat(255), true],
      [`${"**/a/".repeat(100)}b`, `${"a/".repeat(1000)}c`, false],
      ["+(ab|abab)", `${"ab".repeat(60)}c`, false],
      ["+(a|aa)+(a|aa)", `${"a".repeat(250)}b`, false],
      ["?(a)".repeat(200), `${"a".repeat(200)}b`, false],
      ["*(*(*(a|b)))c", "a".repeat(255), false],
      ["!(*a*a*a*a)".repeat(20), "a".repeat(255), false],
      ["**/!(**/a)/**/!(**/b)", `${"a/".repeat(1000)}c`, true]
    ]
    for (const [pattern, path, expected] of cases) {
      it(pattern.slice(0, 30), () => assert.strictEqual(test(make(pattern), path), expected))
    }
  })

  describe("a walk skips directories in which nothing can match", () => {
    const enters = (pattern: string | ReadonlyArray<string>, path: string, options: Partial<CompileOptions> = {}): boolean => {
      const matcher = make(pattern, options)
      let state: Matcher["start"] | undefined = matcher.start
      for (const name of path.split("/")) state = state && matcher.below(state, name)
      return state !== undefined
    }
    it("outside a fixed prefix", () => {
      assert.isTrue(enters("src/**", "src/deep"))
      assert.isFalse(enters("src/**", "docs"))
      assert.isFalse(enters("{src,test}/*.ts", "docs"))
      assert.isFalse(enters("src/@(a|b)/*.ts", "docs"))
      assert.isTrue(enters("src/@(a|b)/*.ts", "src/a"))
    })
    it("below the last segment", () => {
      assert.isTrue(enters("*/*.ts", "a"))
      assert.isFalse(enters("*/*.ts", "a/b"))
      assert.isFalse(enters("/*.ts", "a"))
    })
    it("but not if a name may match at any depth", () => {
      assert.isTrue(enters("*.ts", "a/b/c"))
      assert.isTrue(enters("!(a).ts", "a/b/c"))
    })
    it("outside the literal prefix of an fnmatch pattern", () => {
      assert.isTrue(enters("src/*.py", "src/deep", { dialect: "fnmatch" }))
      assert.isFalse(enters("src/*.py", "docs", { dialect: "fnmatch" }))
    })
  })

  describe("exclude rules", () => {
    const excluded = (patterns: ReadonlyArray<string>, paths: ReadonlyArray<string>) =>
      found(make(patterns, { argument: "exclude", rules: true }), paths)

    it("follow the last matching pattern, and ! re-includes", () => {
      const paths = ["a.log", "keep.log", "b.txt"]
      assert.deepStrictEqual(excluded(["*.log", "!keep.log"], paths), ["a.log"])
      assert.deepStrictEqual(excluded(["!keep.log", "*.log"], paths), ["a.log", "keep.log"])
      assert.deepStrictEqual(excluded(["*.log", "!@(keep).log", "keep.*"], paths), ["a.log", "keep.log"])
    })
    it("read !( as an extglob and \\! as the character", () => {
      assert.deepStrictEqual(excluded(["!(a).log"], ["a.log", "b.log"]), ["b.log"])
      assert.deepStrictEqual(excluded(["\\!a"], ["!a", "a"]), ["!a"])
    })
  })

  describe("fnmatch", () => {
    // The results of Python's fnmatch.fnmatchcase.
    const cases: ReadonlyArray<readonly [string, string, boolean]> = [
      ["*.py", "a/b/c.py", true],
      ["a*c", "a/b/c", true],
      ["a?b", "a/b", true],
      ["a/*", "a", false],
      ["[!a]*", "b/c", true],
      ["[!a]*", "a/c", false],
      ["[]a]", "]", true],
      ["[^a]", "^", true],
      ["[^a]", "b", false],
      ["{a,b}", "a", false],
      ["{a,b}", "{a,b}", true],
      ["\\*", "\\x", true],
      ["[*]", "*", true],
      ["[*]", "a", false],
      ["src/*", "SRC/a", false]
    ]
    for (const [pattern, path, expected] of cases) {
      it(`${expected ? "matches" : "does not match"} ${path} with the pattern ${pattern}`, () =>
        assert.strictEqual(test(make(pattern, { dialect: "fnmatch" }), path), expected))
    }
    it('rejects an unclosed bracket, a ".." segment and a blank pattern', () => {
      assert.match(refused("a[b", { dialect: "fnmatch" }).detail, /not closed/)
      assert.match(refused("../*", { dialect: "fnmatch" }).detail, /"\.\." segment/)
      assert.match(refused(" ", { dialect: "fnmatch" }).detail, /blank/)
    })
    it("ignores case if the backend ignores case", () => {
      assert.isTrue(test(make("SRC/[A-C]*", { dialect: "fnmatch" }, insensitive), "src/b"))
    })
  })
})
