import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { readOnly } from "../../src/filesystem/Decorator.ts"
import { type Algebra, type GrepOptions, make } from "../../src/filesystem/Filesystem.ts"
import type { GrepMatch } from "../../src/model/Entry.ts"
import { portable } from "../../src/port/Backend.ts"
import { searchProcesses } from "../../src/runtime/searchProcesses.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { grow, pick, random, type Shape } from "./trees.ts"

const shape: Shape = { directories: 500, files: 1500, strange: true }

/** Opens a large tree on disk twice: with all accelerations of the backend, and with the seven primitives alone. */
const both = (seed: number, size: Shape = shape, options: Partial<PosixHost.PosixHostOptions> = {}) =>
  Effect.gen(function* () {
    const root = yield* fastDirectory
    if (size.directories > 0) grow(root, seed, size)
    const port = yield* Effect.orDie(PosixHost.make({ ...options, root }))
    return { root, fast: make(port), plain: make(portable(port)) }
  })

type Call = (fs: Algebra, told: (path: string, why: string) => void) => Effect.Effect<unknown, { readonly _tag: string }>

/** Runs a call and returns its result or error and its `onSkip` reports. */
const observe = (fs: Algebra, call: Call) =>
  Effect.suspend(() => {
    const told: Array<string> = []
    return Effect.map(
      Effect.match(
        call(fs, (path, why) => told.push(`${why} ${path}`)),
        { onSuccess: (value): unknown => value, onFailure: (error): unknown => ({ failed: { ...error } }) }
      ),
      (answer) => ({ answer, told })
    )
  })

const agree = (fast: Algebra, plain: Algebra, what: string, call: Call) =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* observe(fast, call), yield* observe(plain, call), what)
  })

const globs = ["**", "*.ts", "**/*.js", "src/**", "a*/**/*.ts", "**/{lib,test}/**", "[A-Z]*", "é*", "**/x.ts/*", "nothing/**"]
const excludes = [undefined, "lib", ["*.js", "!index.js"], "**/a*/**", "node_modules/"]

const patterns = [
  "foo",
  "^import",
  "return",
  "TODO|FIXME",
  "fo+bar?",
  "\\bfoo\\b",
  "[Tt]odo",
  "\\w{6,}",
  "^$",
  "$",
  "é",
  "漢字$",
  "\u{1F600}",
  "\\s\\S",
  "a(?=a)",
  "(?<!f)oo",
  "(foo|x)1?",
  ".\\u2028",
  "\\r",
  "[^a-z ]+",
  "long line",
  "k",
  "\ufffd",
  "(a)\\1"
]

const grepOptions = (next: () => number): GrepOptions => ({
  ...(next() < 0.3 && { ignoreCase: true }),
  ...(next() < 0.2 && { wholeWord: true }),
  ...(next() < 0.2 && { multiline: true }),
  ...(next() < 0.2 && { context: [Math.floor(next() * 3), Math.floor(next() * 3)] as const }),
  ...(next() < 0.2 && { maxFileSize: Math.floor(next() * 300) }),
  ...(next() < 0.3 && { gitignore: true }),
  ...(next() < 0.3 && { glob: pick(next, globs) }),
  exclude: pick(next, excludes),
  maxMatches: pick(next, [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0, 1, 7, 100, 1000])
})

const rg = ["/usr/bin/rg", "rg"].find((command) => {
  try {
    execFileSync(command, ["--version"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
})

const isSoak = process.env["FS_ALGEBRA_SOAK"] !== undefined

/** Returns both options in the soak, and otherwise one of them, alternately. */
const inTurn = <A>(both: ReadonlyArray<A>, turn: number): ReadonlyArray<A> => (isSoak ? both : [both[turn % both.length]!])

describe("a search by workers gives the same answers as a search by the port's primitive calls", () => {
  for (const seed of isSoak ? [1, 2, 3] : [2]) {
    it.live(`for walks and globs, tree ${seed}`, () =>
      Effect.gen(function* () {
        const { fast, plain } = yield* both(seed)
        for (const [i, exclude] of excludes.entries()) {
          for (const gitignore of [false, true]) {
            yield* agree(fast, plain, `walk ${exclude} ${gitignore}`, (fs, onSkip) =>
              Stream.runCollect(fs.walk(".", { exclude, gitignore, onSkip }))
            )
          }
          for (const [j, glob] of globs.entries()) {
            for (const gitignore of inTurn([false, true], i + j)) {
              yield* agree(fast, plain, `glob ${glob} ${exclude} ${gitignore}`, (fs, onSkip) =>
                fs.glob(glob, { exclude, gitignore, onSkip, kinds: ["file", "directory", "symlink"] })
              )
            }
          }
        }
        yield* agree(fast, plain, "sizes", (fs) => Stream.runCollect(fs.walk(".", { sizes: true })))
        yield* agree(fast, plain, "depth", (fs) => Stream.runCollect(fs.walk(".", { maxDepth: 2 })))
      }).pipe(Effect.scoped)
    )

    it.live(`for the kinds of entries, tree ${seed}`, () =>
      Effect.gen(function* () {
        const { fast, plain, root } = yield* both(seed, { ...shape, directories: 0 })
        const directories = Array.from({ length: 300 }, (_, i) => join(root, `d${i}`))
        for (const directory of directories) {
          mkdirSync(join(directory, "b"), { recursive: true })
          writeFileSync(join(directory, "b.ts"), "")
          symlinkSync("b", join(directory, "b-link"))
        }
        execFileSync(
          "mkfifo",
          directories.map((directory) => join(directory, "b-pipe"))
        )
        const walk: Call = (fs, onSkip) => Stream.runCollect(fs.walk(".", { onSkip }))
        // The first walks start the search processes, and run without them.
        while (searchProcesses()?.areWarm() === false) {
          yield* observe(fast, walk)
          yield* Effect.sleep(5)
        }
        yield* agree(fast, plain, "walk", walk)
      }).pipe(Effect.scoped)
    )

    it.live(
      `for greps, tree ${seed}`,
      () =>
        Effect.gen(function* () {
          const { fast, plain } = yield* both(seed)
          const next = random(seed + 100)
          const whole = (pattern: string) => {
            const options = grepOptions(next)
            return agree(fast, plain, `${pattern} ${JSON.stringify(options)}`, (fs, onSkip) =>
              fs.grep(pattern, { ...options, onSkip })
            )
          }
          const streamed = (pattern: string) => {
            const { maxMatches: _, ...unbounded } = grepOptions(next)
            return agree(fast, plain, `stream of ${pattern} ${JSON.stringify(unbounded)}`, (fs, onSkip) =>
              Stream.runCollect(fs.grepStream(pattern, { ...unbounded, onSkip }))
            )
          }
          for (const [i, pattern] of patterns.entries()) {
            for (const search of inTurn([whole, streamed], i)) yield* search(pattern)
          }
        }).pipe(Effect.scoped),
      120_000
    )
  }

  it.live("for a search that is read page by page", () =>
    Effect.gen(function* () {
      const { fast, plain } = yield* both(4)
      const whole = yield* plain.grep("foo|é", { maxMatches: Number.POSITIVE_INFINITY })
      const found: Array<GrepMatch> = []
      let after: string | undefined
      do {
        const page = yield* fast.grep("foo|é", { maxMatches: 97, after })
        found.push(...page.matches)
        after = page.next
      } while (after !== undefined)
      assert.deepStrictEqual(found, whole.matches)
      const all = yield* plain.glob("**", { maxMatches: Number.POSITIVE_INFINITY })
      const globbed: Array<string> = []
      do {
        const page: { readonly matches: ReadonlyArray<{ readonly path: string }>; readonly next?: string } = yield* fast.glob(
          "**",
          {
            maxMatches: 131,
            after
          }
        )
        globbed.push(...page.matches.map(({ path }) => path))
        after = page.next
      } while (after !== undefined)
      assert.deepStrictEqual(
        globbed,
        all.matches.map(({ path }) => path)
      )
    }).pipe(Effect.scoped)
  )

  it.live("for hard links that are rejected", () =>
    Effect.gen(function* () {
      const { fast, plain, root } = yield* both(5, { ...shape, strange: false }, { hardlinks: "reject" })
      execFileSync("sh", ["-c", `find . -type f -name 'a*' | head -50 | while read f; do ln "$f" "$f.second"; done`], {
        cwd: root
      })
      yield* agree(fast, plain, "hard links", (fs, onSkip) => fs.grep("foo", { maxMatches: Number.POSITIVE_INFINITY, onSkip }))
    }).pipe(Effect.scoped)
  )

  it.live("after a cursor behind many excluded files", () =>
    Effect.gen(function* () {
      const { fast, plain, root } = yield* both(0, { ...shape, directories: 0 })
      for (let i = 0; i < 200; i++) writeFileSync(join(root, `a${i}.log`), "foo\n")
      writeFileSync(join(root, "z.txt"), "foo\n".repeat(9))
      for (const after of ["3:z.txt", "8:z.txt", "9:z.txt", "0:a7.log"]) {
        yield* agree(fast, plain, after, (fs, onSkip) => fs.grep("foo", { after, exclude: "*.log", maxMatches: 3, onSkip }))
      }
    }).pipe(Effect.scoped)
  )

  it.live("for an answer larger than one message of a worker", () =>
    Effect.gen(function* () {
      const { fast, plain, root } = yield* both(0, { ...shape, directories: 0 })
      for (let i = 0; i < 150; i++)
        writeFileSync(join(root, `f${i}`), `foo of file ${i}\n`.repeat(i % 10 === 0 ? 20_000 : 2000))
      for (const options of [{}, { context: 1 }]) {
        const counts = (fs: Algebra) =>
          Stream.runFold(
            fs.grepStream("foo", options),
            () => new Map<string, number>(),
            (counts, { path }) => counts.set(path, (counts.get(path) ?? 0) + 1)
          )
        assert.deepStrictEqual(yield* counts(fast), yield* counts(plain))
      }
    }).pipe(Effect.scoped)
  )

  it.live("through a read-only view", () =>
    Effect.gen(function* () {
      const { fast } = yield* both(8)
      const view = readOnly(fast)
      assert.isDefined(view.port.explore)
      yield* agree(view, fast, "readOnly", (fs) => fs.grep("foo", { maxMatches: Number.POSITIVE_INFINITY }))
    }).pipe(Effect.scoped)
  )
})

describe("a search by workers of a tree that changes", () => {
  it.live("returns only correct lines, and every file that stays the same", () =>
    Effect.gen(function* () {
      const { fast, plain, root } = yield* both(6, { ...shape, strange: false })
      const everything = (fs: Algebra) =>
        Effect.map(fs.glob("**", { maxMatches: Number.POSITIVE_INFINITY }), ({ matches }) =>
          matches.map(({ path }) => path as string)
        )
      const unchanged = yield* everything(plain)
      const change = Effect.gen(function* () {
        for (let i = 0; ; i++) {
          mkdirSync(join(root, `new${i % 7}`, "deep"), { recursive: true })
          writeFileSync(join(root, `new${i % 7}`, "deep", "f"), "needle of mine\n")
          if (i % 3 === 0) rmSync(join(root, `new${(i + 3) % 7}`), { recursive: true, force: true })
          else renameSync(join(root, `new${i % 7}`, "deep"), join(root, `new${i % 7}`, "other"))
          if (i % 5 === 0) rmSync(join(root, `new${i % 7}`), { recursive: true, force: true })
          yield* Effect.yieldNow
        }
      }).pipe(Effect.catchDefect(() => Effect.void))
      const search = Effect.gen(function* () {
        for (let i = 0; i < 20; i++) {
          const { matches } = yield* fast.grep("needle of mine", { maxMatches: Number.POSITIVE_INFINITY })
          for (const { lineContent, path } of matches) {
            assert.strictEqual(lineContent, "needle of mine")
            assert.match(path, /^new\d\/(?:deep|other)\/f$/)
          }
          const found = new Set(yield* everything(fast))
          assert.deepStrictEqual(
            unchanged.filter((path) => !found.has(path)),
            []
          )
        }
      })
      yield* Effect.raceFirst(search, Effect.andThen(Effect.forever(change), Effect.never))
    }).pipe(Effect.scoped)
  )
})

describe("several searches at once", () => {
  it.live.skipIf(process.platform !== "linux")("find every match with few descriptors", () =>
    Effect.gen(function* () {
      const root = yield* fastDirectory
      for (let i = 0; i < 700; i++) {
        mkdirSync(join(root, `d${i}`))
        writeFileSync(join(root, `d${i}`, "f"), "foo\n")
      }
      const program = fileURLToPath(new URL("grepAll.ts", import.meta.url))
      const run = spawnSync("sh", ["-c", 'ulimit -n 160; exec "$0" "$@"', process.execPath, program, root, "3"])
      assert.strictEqual(run.stdout.toString().trim(), "[[700,0],[700,0],[700,0]]", run.stderr.toString())
    }).pipe(Effect.scoped)
  )
})

describe("a search, compared with ripgrep,", () => {
  const shared = ["foo", "^import", "TODO|FIXME", "fo+bar?", "[Tt]odo", "a.b", "漢字", "x[0-9]"]

  it.live.skipIf(rg === undefined && process.env.FS_ALGEBRA_NO_SKIP === undefined)(
    "finds the same lines of text files (needs ripgrep: apt-get install ripgrep)",
    () =>
      Effect.gen(function* () {
        const { fast, root } = yield* both(7, { ...shape, strange: false })
        for (const pattern of shared) {
          for (const ignoreCase of [false, true]) {
            const { matches, skipped } = yield* fast.grep(pattern, { maxMatches: Number.POSITIVE_INFINITY, ignoreCase })
            assert.isAbove(skipped.binary, 0)
            const binary: Array<string> = []
            yield* Stream.runDrain(fast.grepStream("[^]|^$", { onSkip: (path) => binary.push(path) }))
            const flags = ["--no-config", "-uu", "-n", "--null", "--no-heading", "--text", ...(ignoreCase ? ["-i"] : [])]
            const { status, stdout } = spawnSync(rg!, [...flags, "-e", pattern, "."], { cwd: root, maxBuffer: 2 ** 28 })
            // Status 1 means no match.
            assert.include([0, 1], status)
            const out = stdout.toString("latin1")
            const theirs = [...out.matchAll(/^\.\/([^\0\n]*)\0(\d+):/gm)]
              .map(([, path, number]) => [Buffer.from(path!, "latin1").toString(), number!] as const)
              .filter(([path]) => !binary.includes(path))
            assert.deepStrictEqual(
              matches.map(({ lineNumber, path }) => `${path}:${lineNumber}`).sort(),
              theirs.map(([path, number]) => `${path}:${number}`).sort(),
              pattern
            )
          }
        }
      }).pipe(Effect.scoped)
  )
})
