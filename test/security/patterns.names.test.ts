/**
 * A walk matches globs and ignore rules in the program's own thread. No pattern and no name may make one match costly,
 * no compiled rule may grow beyond its length, and a walk over many names must yield.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { Limits, unlimited } from "../../src/model/Limits.ts"
import { guarded } from "../interruption/guarded.ts"

const on = <A, E>(tree: InMemory.Tree, program: (fs: Filesystem.Algebra) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    return yield* program(yield* Filesystem.Filesystem)
  }).pipe(Effect.provide(InMemory.layer({ tree })))

const nested = (open: string, close: string, times: number): string => `${open.repeat(times)}a${close.repeat(times)}`

const braces = (depth: number): string =>
  Array.from({ length: depth }, (_, i) => `{${String.fromCharCode(97 + (i % 26))},`).join("") + `x${"}".repeat(depth)}`

describe("an invalid or excessive glob fails with InvalidArgument that names the parameter:", () => {
  const cases: ReadonlyArray<string> = [
    "",
    " \t",
    "/",
    "a\0b",
    "a\uD800b",
    "\uDC00",
    "a".repeat(1001),
    "😀".repeat(1001),
    "{1..1000000000}",
    "{1..2}{1..99999999999}",
    "{a,b}".repeat(11),
    "{a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q}{a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q}{a,b,c,d}",
    `{${"{a,b},".repeat(150)}x}{a,b}{a,b}{a,b}`,
    "{,}".repeat(300),
    `*(${"{a,b}".repeat(11)})`,
    "../x",
    "a/../b",
    "a/{b,..}/c",
    "{.,}./x",
    "x/\\.\\./y",
    "{a,{b,../..}}",
    "{a/..,b}",
    "@(a|..)/b",
    "!(../a)",
    "(".repeat(999),
    "[".repeat(999),
    "{".repeat(999),
    "\\".repeat(999),
    "[z-a]",
    "+(a",
    "(?<=a)",
    "(?=a)b\\1"
  ]
  for (const pattern of cases) {
    it.effect(JSON.stringify(pattern).slice(0, 50), () =>
      on({ a: { b: "" } }, (fs) =>
        Effect.gen(function* () {
          const seen = yield* Effect.all(
            [
              fs.glob(pattern),
              fs.glob(["a", pattern]),
              Stream.runDrain(fs.globStream(pattern)),
              fs.glob("*", { exclude: [pattern] }),
              fs.grep("a", { glob: ["*", pattern] }),
              fs.grep("a", { exclude: ["*", pattern] })
            ].map((call) => Effect.flip(call as Effect.Effect<unknown, { readonly _tag: string; readonly argument?: string }>))
          )
          // A blank glob of a grep is refused too, and never matches everything.
          assert.deepStrictEqual(
            seen.map(({ _tag, argument }) => `${_tag} ${argument}`),
            ["pattern", "pattern", "pattern", "exclude", "glob", "exclude"].map((argument) => `InvalidArgument ${argument}`)
          )
        })
      )
    )
  }

  it.effect("nested 50,000 deep or more, if the limits allow any length", () =>
    on({ a: "" }, (fs) =>
      Effect.gen(function* () {
        for (const pattern of [
          "{".repeat(100_000),
          nested("{a,", "}", 50_000),
          nested("!(", ")", 50_000),
          "[".repeat(100_000)
        ]) {
          const error = yield* Effect.flip(fs.glob(pattern))
          assert.strictEqual(error._tag, "InvalidArgument")
        }
      }).pipe(Effect.provideService(Limits, unlimited))
    )
  )
})

/** Counts the calls of `charCodeAt` while the effect runs. A matcher of names makes one in each step. */
const counting = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<readonly [A, number], E> =>
  Effect.suspend(() => {
    const text: { charCodeAt: (at: number) => number } = String.prototype
    const original = text.charCodeAt
    let steps = 0
    text.charCodeAt = function (this: string, at: number) {
      steps++
      return original.call(this, at)
    }
    return Effect.ensuring(
      Effect.map(effect, (value) => [value, steps] as const),
      Effect.sync(() => {
        text.charCodeAt = original
      })
    )
  })

describe("matching a name takes a number of steps bounded by the pattern's length times the name's:", () => {
  const long = "a".repeat(255)
  const cases: ReadonlyArray<readonly [name: string, pattern: string, tree: InMemory.Tree, found: number]> = [
    ["twenty stars", `${"*a".repeat(20)}*b`, { [long]: "" }, 0],
    ["five hundred stars", `${"*a".repeat(490)}b`, { [long]: "" }, 0],
    ["stars that match", `${"*a".repeat(100)}*`, { [long]: "" }, 1],
    ["stars and question marks", `${"*?a".repeat(80)}b`, { [long]: "" }, 0],
    ["sets", `${"*[a-z]".repeat(150)}b`, { [long]: "" }, 0],
    ["one very large set", `*[${"a-z".repeat(330)}]b`, { [long]: "" }, 0],
    ["adjacent stars", `${"*".repeat(900)}b`, { [long]: "" }, 0]
  ]
  for (const [name, pattern, tree, found] of cases) {
    it.effect(name, () =>
      on(tree, (fs) =>
        Effect.gen(function* () {
          const [, before] = yield* counting(fs.glob("x"))
          const [result, steps] = yield* counting(fs.glob(pattern))
          assert.strictEqual(result.matches.length, found)
          // Up to 20 steps for each character of the pattern are spent before the match.
          assert.isBelow(steps - before, pattern.length * 255 + 20 * pattern.length)
        })
      )
    )
  }
})

describe("globs that take picomatch minutes or forever are matched over a tree thirty deep:", () => {
  const deep = (depth: number): InMemory.Tree => (depth === 0 ? { leaf: "" } : { a: deep(depth - 1), b: "" })
  const cases: ReadonlyArray<readonly [pattern: string, found: number]> = [
    [`${"**/".repeat(30)}leaf`, 1],
    [`${"**/a/".repeat(30)}leaf`, 1],
    [`${"**/a/".repeat(31)}leaf`, 0],
    [`${"**/*/".repeat(30)}leaf`, 1],
    [`${"**/a/**/".repeat(100)}z`, 0],
    [`${"*/".repeat(30)}leaf`, 1],
    [braces(100), 30],
    [`{${braces(60)},leaf}`, 31],
    ["{a..z}", 30],
    [`[${"a-z".repeat(330)}]`, 30],
    [nested("+(", ")", 300), 0],
    [nested("@(b|", ")", 190), 30],
    ["+(b|bb)".repeat(60) + "c", 0],
    ["*(*(*(*(b))))c", 0],
    ["!(*b*b*b*b)".repeat(60) + "q", 0],
    ["**/{a,**/b}/".repeat(9) + "c", 0],
    ["[[:alpha:]]".repeat(80), 0],
    ["[[:constructor:]]", 0],
    ['"'.repeat(500) + "b", 30]
  ]
  for (const [pattern, found] of cases) {
    it.effect(pattern.slice(0, 50), () =>
      on({ ...deep(30) }, (fs) =>
        Effect.map(fs.glob(pattern), ({ matches }) => {
          // For patterns with a special meaning in picomatch, the test requires only an answer.
          if (!/[+@*]\(|\[\[|"/.test(pattern)) assert.strictEqual(matches.length, found)
        })
      )
    )
  }
})

describe("nested negations", () => {
  for (const [name, pattern, count] of [
    ["300 deep", nested("!(", ")", 300), 1000],
    ["190 deep, with alternatives", nested("!(a|", ")", 190), 1000],
    ["500 side by side", `!(${"*|".repeat(480)})`, 100]
  ] as const) {
    it.live(`${name}, over ${count} names, end with an answer`, () =>
      Effect.gen(function* () {
        const { error, isStuck, out } = yield* guarded(`
          const tree = Object.fromEntries(Array.from({ length: ${count} }, (_, i) => ["a".repeat(60) + i, ""]))
          const fs = await make(tree)
          say(await run(told(fs.glob(${JSON.stringify(pattern)}).pipe(Effect.provideService(Limits, standard)))))
        `)
        assert.isFalse(isStuck, "did not end")
        assert.include(['"done"', '"InvalidArgument"'], out, error)
      })
    )
  }
})

const turning = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<readonly [A, turns: number], E> =>
  Effect.suspend(() => {
    let turns = 0
    let isOver = false
    const turn = (): void => {
      turns++
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    return Effect.ensuring(
      Effect.map(effect, (value) => [value, turns] as const),
      Effect.sync(() => {
        isOver = true
      })
    )
  })

describe("a walk over long names in one directory yields to others and can be interrupted,", () => {
  const named = (count: number, size: number): InMemory.Tree =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${"a".repeat(size)}${String(i).padStart(4, "0")}`, ""]))
  // With ignore rules, `least` exceeds the turns of their parsing alone: one for each 32,768 characters.
  const cases: ReadonlyArray<
    readonly [name: string, least: number, tree: InMemory.Tree, pattern: string, Filesystem.GlobOptions?]
  > = [
    ["with a costly glob", 15, named(20, 250), `!(${"*|".repeat(480)})`],
    ["with a thousand globs in one", 80, named(100, 250), `${"*a".repeat(300)}${"{a,b}".repeat(10)}`],
    ["with a costly exclude", 15, named(20, 250), "**", { exclude: `!(${"*|".repeat(480)})` }],
    [
      "with 20,000 ignore rules full of stars",
      12,
      { ...named(10, 250), ".gitignore": "*a*a*a*a*b\n".repeat(20_000) },
      "**",
      { gitignore: true }
    ],
    [
      "with 90,000 plain ignore rules",
      30,
      { ...named(60, 20), ".gitignore": "*.log\n!x.log\n".repeat(45_000) },
      "**",
      { gitignore: true }
    ],
    [
      "with ignore rules of large sets",
      20,
      { ...named(300, 250), ".gitignore": `*[${"bcdefghij".repeat(400)}]x\n`.repeat(60) },
      "**",
      {
        gitignore: true
      }
    ]
  ]
  for (const [name, least, tree, pattern, options] of cases) {
    it.live(name, () =>
      on(tree, (fs) =>
        Effect.gen(function* () {
          const [{ matches }, turns] = yield* turning(fs.glob(pattern, options))
          assert.isAtMost(matches.length, 301)
          assert.isAtLeast(turns, least, "the walk did not yield")
          const search = yield* Effect.forkChild(fs.glob(pattern, options), { startImmediately: true })
          yield* Fiber.interrupt(search)
        })
      )
    )
  }
})

describe("no ignore rule grows beyond its length:", () => {
  /** The rules, as source text of programs. */
  const cases: ReadonlyArray<readonly [name: string, rules: string]> = [
    ["many globstars right after text", '"a**/".repeat(1000) + "b"'],
    ["many anchored globstars right after text", '"/" + "a**/".repeat(1000) + "b"'],
    ["many globstars right after text, with escaped slashes", '"a**\\\\/".repeat(800) + "b"'],
    ["many globstars right after text, with globstars at the end", '"a**/**/".repeat(500) + "**"'],
    ["a few globstars right after text in each of many rules", '"a**/a**/a**/a**/b\\n".repeat(50_000)'],
    ["a megabyte of globstars", '("a/" + "**/".repeat(1300) + "**x\\n").repeat(260)'],
    ["very many stars", '("*a".repeat(2000) + "b\\n").repeat(250)'],
    ["unclosed sets", '("[a".repeat(2000) + "\\n").repeat(250)'],
    ["nested sets", '("[[:alpha:]".repeat(400) + "\\n").repeat(250)'],
    ["very many spaces", '(" ".repeat(4000) + "\\\\\\n").repeat(250)'],
    ["a line of a megabyte", '"**/a".repeat(250_000)'],
    ["characters beyond the first plane", '"\\u{10ffff}".repeat(250_000)']
  ]
  for (const [name, rules] of cases) {
    it.live(name, () =>
      Effect.gen(function* () {
        const { error, isStuck, out, status } = yield* guarded(
          `
          const fs = await make({ ".gitignore": ${rules}, ["${"d".repeat(200)}"]: "", "d/e/f/c": "" })
          say((await run(fs.glob("**/c", { gitignore: true }))).matches.map(({ path }) => path))
        `,
          { heap: 512, seconds: 30 }
        )
        assert.isFalse(isStuck, "did not end")
        assert.strictEqual(status, 0, `the program has died: ${error.split("\n").find((line) => /FATAL|Error/.test(line))}`)
        assert.strictEqual(out, '["d/e/f/c"]')
      })
    )
  }

  const git = spawnSync("git", ["--version"]).status === 0
  if (!git && process.env["FS_ALGEBRA_NO_SKIP"] !== "1") console.log("skipped: ignore rules beside git; apt-get install git")
  it.effect.runIf(git || process.env["FS_ALGEBRA_NO_SKIP"] === "1")(
    "a second globstar directly after text is a single star, as in git",
    () => {
      const root = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-git-"))
      const paths = ["foo/barbaz", "foobarbaz", "foo/bar/baz", "foobar/baz", "foobarx/baz", "foox/y/barz/baz", "foo/bar/x/baz"]
      const rules = ["foo**/bar**/baz", "x**/y**/z**/w", "a**/b**"]
      const more = ["x/y/z/w", "xyzw", "x1/2/y3/z4/w", "xy/z/w", "a/b", "ab", "a1/2/b3", "a1/b2/3"]
      return Effect.ensuring(
        Effect.gen(function* () {
          execFileSync("git", ["init", "--quiet", root])
          for (const rule of rules) {
            Fs.writeFileSync(join(root, ".gitignore"), `${rule}\n`)
            for (const path of [...paths, ...more]) {
              const theirs = spawnSync("git", ["-C", root, "check-ignore", "--quiet", "--no-index", path]).status === 0
              const tree: Record<string, unknown> = {}
              let at = tree
              for (const name of dirname(path) === "." ? [] : dirname(path).split("/")) at = (at[name] = {}) as typeof at
              at[path.split("/").at(-1)!] = ""
              const { matches } = yield* on({ ...tree, ".gitignore": `${rule}\n` } as InMemory.Tree, (fs) =>
                fs.glob("**", { gitignore: true })
              )
              assert.strictEqual(!matches.some((match) => match.path === path), theirs, `${rule} on ${path}`)
            }
          }
        }),
        Effect.sync(() => Fs.rmSync(root, { recursive: true, force: true }))
      )
    }
  )
})
