/**
 * Hostile patterns on a host where workers search. Only the 300th of 500 files makes the pattern slow. The search succeeds or
 * fails with a Timeout that names this file. Meanwhile the event loop runs, and afterwards no worker or descriptor is left. The
 * tests count turns of the event loop and measure no time.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, type GrepOptions, make } from "../../src/filesystem/Filesystem.ts"
import { Limits, standard } from "../../src/model/Limits.ts"
import { fastDirectory, openDescriptors } from "../backends/posixHost.ts"
import { guarded } from "../interruption/guarded.ts"

const pad = (index: number): string => String(index).padStart(3, "0")

/** The files in order: ten directories of fifty. */
const files = Array.from({ length: 500 }, (_, index) => `d${Math.floor(index / 50)}/f${pad(index)}`)
const victim = files[299]!

const budget = { ...standard, patternBudget: 200 }

/** Writes `text` to the victim and `other` to all other files. */
const ground = (text: string, other: string) =>
  Effect.gen(function* () {
    const root = yield* fastDirectory
    for (let i = 0; i < 10; i++) Fs.mkdirSync(join(root, `d${i}`))
    for (const path of files) Fs.writeFileSync(join(root, path), path === victim ? text : other)
    return { root, fs: make(yield* Effect.orDie(PosixHost.make({ root }))) }
  })

const turn: Effect.Effect<void> = Effect.callback((resume) => void setImmediate(() => resume(Effect.void)))

const turning = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<readonly [Exit.Exit<A, E>, turns: number]> =>
  Effect.suspend(() => {
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    return Effect.map(Effect.exit(effect), (exit) => {
      isOver = true
      return [exit, turns] as const
    })
  })

const worksAgain = (fs: Algebra, other: string) =>
  Effect.map(fs.grep(other, { literal: true, maxMatches: Number.POSITIVE_INFINITY }), ({ matches }) =>
    assert.isAtLeast(new Set(matches.map(({ path }) => path)).size, 499)
  )

const letters = `${"a".repeat(64)}!`

interface Case {
  readonly name: string
  readonly pattern: string | RegExp
  readonly text: string
  /** One line of the other files. @default "aab" */
  readonly other?: string
  readonly options?: GrepOptions
}

/** Patterns whose match takes seconds at least, and in most cases practically for ever. */
const stuck: ReadonlyArray<Case> = [
  { name: "nested quantifiers", pattern: "^(a+)+$", text: letters, other: "aaa" },
  { name: "nested stars at any place", pattern: "(a*)*b\\d", text: `${"a".repeat(64)}! b`, other: "aab1" },
  { name: "equal alternatives", pattern: "(a|a)*b", text: `${"a".repeat(64)}!b` },
  { name: "nested wildcards", pattern: "(.*)*x$", text: `x${"a".repeat(64)}`, other: "aax" },
  {
    name: "white space before the last of a million characters",
    pattern: "\\s+$",
    text: `${" ".repeat(1_000_000)}x`,
    other: "x "
  },
  { name: "a backreference", pattern: "^(a+)+\\1b$", text: `${"a".repeat(64)}!b` },
  { name: "a named backreference", pattern: "^(?P<x>a+)+(?P=x)b$", text: `${"a".repeat(64)}!b` },
  {
    name: "four groups with backreferences",
    pattern: "^(a*)(a*)(a*)(a*)\\1\\2\\3\\4$",
    text: `${"a".repeat(3001)}!`,
    other: "aaaa"
  },
  {
    name: "a pattern of 999 characters",
    pattern: `^(a+)+${"[ab]".repeat(248)}$`,
    text: `${"a".repeat(300)}!`,
    other: "a".repeat(250)
  },
  { name: "a counted group in a counted group", pattern: "^(a{1,40}){1,40}$", text: letters, other: "aaa" },
  { name: "in a lookahead", pattern: "^(?=(a+)+$)", text: letters, other: "aaa" },
  { name: "letters of any script", pattern: "^(\\p{L}+)+$", text: letters, other: "aaa" },
  { name: "with ignoreCase", pattern: "^(A+)+$", text: letters, other: "aaa", options: { ignoreCase: true } },
  { name: "as whole words", pattern: "(a+)+b", text: `${"a".repeat(64)} b_`, options: { wholeWord: true } },
  { name: "across lines", pattern: "(a+)+\\nb", text: `${"a".repeat(64)}\nab`, other: "a\nb", options: { multiline: true } },
  { name: "with context lines", pattern: "^(a+)+$", text: letters, other: "aaa", options: { context: 1 } },
  {
    name: "an address",
    pattern: "^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+$",
    text: `${"a".repeat(64)}!@b`,
    other: "a@b"
  }
]

describe("a search that hangs on the 300th of 500 files", () => {
  for (const { name, options, other = "aab", pattern, text } of stuck) {
    it.live(`fails with a Timeout that names the file: ${name}`, () =>
      Effect.gen(function* () {
        const { fs } = yield* ground(text, other)
        const [exit, turns] = yield* turning(Effect.flip(fs.grep(pattern, options)))
        const error = yield* exit
        assert.deepStrictEqual([error._tag, error.path], ["Timeout", victim])
        assert.isAbove(turns, 20)
        yield* worksAgain(fs, other.split("\n")[0]!)
      }).pipe(Effect.provideService(Limits, budget), Effect.scoped)
    )
  }

  it.live("has already streamed the matches of the earlier files, each once and in order", () =>
    Effect.gen(function* () {
      const { fs } = yield* ground(letters, "aaa")
      const streamed: Array<string> = []
      const error = yield* Effect.flip(
        Stream.runForEach(fs.grepStream("^(a+)+$"), ({ path }) => Effect.sync(() => void streamed.push(path)))
      )
      assert.deepStrictEqual([error._tag, error.path], ["Timeout", victim])
      assert.deepStrictEqual(streamed, files.slice(0, 299))
    }).pipe(Effect.provideService(Limits, budget), Effect.scoped)
  )

  it.live("succeeds when its limit is reached before the 300th file", () =>
    Effect.gen(function* () {
      const { fs } = yield* ground(letters, "aaa")
      const { matches, truncated } = yield* fs.grep("^(a+)+$", { maxMatches: 20 })
      assert.deepStrictEqual([matches.map(({ path }) => path as string), truncated], [files.slice(0, 20), true])
    }).pipe(Effect.provideService(Limits, budget), Effect.scoped)
  )

  it.live("can be interrupted at any time, and later searches succeed", () =>
    Effect.gen(function* () {
      const { fs } = yield* ground(letters, "aaa")
      const endless = Effect.provideService(Limits, { ...standard, patternBudget: 2 ** 30 })
      for (let round = 0; round < 8; round++) {
        const searches = [fs.grep("^(a+)+$"), Stream.runDrain(fs.grepStream("^(a+)+$"))].map((search) => endless(search))
        const fibers = yield* Effect.forEach(searches, (search) => Effect.forkChild(search, { startImmediately: true }))
        for (let turns = round * round * 200; turns > 0; turns--) yield* turn
        yield* Fiber.interruptAll(fibers)
        for (const fiber of fibers) assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)), `round ${round}`)
        yield* worksAgain(fs, "aaa")
      }
    }).pipe(Effect.scoped)
  )
})

const spaces = " ".repeat(100_000)

/** Patterns that look dangerous but succeed, or exceed the budget only on slow machines. */
const harmless: ReadonlyArray<Case> = [
  { name: "white space before the last of 100,000 characters", pattern: "\\s+$", text: `${spaces}x`, other: "x " },
  { name: "a first character that does not occur", pattern: "(x+x+)+y", text: "a".repeat(64), other: "xxy" },
  { name: "a required text that does not occur", pattern: "(.*)*x", text: "a".repeat(64), other: "x" },
  { name: "1,000 letters", pattern: "a".repeat(1000), text: `${"a".repeat(999)}b`.repeat(1000), other: "a".repeat(1000) },
  { name: "500 alternatives", pattern: "a|".repeat(499) + "b", text: "c".repeat(100_000), other: "b" },
  { name: "twenty adjacent stars", pattern: "a*".repeat(20) + "$", text: "a".repeat(1000), other: "aa" },
  { name: "an empty match at every position", pattern: "(?:)*", text: "a\n".repeat(50_000), other: "aa" },
  { name: "a repeated empty alternative", pattern: "(|a)*(|b)*$", text: letters, other: "aa" },
  { name: "a group within a group, 300 deep", pattern: `${"(".repeat(300)}a${")".repeat(300)}`, text: letters, other: "aa" },
  { name: "a range of 65,535", pattern: "a{0,65535}b", text: "a".repeat(1000), other: "ab" }
]

describe("a search that only looks dangerous succeeds, or fails with a Timeout that names the file, for", () => {
  for (const { name, options, other = "aab", pattern, text } of harmless) {
    it.live(name, () =>
      Effect.gen(function* () {
        const { fs } = yield* ground(text, other)
        const [exit, turns] = yield* turning(fs.grep(pattern, { ...options, maxMatches: Number.POSITIVE_INFINITY }))
        assert.isAbove(turns, 1)
        if (Exit.isSuccess(exit)) {
          const found = new Set(exit.value.matches.map(({ path }) => path as string))
          assert.deepStrictEqual(
            files.filter((path) => !found.has(path) && path !== victim),
            []
          )
          // The expected result of each line, from the engine itself.
          const expression = new RegExp(pattern)
          if (name !== harmless[0]!.name)
            assert.strictEqual(
              found.has(victim),
              text.split("\n").some((line) => expression.test(line))
            )
        } else {
          const error = yield* Effect.flip(exit)
          assert.deepStrictEqual([error._tag, error.path], ["Timeout", victim])
        }
        yield* worksAgain(fs, other)
      }).pipe(Effect.provideService(Limits, budget), Effect.scoped)
    )
  }
})

describe("searches that hung", () => {
  it.live("leave no descriptor open", () =>
    Effect.gen(function* () {
      // The first worker opens some descriptors that stay open.
      const once = Effect.scoped(
        Effect.gen(function* () {
          const { fs } = yield* ground(letters, "aaa")
          yield* Effect.exit(fs.grep("^(a+)+$"))
          yield* Effect.exit(Stream.runDrain(fs.grepStream("^(a+)+$")))
          const fiber = yield* Effect.forkChild(fs.grep("^(a+)+$"), { startImmediately: true })
          for (let turns = 300; turns > 0; turns--) yield* turn
          yield* Fiber.interrupt(fiber)
        })
      ).pipe(Effect.provideService(Limits, budget))
      yield* once
      // A restarted worker has a few descriptors of its own, fewer than fifteen leaking searches would leave.
      const before = openDescriptors() + 10
      for (let i = 0; i < 5; i++) yield* once
      for (let turns = 100_000; turns > 0 && openDescriptors() > before; turns--) yield* turn
      assert.isAtMost(openDescriptors(), before)
    })
  )

  it.live("leave no worker: their threads end and the program ends by itself", () =>
    Effect.gen(function* () {
      const { error, isStuck, out, status } = yield* guarded(
        `
        import * as Fs from "node:fs"
        import * as PosixHost from "./src/backends/PosixHost.ts"
        const root = Fs.mkdtempSync("/tmp/fs-algebra-hostile-")
        for (let i = 0; i < 500; i++) Fs.writeFileSync(root + "/f" + String(i).padStart(3, "0"), i === 299 ? "${letters}" : "aaa")
        const threads = () => Fs.readdirSync("/proc/self/task").length
        const workers = () => process.getActiveResourcesInfo().filter((name) => /worker|messageport/i.test(name)).length
        const search = Effect.scoped(Effect.gen(function* () {
          const fs = Filesystem.make(yield* PosixHost.make({ root }))
          const error = yield* Effect.flip(fs.grep("^(a+)+$"))
          const fiber = yield* Effect.forkChild(fs.grep("^(a+)+$").pipe(Effect.provideService(Limits, { ...standard, patternBudget: 2 ** 30 })), { startImmediately: true })
          for (let i = 0; i < 3000; i++) yield* Effect.callback((resume) => void setImmediate(() => resume(Effect.void)))
          yield* Fiber.interrupt(fiber)
          return error.path
        })).pipe(Effect.provideService(Limits, { ...standard, patternBudget: 200 }))
        const first = await run(search)
        const before = process.platform === "linux" ? threads() : 0
        const second = await run(search)
        while (process.platform === "linux" && threads() > before) await new Promise((resume) => setImmediate(resume))
        Fs.rmSync(root, { recursive: true })
        // A worker may still answer a withdrawn request, and its port stays open until then.
        for (let turns = 0; turns < 100_000 && workers() > 0; turns++) await new Promise((resume) => setImmediate(resume))
        say([first, second, workers()])
      `,
        { seconds: 40 }
      )
      assert.isFalse(isStuck, "it does not end")
      assert.deepStrictEqual([out, status], ['["f299","f299",0]', 0], error)
    })
  )
})

describe("an expression that V8 compiles for ever, in a thread that cannot be stopped", () => {
  it.live("fails with Timeout or InvalidArgument or succeeds, and the layer and the program end", () =>
    Effect.gen(function* () {
      // Two more optional letters double the time, and `terminate` waits for the end of the compilation.
      const { error, isStuck, out } = yield* guarded(
        `
        import * as Fs from "node:fs"
        import * as PosixHost from "./src/backends/PosixHost.ts"
        const root = Fs.mkdtempSync("/tmp/fs-algebra-hostile-")
        Fs.writeFileSync(root + "/f", "aaab")
        const search = Effect.scoped(Effect.gen(function* () {
          const fs = Filesystem.make(yield* PosixHost.make({ root }))
          return yield* told(fs.grep("a?".repeat(333) + "a".repeat(333)))
        })).pipe(Effect.provideService(Limits, { ...standard, patternBudget: 200 }))
        const tag = await run(search)
        Fs.rmSync(root, { recursive: true })
        say(tag)
      `,
        { seconds: 8 }
      )
      assert.isFalse(isStuck, "the layer is never given back, or the program never ends")
      assert.include(['"Timeout"', '"InvalidArgument"', '"done"'], out, error)
    })
  )
})

const globs: ReadonlyArray<string> = [
  `${"*a".repeat(10)}*b`,
  `${"*a".repeat(20)}*b`,
  `**/${"*a".repeat(20)}*b`,
  `${"**/a/".repeat(10)}b`,
  `${"**/".repeat(30)}b`,
  "+(ab|abab)",
  "**/+(a|aa)+(a|aa)b",
  "*(*(*(a|b)))c",
  "!(*a*a*a*a)b",
  "{a,b}".repeat(10),
  "{a,b}".repeat(17),
  "{1..100000}",
  "[[:constructor:]]",
  `{a,${"*a".repeat(100)}}`,
  `${"*?a".repeat(80)}b`,
  "a".repeat(1000),
  "*".repeat(999),
  `!(${"*|".repeat(480)})`
]

describe("globs that take picomatch minutes", () => {
  it.live(
    "succeed or fail with InvalidArgument in a tree of depth 30 with names of 60 letters, without blocking the event loop",
    () =>
      Effect.gen(function* () {
        const { error, isStuck, out, status } = yield* guarded(
          `
        import * as Fs from "node:fs"
        import * as Stream from "effect/Stream"
        import * as PosixHost from "./src/backends/PosixHost.ts"
        const top = Fs.mkdtempSync("/tmp/fs-algebra-globs-")
        let at = top
        for (let i = 0; i < 30; i++) {
          for (const name of ["a".repeat(60), "a".repeat(59) + "b", "ab".repeat(30), "f" + i]) Fs.writeFileSync(at + "/" + name, "aaa")
          Fs.mkdirSync((at = at + "/a"))
        }
        for (let i = 0; i < 300; i++) Fs.mkdirSync(top + "/" + "a".repeat(60) + i)
        let turns = 0
        let isOver = false
        const turn = () => { turns++; if (!isOver) setImmediate(turn) }
        turn()
        const search = Effect.scoped(Effect.gen(function* () {
          const fs = Filesystem.make(yield* PosixHost.make({ root: top }))
          const answers = []
          for (const glob of ${JSON.stringify(globs)}) {
            const before = turns
            const all = [fs.glob(glob), Stream.runDrain(fs.globStream(glob)), fs.glob("f29", { exclude: glob }), fs.grep("b", { glob })]
            const tags = yield* Effect.all(all.map(told))
            answers.push([new Set(tags).size, tags[0], tags[0] === "done" ? turns > before : true])
          }
          return [answers, (yield* fs.glob("f29")).matches.length]
        })).pipe(Effect.provideService(Limits, standard))
        const found = await run(search)
        isOver = true
        Fs.rmSync(top, { recursive: true })
        say(found)
      `,
          { seconds: 60 }
        )
        assert.isFalse(isStuck, "one of them is not answered")
        assert.strictEqual(status, 0, error)
        const [answers, after] = JSON.parse(out) as [Array<[number, string, boolean]>, number]
        assert.strictEqual(after, 1)
        for (const [index, [kinds, tag, turned]] of answers.entries()) {
          assert.deepStrictEqual([kinds, turned], [1, true], globs[index])
          assert.include(["done", "InvalidArgument"], tag, globs[index])
        }
      })
  )
})
