import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { execFileSync, spawnSync } from "node:child_process"
import { compile, type CompileOptions, type Matcher, test } from "../../src/engine/matcher.ts"
import { is as isFault } from "../../src/model/Fault.ts"
import { standard, unlimited } from "../../src/model/Limits.ts"
import { alternatives } from "./alternatives.ts"

const compiled = (patterns: ReadonlyArray<string>, options: Partial<CompileOptions> = {}) =>
  compile(patterns, { argument: "pattern", ...options }, { limits: standard, caseSensitive: true })

const make = (patterns: string | ReadonlyArray<string>, options: Partial<CompileOptions> = {}): Matcher => {
  const matcher = compiled(typeof patterns === "string" ? [patterns] : patterns, options)
  if (isFault(matcher)) throw new Error(`${JSON.stringify(patterns)}: ${String(matcher["detail"])}`)
  return matcher
}

const found = (pattern: string, paths: string): string =>
  paths
    .split(" ")
    .filter((path) => test(make(pattern), path.replace(/\/$/, ""), path.endsWith("/")))
    .join(" ")

describe("braces that contain ** stand for each of their alternatives:", () => {
  const tree = "a b .env k.pem a.ts d/a d/b d/.env d/k.pem d/e/a d/e/b d/e/.env src/a.ts src/d/b.ts"
  const rows: ReadonlyArray<readonly [pattern: string, expected: string]> = [
    ["{**/.env*,**/*.pem}", ".env k.pem d/.env d/k.pem d/e/.env"],
    ["{**/a,**/b}", "a b d/a d/b d/e/a d/e/b"],
    ["{**/a,d/b}", "a d/a d/b d/e/a"],
    ["{**/{a,b},k.pem}", "a b k.pem d/a d/b d/k.pem d/e/a d/e/b"],
    ["{{**/a,x},{y,z}}", "a d/a d/e/a"],
    ["d/{**/a,b}", "d/a d/b d/e/a"],
    ["src/{**/a,b}.ts", "src/a.ts"],
    ["src/{**/a,**/b}.ts", "src/a.ts src/d/b.ts"],
    ["{src,d}/{**/a,b}*", "d/a d/b d/e/a src/a.ts"],
    ["{**/e,x}/a", "d/e/a"],
    ["{d/**,a}", "a d/a d/b d/.env d/k.pem d/e/a d/e/b d/e/.env"],
    ["{**,x}", tree],
    // Each alternative has its own anchoring: without a slash it matches at any depth, and a leading slash anchors it.
    ["{*.ts,d/**/b}", "a.ts d/b d/e/b src/a.ts src/d/b.ts"],
    ["{/*.ts,d/**/b}", "a.ts d/b d/e/b"],
    ["{./a,**/k.pem}", "a k.pem d/k.pem"],
    // Without ** the braces are part of one pattern.
    ["{*.ts,d/b}", "a.ts d/b"],
    // An alternative that no path can match is dropped.
    ["{**/a,}", "a d/a d/e/a"],
    // Groups of alternatives behave like braces.
    ["@(**/a|**/b)", "a b d/a d/b d/e/a d/e/b"],
    ["(**/a|k.pem)", "a k.pem d/a d/k.pem d/e/a"],
    ["?(**/e/)a", "a d/a d/e/a"]
  ]
  for (const [pattern, expected] of rows) {
    it(`${pattern} matches the paths that its alternatives match`, () => assert.strictEqual(found(pattern, tree), expected))
  }

  it("a trailing slash after an alternative or after the braces matches directories only", () => {
    assert.strictEqual(found("{**/a,b}/", "a a/ x/a/ b b/ x/b/"), "a/ x/a/ b/ x/b/")
    assert.strictEqual(found("{**/a/,b}", "a a/ x/a/ b b/ x/b"), "a/ x/a/ b b/ x/b")
  })

  it("escaped, quoted and bracketed braces are text", () => {
    assert.strictEqual(found("\\{**/a,b\\}", "a b x/a"), "")
    assert.strictEqual(found('"{"**/a,b"}"', "a b x/a"), "")
    assert.strictEqual(found("[{]**,a", "{x,a a x"), "{x,a")
    assert.strictEqual(found("{**/a\\,b,c}", "a,b x/a,b c a b"), "a,b x/a,b c")
  })

  it("an exclude rule that is negated is negated for all alternatives", () => {
    const matcher = make(["*", "!{**/a,**/b}"], { argument: "exclude", rules: true })
    const left = ["a", "b", "c", "x/a", "x/b", "x/c"].filter((path) => test(matcher, path))
    assert.deepStrictEqual(left, ["c", "x/c"])
  })

  it("a walk does not enter directories where no alternative can match", () => {
    const { below, start } = make("{src/**/a,docs/b}")
    assert.isDefined(below(start, "src"))
    assert.isDefined(below(start, "docs"))
    assert.isUndefined(below(start, "other"))
  })

  it("the braces of a pattern expand to at most 1,024 patterns", () => {
    const many = (count: number) => `{${Array.from({ length: count }, (_, index) => `**/a${index}`).join(",")}}`
    const longer = { limits: unlimited, caseSensitive: true }
    const options = { argument: "pattern" }
    assert.isFalse(isFault(compile([many(1024)], options, longer)))
    for (const pattern of [many(1025), `{${"**/a,".repeat(31)}b}${"{c,d}".repeat(6)}`, `{**/a,b}${"{c,d}".repeat(10)}`]) {
      const fault = compile([pattern], options, longer)
      assert.isTrue(isFault(fault) && /more than 1024/.test(String(fault["detail"])), pattern)
    }
  })

  it('".." is rejected in every alternative, and when the expansion produces it', () => {
    for (const pattern of ["{**/a,..}/b", "{**/a,../b}", "{**/a,.}./b", "{a/**,b}/../c", "{**/a,..}"]) {
      assert.isTrue(isFault(compiled([pattern])), pattern)
    }
  })

  const parts = (
    "a b . / / / * ** **/ /** ? [ab] *.b {a,b} {a,b/c} {,a} {a/**,b} {**/a,b} {**/,} {/**,} {a,{**/b,c}} x{**,a} {b,*}{**/a,c} " +
    "@(a|b) @(**/a|b) ?(**/)a (a/**|b) !(a) \\{ \\, } , {**/a/,b} {/a,**/b} ! {1..3} {a,**/[,]}"
  ).split(" ")
  const joined = (from: ReadonlyArray<string>, separator: string, minLength: number, maxLength: number) =>
    Arbitrary.map(Arbitrary.array(Arbitrary.schema(Schema.Literals(from)), { minLength, maxLength }), (all) =>
      all.join(separator)
    )

  it.prop(
    "a glob matches exactly the paths that its alternatives match",
    {
      pattern: joined(parts, "", 1, 5),
      paths: Arbitrary.array(joined("a b c ab a.b xa {a,b} , x".split(" "), "/", 1, 4), { minLength: 8, maxLength: 8 }),
      directory: Schema.Boolean
    },
    ({ directory, paths, pattern }) => {
      const whole = compiled([pattern])
      if (isFault(whole)) return
      // A star after the braces would turn the following parenthesis into an extglob.
      if (/[})]\(/.test(pattern)) return
      // An alternative may be empty, but no path is empty.
      const each = alternatives(pattern).filter((text) => !/^(?:\.?\/)*$/.test(text))
      const matchers = each.map((text) => make(text))
      for (const path of paths) {
        const expected = path === pattern || matchers.some((matcher) => test(matcher, path, directory))
        assert.strictEqual(test(whole, path, directory), expected, `${pattern} as ${JSON.stringify(each)} on ${path}`)
      }
    },
    { arbitrary: { runs: 1200 } }
  )
})

/** True if bash is new enough. Older versions count without leading zeros and steps. */
const hasBash = spawnSync("bash", ["-c", "((BASH_VERSINFO[0] >= 4))"]).status === 0
if (!hasBash && process.env["FS_ALGEBRA_NO_SKIP"] !== "1")
  console.log("skipped: ranges and classes beside bash; apt-get install bash")
const beside = describe.runIf(hasBash || process.env["FS_ALGEBRA_NO_SKIP"] === "1")

const bash = (program: string): ReadonlyArray<string> =>
  execFileSync("bash", ["--noprofile", "--norc", "-c", program], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], LC_ALL: "C" }
  })
    .split("\n")
    .filter((line) => line !== "")

beside("a range in braces expands to the same names as in bash:", () => {
  const ranges =
    "{1..12} {01..12} {1..012} {12..1} {8..12} {0..9} {-2..2} {-05..5} {-3..-1} {1..10..3} {10..1..3} {1..10..-3} {1..3..0} {a..e} {e..a} {a..i..3} {i..a..3} {A..C} {5..5} {10..10} {a..a} {099..101}"
  for (const range of ranges.split(" ")) {
    it(range, () => {
      const names = bash(`printf '%s\\n' ${range}`)
      const others = [
        "",
        "0",
        "1",
        "2",
        "01",
        "02",
        "12",
        "13",
        "012",
        "-1",
        "-01",
        "a",
        "c",
        "f",
        ".",
        "1..12",
        "100",
        "0100",
        "1-12"
      ]
      const [alone, within, expanded, extglob] = [range, `x${range}=*`, `{**/v${range},w}`, `@(v${range}|w)`].map((pattern) =>
        make(pattern)
      ) as [Matcher, Matcher, Matcher, Matcher]
      for (const name of new Set([...names, ...others.filter((name) => name !== "")])) {
        assert.strictEqual(test(alone, name), names.includes(name), name)
        assert.strictEqual(test(within, `d/x${name}=y`), names.includes(name), `x${name}=y`)
        assert.strictEqual(test(expanded, `v${name}`), names.includes(name), `v${name}`)
        assert.strictEqual(test(extglob, `v${name}`), names.includes(name), `@ v${name}`)
      }
    })
  }

  it("escaped, quoted and bracketed ranges are text", () => {
    assert.isTrue(test(make("\\{1..3\\}"), "{1..3}"))
    assert.isTrue(test(make('"{1..3}"'), "{1..3}"))
    assert.isFalse(test(make("\\{1..3\\}"), "2"))
    assert.isTrue(test(make("[{]1..3}"), "{1..3}"))
  })
})

beside("a class in brackets matches the same characters as in bash:", () => {
  const names = "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit".split(" ")
  const codes = Array.from({ length: 127 }, (_, index) => index + 1).filter((code) => code !== 47)
  const brackets = names
    .flatMap((name) => [`[[:${name}:]]`, `[![:${name}:]]`])
    .concat(["[[:alpha:][:digit:]_]", "[[:punct:][:space:]]", "[^[:punct:]a]", "[][:digit:]]", "[[:upper:].-]", "[\\a\\d]"])
  /** Returns the codes of the characters that a bracket expression of bash matches. */
  const members = (bracket: string): ReadonlySet<string> => {
    const tests = codes.map((code) => `[[ $'\\x${code.toString(16)}' == ${bracket} ]] && echo ${code}`)
    return new Set(bash([...tests, "true"].join("\n")))
  }
  for (const bracket of brackets) {
    it(bracket, () => {
      const has = members(bracket)
      const [alone, extglob] = [make(`x${bracket}y`), make(`@(x${bracket}|q)y`)]
      for (const code of codes) {
        const sign = String.fromCharCode(code)
        assert.strictEqual(test(alone, `x${sign}y`), has.has(`${code}`), `code ${code}`)
        assert.strictEqual(test(extglob, `x${sign}y`), has.has(`${code}`), `code ${code} in an extglob`)
      }
    })
  }

  it("no class matches a slash", () => {
    for (const name of names) {
      assert.isFalse(test(make(`/a[[:${name}:]]b`), "a/b"), name)
      assert.isFalse(test(make(`/a[![:${name}:]]b`), "a/b"), `not ${name}`)
    }
  })

  it("an unknown class matches no character outside its own text, whatever its name", () => {
    for (const name of [...Object.getOwnPropertyNames(Object.prototype), "nothing", ""]) {
      assert.isFalse(test(make(`[[:${name}:]]`), "q"), name)
    }
  })
})

describe("a backslash makes the next character literal", () => {
  it("even a letter or a digit that has a meaning in regular expressions", () => {
    for (const sign of "abBdDsSwWnrtvfcxuk0123456789pP_!@#%^&+=~,;:'<>-*?[]{}()|\"\\$.") {
      assert.isTrue(test(make(`a\\${sign}b`), `a${sign}b`), sign)
      assert.isFalse(test(make(`a\\${sign}b`), "a~~b"), sign)
      assert.isTrue(test(make(`{**/a\\${sign}b,q}`), `d/a${sign}b`), `${sign} in braces`)
      assert.isTrue(test(make(`@(a\\${sign}b|q)`), `a${sign}b`), `${sign} in an extglob`)
    }
  })
})

describe("strict compilation rejects an invalid or surprising pattern:", () => {
  const rows: ReadonlyArray<readonly [pattern: string, detail: RegExp]> = [
    ["src\\gen", /"\\g" means the character/],
    ["C:\\work", /"\\w" means the character/],
    [".env,*.pem", /"," stands outside braces/],
    ["*.pem|*.key", /"\|" stands outside parentheses/],
    ["a}", /"\}" closes nothing/],
    ["a]", /"\]" closes nothing/],
    ["a)", /"\)" closes nothing/],
    ["{.env}", /braces without a comma/],
    ["${HOME}/.env", /braces without a comma/],
    ["{*.pem,secrets/*}", /anchors them all/],
    ["{**/a,b}{c,d/e}", /anchors them all/],
    ["!(**/a)", /stands in an extglob/],
    ["+(**/a|b)", /stands in an extglob/],
    ["[[:constructor:]]", /there is no class "\[:constructor:\]"/],
    ["[[:spaces:]]*", /there is no class/],
    ["[[.a.]]", /there is no class/],
    ["[[=a=]]", /there is no class/],
    ["(?=a)b", /globs do not have/],
    ["a//b", /empty segment/],
    ["a/./b", /"\." segment/],
    ["{**/a,}", /alternatives is blank/],
    ["~/.ssh", /home directory/],
    ["'.env'", /quotation marks/],
    ["!.env", /cannot re-include/],
    ["*.pem\n*.key", /control character/],
    [".env\r", /control character/],
    ["src/**.env", /"\*\*" next to other characters/],
    ["a**/b", /"\*\*" next to other characters/],
    ["***/.env", /"\*\*" next to other characters/],
    ["{src/**.env,**/a}", /"\*\*" next to other characters/],
    ["", /blank/],
    [" ", /blank/],
    ["/", /blank/],
    ["{a,b", /not closed/],
    ["[a", /not closed/],
    ["@(a", /not closed/],
    ["../a", /"\.\." segment/],
    ["{**/a,..}/b", /"\.\."/],
    ["{1..2000}", /more than 1024/]
  ]
  for (const [pattern, detail] of rows) {
    it(JSON.stringify(pattern), () => {
      const fault = compiled([pattern], { strict: true })
      assert.isTrue(isFault(fault))
      if (isFault(fault)) assert.match(String(fault["detail"]), detail)
    })
  }
})

describe("strict compilation", () => {
  it("accepts unambiguous patterns", () => {
    for (const pattern of [
      ".env",
      "**/.env*",
      "{**/.env*,**/*.pem}",
      "{*.pem,*.key}",
      "{*.pem,**/secrets/**}",
      "secrets/{a,b}/**",
      "/{a/b,c/d}",
      "{a/,b}/c",
      "\\!a",
      "a\\,b",
      "a\\}\\]\\)",
      "[[:space:]]*",
      "[,|}]",
      "+(?|a)b",
      "{1..12}",
      "@(a|b)",
      "!(a)",
      "node_modules/",
      "./a",
      "a b",
      "'a",
      "~a",
      "**.env",
      "src/\\**",
      "src/**/*.env"
    ]) {
      assert.isFalse(isFault(compiled([pattern], { strict: true })), pattern)
    }
    assert.isFalse(isFault(compiled(["*", "!a"], { strict: true, rules: true })))
  })
})
