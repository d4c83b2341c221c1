/**
 * A search ends in bounded time for any regular expression and text, with a Timeout that names the file, and the
 * program continues meanwhile. The tests measure no time: they count steps, or let a timer fire during the search.
 * Searches that could hang run in a separate process.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { Limits, type LimitsShape, standard } from "../../src/model/Limits.ts"
import { portable } from "../../src/port/Backend.ts"
import { guarded } from "../interruption/guarded.ts"

const on = <A, E>(
  tree: InMemory.Tree,
  program: (fs: Filesystem.Algebra) => Effect.Effect<A, E>,
  limits: Partial<LimitsShape> = {}
) =>
  Effect.gen(function* () {
    return yield* program(yield* Filesystem.Filesystem)
  }).pipe(Effect.provide(InMemory.layer({ tree })), Effect.provideService(Limits, { ...standard, ...limits }))

const ticking = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<readonly [Exit.Exit<A, E>, ticks: number]> =>
  Effect.suspend(() => {
    let ticks = 0
    const timer = setInterval(() => ticks++, 5)
    return Effect.map(Effect.exit(effect), (exit) => {
      clearInterval(timer)
      return [exit, ticks] as const
    })
  })

const letters = `${"a".repeat(64)}!`

describe("a catastrophic expression fails with a Timeout that names the path, and timers fire meanwhile:", () => {
  const cases: ReadonlyArray<readonly [name: string, pattern: string | RegExp, text: string, Filesystem.GrepOptions?]> = [
    ["nested quantifiers", "^(a+)+$", letters],
    ["nested quantifiers, lazy", "^(a+?)+?$", letters],
    ["nested stars, without captures", "^(?:a*)*$", letters],
    ["three levels", "^(((a*)*)*)*$", letters],
    ["alternatives that overlap", "^(a|a)*$", letters],
    ["alternatives that overlap in part", "^(a|ab|aba)*$", `${"aba".repeat(40)}!`],
    ["classes that overlap", "^([a-z]|[a-c]|\\w)*$", letters],
    ["optional parts in a repetition", "^(a?a?)*$", letters],
    ["counts within counts", "^(a{1,40}){1,40}$", letters],
    ["nested counts", "^(?:(?:(?:(?:a{0,100}){0,100}){0,100}){0,100}){0,100}b", "a".repeat(400)],
    ["backreferences", "^(a*)(a*)(a*)(a*)\\1\\2\\3\\4$", `${"a".repeat(2001)}!`],
    ["a named backreference", "^(?P<x>a+)+(?P=x)b$", letters],
    ["in a lookahead", "^(?=(a+)+$)", letters],
    ["in a negative lookahead", "^(?!(a|a)*$)x", letters],
    ["in a lookbehind", "(?<=^(a+)+)!", `y${letters}`],
    ["white space at the end, which is only quadratic", "\\s+$", `${" ".repeat(1_000_000)}x`],
    ["three adjacent stars, which is only a fourth power", "a*a*a*b", "a".repeat(100_000)],
    ["optional parts that overlap", "^(a|a?)+$", letters],
    ["with flag i", "(?i)^(A+)+$", letters],
    ["with flag u", "^(\\p{L}+)+$", letters],
    ["with flag v and sets", /^([[a-z]--[q]]+)+$/v, letters],
    ["as whole words", "(a+)+b", "a".repeat(64), { wholeWord: true }],
    ["over lines", "(a+)+\\n!!", `${"a".repeat(64)}\n!x!!`, { multiline: true }],
    ["over lines, quadratic", "\\s+!", `${"\n".repeat(1_000_000)}x!`, { multiline: true }],
    ["an e-mail address", "^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+$", `${"a".repeat(64)}!@b`],
    ["a comment of C", "/\\*(.|\\s)*?\\*/x", `*/x /*${" ".repeat(64)}`]
  ]
  for (const [name, pattern, text, options] of cases) {
    it.live(name, () =>
      on(
        { "evil.txt": text, "fine.txt": "nothing" },
        (fs) =>
          Effect.gen(function* () {
            const [exit, ticks] = yield* ticking(Effect.flip(fs.grep(pattern, options)))
            const error = yield* exit
            assert.deepStrictEqual([error._tag, error.path], ["Timeout", "evil.txt"])
            assert.isAbove(ticks, 1)
          }),
        { patternBudget: 150 }
      )
    )
  }
})

describe("an expression that only looks dangerous returns the right matches:", () => {
  const cases: ReadonlyArray<readonly [pattern: string | RegExp, text: string, lines: ReadonlyArray<number>]> = [
    ["^(a+)+$", "aaa\nb\naaaa", [1, 3]],
    ["(x+x+)+y", "xxxxxxy", [1]],
    ["x*", "a\n\nxx\n", [1, 2, 3]],
    ["(?:)*|^|$", "a\n\nb", [1, 2, 3]],
    ["(?=a)", "ba\nb", [1]],
    ["\\b", "a\n \n.b", [1, 3]],
    ["$^", "a\n\nb\n", [2]],
    ["(a*)*", "b\na", [1, 2]],
    ["a{0}", "b\nc", [1, 2]],
    ["(?:a?){30}a{30}", "a".repeat(30), [1]],
    ["a{1000}", `${"a".repeat(999)}\n${"a".repeat(1000)}`, [2]],
    ["a{0,2147483647}b", "aab\nx", [1]],
    ["(?:(?:ab?c{1,100}){2,100}){2,100}", "acac".repeat(4), [1]],
    ["[\\uD83D]", "x\n😀", [2]],
    ["[^]", "\nx", [2]],
    ["[]", "x", []],
    [`(?i)${"\\p{L}".repeat(150)}`, "é".repeat(150), [1]],
    ["é".repeat(1000), "é".repeat(1000), [1]],
    ["(".repeat(120) + "a" + ")".repeat(120), "ba", [1]],
    [/a/g, "a\nb\na", [1, 3]],
    [/a/y, "a\nba\na", [1, 2, 3]],
    [/^b/m, "a\nb", [2]]
  ]
  for (const [pattern, text, lines] of cases) {
    it.live(`${String(pattern).slice(0, 40)} on ${JSON.stringify(text.slice(0, 20))}`, () =>
      on({ f: text }, (fs) =>
        Effect.map(fs.grep(pattern), ({ matches }) =>
          assert.deepStrictEqual(
            matches.map(({ lineNumber }) => lineNumber),
            lines
          )
        )
      )
    )
  }

  it.live("an expression with lastIndex starts at the beginning of each line and each file", () => {
    const sticky = /a/gy
    sticky.lastIndex = 7
    return on({ f: "a\na", g: "ba" }, (fs) =>
      Effect.gen(function* () {
        for (let again = 0; again < 2; again++) assert.strictEqual((yield* fs.grep(sticky)).matches.length, 3)
        assert.strictEqual(sticky.lastIndex, 7)
      })
    )
  })

  it.live("an expression with empty matches still finds every line, also with multiline", () =>
    on({ f: "a\n\nb\n" }, (fs) =>
      Effect.gen(function* () {
        for (const pattern of ["x*", "(?:)|y", "^", "$", "(?=)", "(a*)*?"]) {
          const { matches } = yield* fs.grep(pattern, { multiline: true })
          assert.deepStrictEqual(
            matches.map(({ lineNumber }) => lineNumber),
            [1, 2, 3],
            pattern
          )
        }
      })
    )
  )
})

describe("an invalid expression fails with InvalidArgument before any file is read:", () => {
  const cases: ReadonlyArray<string | RegExp> = [
    "",
    "   ",
    "(",
    ")",
    "[",
    "a**",
    "*",
    "+a",
    "a{2,1}",
    "(?<n>a)(?<n>b)",
    "(?P<n",
    "(?<=",
    "(?z)",
    "(?i-)x",
    "\\p{Nope}",
    "\\u{110000}",
    "[b-a]",
    "\\k<nobody>(?<n>a)",
    "\\",
    "a\uD800",
    "\uDFFF",
    "a".repeat(1001),
    "😀".repeat(1001),
    "(".repeat(1000),
    `${"(?:".repeat(300)}a`,
    "(?i)(?i)",
    7 as never,
    null as never,
    { source: "a", flags: "" } as never
  ]
  for (const pattern of cases) {
    it.effect(JSON.stringify(pattern)?.slice(0, 40) ?? "nothing", () =>
      on({}, (fs) =>
        Effect.gen(function* () {
          const error = yield* Effect.flip(fs.grep(pattern))
          assert.deepStrictEqual([error._tag, "argument" in error && error.argument], ["InvalidArgument", "pattern"])
          const streamed = yield* Effect.flip(Stream.runDrain(fs.grepStream(pattern)))
          assert.strictEqual(streamed._tag, "InvalidArgument")
        })
      )
    )
  }
})

describe("extreme texts:", () => {
  const MiB = 1024 * 1024
  const large = { maxFileSize: 128 * MiB }

  it.live("a line of 64 MB is searched for text, and a hostile expression on it fails with a Timeout that names the path", () =>
    on(
      {},
      (fs) =>
        Effect.gen(function* () {
          yield* fs.write("line", `${"a".repeat(64 * MiB - 6)}needle`)
          const { matches } = yield* fs.grep("needle")
          assert.deepStrictEqual([matches.length, matches[0]!.matchStart], [1, 64 * MiB - 6])
          const [exit, ticks] = yield* ticking(Effect.flip(fs.grep("a+a+b")))
          const error = yield* exit
          assert.deepStrictEqual([error._tag, error.path], ["Timeout", "line"])
          assert.isAbove(ticks, 1)
        }),
      { ...large, patternBudget: 300 }
    )
  )

  it.live("an expression that overflows V8's stack fails with an error that names the path, and the next search works", () =>
    on(
      {},
      (fs) =>
        Effect.gen(function* () {
          yield* fs.write("deep", `${"a".repeat(32 * MiB)}\n`)
          const error = yield* Effect.flip(fs.grep("^(?:a|b)*c"))
          assert.strictEqual(error.path, "deep", `${error._tag}: ${error.message}`)
          assert.strictEqual((yield* fs.grep("(x|b)*a\\n?", { path: "deep", maxMatches: 0 })).truncated, true)
        }),
      large
    )
  )

  it.live("a search for text on which V8's own search takes quadratic time ends, in files of 32 MB", () =>
    Effect.gen(function* () {
      // After a few near misses, V8 searches for more than 250 characters in time proportional to the product of both lengths.
      const { error, isStuck, out } = yield* guarded(`
        const near = ("x" + "a".repeat(998) + "y").repeat(12)
        const text = near + "a".repeat(32 * 1024 * 1024 - near.length)
        const fs = await make({ a: text, b: text })
        say((await run(fs.grep("x" + "a".repeat(999), { literal: true }))).matches.length)
      `)
      assert.isFalse(isStuck, "did not end")
      assert.strictEqual(out, "0", error)
    })
  )

  it.live("text too long for V8's own search is found at its position, after any number of near misses", () => {
    const parts = ["a".repeat(300), "ab".repeat(150), `${"ab".repeat(110)}c${"ab".repeat(110)}`, `x${"a".repeat(998)}`]
    const lines = parts.flatMap((part) => [
      part,
      part.slice(1),
      part.slice(0, -1),
      `${part.slice(0, 250)}${part}`,
      `${part.slice(0, -1)}${part}`,
      `${part.slice(0, 220)}-${part}${part}`
    ])
    return on({ f: lines.join("\n") }, (fs) =>
      Effect.gen(function* () {
        for (const part of parts) {
          const expected = lines.flatMap((line, i) => (line.includes(part) ? [`${i + 1}:${line.indexOf(part)}`] : []))
          for (const multiline of [false, true]) {
            const { matches } = yield* fs.grep(part, { literal: true, multiline })
            assert.deepStrictEqual(
              matches.map(({ lineNumber, matchStart }) => `${lineNumber}:${matchStart}`),
              expected
            )
          }
        }
        const two = [parts[0]!, parts[0]!.slice(1)] as const
        const firsts = lines.flatMap((line, i) => (line.endsWith(two[0]) && lines[i + 1]?.startsWith(two[1]) ? [i + 1] : []))
        const { matches } = yield* fs.grep(two.join("\n"), { literal: true, multiline: true })
        assert.deepStrictEqual(
          matches.map(({ lineNumber }) => lineNumber),
          firsts
        )
        assert.deepStrictEqual((yield* fs.grep(two.join("\n"), { literal: true })).matches, [])
      })
    )
  })

  it.live("a stream of matches with context keeps only a few of them in memory", () =>
    Effect.gen(function* () {
      const { error, isStuck, out, status } = yield* guarded(
        `
        import * as Stream from "effect/Stream"
        const fs = await make({ f: "a\\n".repeat(10_000) })
        let lines = 0
        const count = ({ before, after }) => Effect.sync(() => void (lines += before.length + after.length))
        await run(Stream.runForEach(fs.grepStream("a", { context: 1000 }), count))
        say(lines)
      `,
        { heap: 128 }
      )
      assert.isFalse(isStuck, "did not end")
      assert.strictEqual(status, 0, `the program has died: ${error.split("\n").find((line) => line.includes("FATAL"))}`)
      // A thousand lines above and below each match, without the missing ones at both ends of the file.
      assert.strictEqual(out, String(10_000 * 2000 - 1000 * 1001))
    })
  )

  it.live("empty lines at the beginning are shown as context lines, once each", () =>
    Effect.gen(function* () {
      for (const [text, before] of [
        ["\na", [""]],
        ["\n\na", ["", ""]],
        ["\r\n\na", ["", ""]],
        ["\uFEFF\na", [""]],
        ["a", []],
        ["\uFEFFa", []]
      ] as const) {
        const { matches } = yield* on({ f: text }, (fs) => fs.grep("a", { context: 5 }))
        assert.deepStrictEqual(
          matches.map((match) => match.before),
          [before]
        )
      }
    })
  )

  it.live("a file that grows during the search is searched as it was when it was opened", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = yield* Effect.acquireRelease(
          Effect.sync(() => Fs.mkdtempSync(join(Fs.realpathSync(tmpdir()), "fs-algebra-grow-"))),
          (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
        )
        const file = join(root, "log")
        const lines = 20_000
        Fs.writeFileSync(file, "a line of the log\n".repeat(lines))
        const port = portable(yield* PosixHost.make({ root }))
        const grow = () => Fs.appendFileSync(file, "a line of the log\n".repeat(1000))
        let opened = 0
        const growing = Filesystem.make({
          ...port,
          open: (path) =>
            Effect.map(port.open(path), ({ read, stat }) => {
              opened = stat.sizeBytes
              grow()
              return {
                stat,
                read: (offset, length) => {
                  grow()
                  return Effect.tap(read(offset, length), () => Effect.sync(grow))
                }
              }
            })
        })
        const found = yield* Stream.runCollect(growing.grepStream("(a|the) l"))
        assert.strictEqual(found.length, opened / 18)
        assert.isAbove(Fs.statSync(file).size, opened)
      })
    )
  )
})

describe("the pattern budget", () => {
  it.live("applies to each file, so that a long search over many cheap files succeeds", () =>
    Effect.gen(function* () {
      // On a busy machine, a worker may wait for more than a second.
      const patternBudget = 3000
      // Find the number of letters that keep the expression busy for a fiftieth of the budget on this machine.
      let size = 10
      for (let took = 0; took < patternBudget / 50; size++) {
        const text = `${"a".repeat(size)}!`
        const before = performance.now()
        void /^(a+)+$/.test(text)
        took = performance.now() - before
      }
      const tree = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`f${i}`, `${"a".repeat(size - 1)}!`]))
      const { filesSearched, matches } = yield* on(tree, (fs) => fs.grep("^(a+)+$"), { patternBudget })
      assert.deepStrictEqual([filesSearched, matches.length], [80, 0])
    })
  )

  it.live("is not spent while a search waits for other searches", () =>
    on(
      { "evil.txt": letters, ...Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`f${i}`, "abc"])) },
      (fs) =>
        Effect.gen(function* () {
          const hostile = Array.from({ length: 6 }, () => Effect.exit(fs.grep("^(a+)+$", { path: "evil.txt" })))
          const fine = Array.from({ length: 6 }, (_, i) => Effect.exit(fs.grep("(a|b)+c", { path: `f${i}` })))
          const exits = yield* Effect.all([...hostile, ...fine], { concurrency: "unbounded" })
          for (const exit of exits.slice(0, 6)) assert.isTrue(Exit.isFailure(exit))
          for (const exit of exits.slice(6)) assert.strictEqual((yield* exit).matches.length, 1)
        }),
      { patternBudget: 150 }
    )
  )

  it.live("lets 49 of 50 concurrent searches succeed when one search is hostile", () =>
    on(
      {
        "evil.txt": letters,
        ...Object.fromEntries(Array.from({ length: 49 }, (_, i) => [`f${i}`, `${"ab\n".repeat(i)}abc\n`]))
      },
      (fs) =>
        Effect.gen(function* () {
          const one = (i: number) =>
            i === 17 ? fs.grep("^(a+)+$", { path: "evil.txt" }) : fs.grep("^(a|b)+c?$", { path: `f${i % 49}` })
          const exits = yield* Effect.all(
            Array.from({ length: 50 }, (_, i) => Effect.exit(one(i))),
            { concurrency: "unbounded" }
          )
          assert.strictEqual((yield* Effect.flip(exits[17]!))._tag, "Timeout")
          for (const [i, exit] of exits.entries()) {
            if (i !== 17) assert.strictEqual((yield* exit).matches.length, (i % 49) + 1)
          }
        }),
      { patternBudget: 300 }
    )
  )
})

describe("a search in the thread of the program", () => {
  it.live("takes at most a few million steps between two turns of the event loop", () => {
    // With long lines among empty lines, the sum of the squared lengths is far larger than the average length suggests.
    const text = `${"a".repeat(550)}\n`.repeat(24) + "\n".repeat(13_000)
    const small = `${"a".repeat(200)}\n`.repeat(15)
    // The hard files come last, because after the first of them all files go to the workers.
    const tree = Object.fromEntries(Array.from({ length: 160 }, (_, i) => (i < 32 ? [`z${i}`, text] : [`f${i}`, small])))
    const expression: { exec: (text: string) => RegExpExecArray | null } = RegExp.prototype
    const original = expression.exec
    let steps = 0
    let most = 0
    let turns = true
    const turn = (): void => {
      steps = 0
      if (turns) setImmediate(turn)
    }
    // One call may get many lines, but a match cannot cross a line end.
    expression.exec = function (this: RegExp, lines: string) {
      if (this.source === "a*b") {
        for (const { length } of lines.slice(this.lastIndex).split("\n")) steps += (length * (length + 1)) / 2
        most = Math.max(most, steps)
      }
      return original.call(this, lines)
    }
    turn()
    return Effect.ensuring(
      on(tree, (fs) =>
        Effect.map(fs.grep("a*b"), ({ filesSearched, matches }) => {
          assert.deepStrictEqual([filesSearched, matches.length], [160, 0])
          assert.isAbove(most, 0)
          assert.isBelow(most, 20_000_000)
        })
      ),
      Effect.sync(() => {
        turns = false
        expression.exec = original
      })
    )
  })
})

describe("a search that is interrupted during a stuck expression", () => {
  it.live("returns its worker, leaves no thread behind, and lets the program end", () =>
    Effect.gen(function* () {
      const { error, isStuck, out, status } = yield* guarded(`
        import { readdirSync } from "node:fs"
        const fs = await make({ evil: "${letters}", fine: "abc" })
        const endless = { ...standard, patternBudget: Infinity }
        const threads = () => readdirSync("/proc/self/task").length
        const turns = async (n) => { for (let i = 0; i < n; i++) await new Promise((resume) => setImmediate(resume)) }
        const fine = () => run(fs.grep("(a|b)+c", { path: "fine" }).pipe(Effect.provideService(Limits, endless)))
        await fine()
        const before = process.platform === "linux" ? threads() : 0
        for (let round = 0; round < 30; round++) {
          const stuck = Effect.runFork(fs.grep("^(a+)+$").pipe(Effect.provideService(Limits, endless)))
          const queued = round % 3 === 0 ? [1, 2, 3].map(() => Effect.runFork(fs.grep("^(a+)+$").pipe(Effect.provideService(Limits, endless)))) : []
          // Interrupt at different times: at once, while the thread starts, and while the thread runs the expression.
          await turns(round < 20 ? round : (round - 19) * 400)
          await run(Fiber.interruptAll([...queued, stuck]))
        }
        const found = (await Promise.all(Array.from({ length: 20 }, fine))).map(({ matches }) => matches.length)
        // Wait until the ended threads are gone. At most two workers stay.
        while (process.platform === "linux" && threads() > before + 2) await turns(1)
        say(found.every((n) => n === 1))
      `)
      assert.isFalse(isStuck, "a place in the pool or a thread was lost")
      assert.deepStrictEqual([out, status], ["true", 0], error)
    })
  )
})
