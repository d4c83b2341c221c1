import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import type { GrepMatch } from "../../src/model/Entry.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { Limits, standard } from "../../src/model/Limits.ts"
import { Matching } from "../../src/runtime/matching.ts"

const on = <A, E>(tree: InMemory.Tree, program: (fs: Filesystem.Algebra) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    return yield* program(yield* Filesystem.Filesystem)
  }).pipe(Effect.provide(InMemory.layer({ tree })))

const brief = (matches: ReadonlyArray<GrepMatch>) =>
  matches.map((match) => `${match.path}:${match.lineNumber}:${match.matchStart}-${match.matchEnd}:${match.lineContent}`)

const hostile = { "evil.txt": `${"a".repeat(64)}b\n`, "fine.txt": "aaa\n" }

describe("grep", () => {
  it.effect("ends lines at LF and CRLF only", () =>
    on({ "a.txt": "x1\r\nx2\rx3\u2028x4\x0bx5\nno\nx6" }, (fs) =>
      Effect.map(fs.grep("x\\d$"), ({ matches }) =>
        assert.deepStrictEqual(brief(matches), ["a.txt:1:0-2:x1", "a.txt:2:9-11:x2\rx3\u2028x4\x0bx5", "a.txt:4:0-2:x6"])
      )
    )
  )

  it.effect("leaves a byte order mark out of the first line", () =>
    on({ "a.txt": "\ufefffoo\nfoo" }, (fs) =>
      Effect.map(fs.grep("^foo"), ({ matches }) =>
        assert.deepStrictEqual(brief(matches), ["a.txt:1:0-3:foo", "a.txt:2:0-3:foo"])
      )
    )
  )

  it.effect("reports columns in UTF-16 units", () =>
    on({ "a.txt": "é😀ab" }, (fs) =>
      Effect.map(fs.grep("ab"), ({ matches: [match] }) => {
        assert.strictEqual(match!.lineContent.slice(match!.matchStart, match!.matchEnd), "ab")
        assert.strictEqual(match!.matchStart, 3)
      })
    )
  )

  it.effect("limits context to the lines of the file", () =>
    on({ "a.txt": "1\n2\nhit\n4\n5", "b.txt": "hit" }, (fs) =>
      Effect.map(fs.grep("hit", { context: [1, 9] }), ({ matches }) =>
        assert.deepStrictEqual(
          matches.map(({ after, before }) => [before, after]),
          [
            [["2"], ["4", "5"]],
            [[], []]
          ]
        )
      )
    )
  )

  it.effect("skips a file as binary if it has a NUL in its first 8 KiB, or both invalid UTF-8 and a match", () =>
    on(
      {
        "nul.bin": Uint8Array.of(104, 105, 0),
        "late.txt": new Uint8Array([...Array.from({ length: 8192 }, () => 97), 0, 10, 104, 105]),
        "bad-hit": Uint8Array.of(104, 105, 255),
        "bad-miss": Uint8Array.of(120, 255)
      },
      (fs) =>
        Effect.map(fs.grep("hi"), ({ filesSearched, matches, skipped }) => {
          assert.deepStrictEqual(
            matches.map(({ path }) => path),
            ["late.txt"]
          )
          assert.deepStrictEqual([skipped.binary, filesSearched], [2, 2])
        })
    )
  )

  it.effect("counts and reports files that are too large, and reports them in a stream too", () =>
    on({ "big.txt": "hit".repeat(10), "small.txt": "hit" }, (fs) =>
      Effect.gen(function* () {
        const { matches, skipped } = yield* fs.grep("hit", { maxFileSize: 10 })
        assert.deepStrictEqual([matches.length, skipped.tooLarge], [1, 1])
        const heard: Array<string> = []
        yield* Stream.runDrain(fs.grepStream("hit", { maxFileSize: 10, onSkip: (path, why) => heard.push(`${why} ${path}`) }))
        assert.deepStrictEqual(heard, ["tooLarge big.txt"])
      })
    )
  )

  it.effect("returns every match once and in order over pages of any size, even if files are removed between two pages", () =>
    on(Object.fromEntries(["a", "b", "c", "d"].map((name) => [`${name}.txt`, "hit 1\nno\nhit 2\nhit 3\n"])), (fs) =>
      Effect.gen(function* () {
        const all = brief((yield* fs.grep("hit")).matches)
        for (const size of [1, 2, 3, 5, 11, 12]) {
          const seen: Array<string> = []
          let after: string | undefined
          for (;;) {
            const page = yield* fs.grep("hit", { maxMatches: size, after })
            seen.push(...brief(page.matches))
            assert.isAtMost(page.matches.length, size)
            assert.strictEqual(page.truncated, page.next !== undefined)
            if (page.next === undefined) break
            after = page.next
          }
          assert.deepStrictEqual(seen, all)
        }
        const { next } = yield* fs.grep("hit", { maxMatches: 4 })
        yield* fs.delete("b.txt")
        const rest = yield* fs.grep("hit", { after: next })
        assert.deepStrictEqual(
          brief(rest.matches),
          all.filter((line) => line > "c")
        )
      })
    )
  )

  it.effect("with maxMatches 0 returns no match, and `truncated` says whether there are any", () =>
    on({ "a.txt": "hit" }, (fs) =>
      Effect.gen(function* () {
        const some = yield* fs.grep("hit", { maxMatches: 0 })
        assert.deepStrictEqual([some.matches.length, some.truncated], [0, true])
        assert.strictEqual((yield* fs.grep("hit", { after: some.next })).matches.length, 1)
        assert.isFalse((yield* fs.grep("miss", { maxMatches: 0 })).truncated)
      })
    )
  )

  it.effect("is limited by maxGrepMatches by default, but grepStream is not", () =>
    on({ "a.txt": "hit\n".repeat(30) }, (fs) =>
      Effect.gen(function* () {
        const capped = yield* fs.grep("hit")
        assert.deepStrictEqual([capped.matches.length, capped.truncated], [20, true])
        assert.strictEqual((yield* Stream.runCollect(fs.grepStream("hit"))).length, 30)
      }).pipe(Effect.provideService(Limits, { ...standard, maxGrepMatches: 20 }))
    )
  )

  for (const options of [
    { maxMatches: -1 },
    { maxMatches: 1.5 },
    { maxMatches: Number.NaN },
    { context: -1 },
    { context: 1001 },
    { context: [0, 1001] as const },
    { maxFileSize: -1 },
    { after: "not a cursor" },
    { after: "" },
    { glob: "[" },
    { exclude: " " }
  ]) {
    it.effect(`with ${JSON.stringify(options)} fails with InvalidArgument`, () =>
      on({}, (fs) =>
        Effect.map(Effect.flip(fs.grep("a", options)), (error) => assert.strictEqual(error._tag, "InvalidArgument"))
      )
    )
  }

  it.live("stops a hostile pattern with a Timeout that names the file, and does not block the event loop", () =>
    on(hostile, (fs) =>
      Effect.gen(function* () {
        let ticks = 0
        const timer = setInterval(() => ticks++, 5)
        const error = yield* Effect.flip(fs.grep("^(a+)+$"))
        clearInterval(timer)
        assert.deepStrictEqual([error._tag, error.path], ["Timeout", "evil.txt"])
        assert.isAbove(ticks, 2)
        // The terminated worker has been replaced.
        assert.deepStrictEqual(brief((yield* fs.grep("^(a+)+$", { path: "fine.txt" })).matches), ["fine.txt:1:0-3:aaa"])
      }).pipe(Effect.provideService(Limits, { ...standard, patternBudget: 200 }))
    )
  )

  it.live("stops the workers when it is interrupted", () =>
    on(hostile, (fs) =>
      Effect.gen(function* () {
        const search = yield* Effect.forkChild(fs.grep("^(a+)+$"), { startImmediately: true })
        yield* Effect.sleep("50 millis")
        yield* Fiber.interrupt(search)
        // There are two searches for each worker, so one of them would wait for a worker that is still busy.
        const found = yield* Effect.all(
          Array.from({ length: 8 }, () => fs.grep("(a)+", { path: "fine.txt" })),
          { concurrency: "unbounded" }
        )
        for (const { matches } of found) assert.lengthOf(matches, 1)
      }).pipe(Effect.provideService(Limits, { ...standard, patternBudget: Number.POSITIVE_INFINITY }))
    )
  )

  it.live("does not keep a program alive with its idle workers", () =>
    Effect.sync(() => {
      const program = `
        import * as Effect from "effect/Effect"
        import * as InMemory from "./src/backends/InMemory.ts"
        import { Filesystem } from "./src/filesystem/Filesystem.ts"
        const found = Effect.gen(function*() { return yield* (yield* Filesystem).grep("(a|b)+c") })
        console.log((await Effect.runPromise(found.pipe(Effect.provide(InMemory.layer({ tree: { "x.txt": "abc" } }))))).matches.length)
      `
      const child = spawnSync(process.execPath, ["--input-type=module-typescript", "-e", program], {
        encoding: "utf8",
        timeout: 60_000
      })
      assert.deepStrictEqual([child.stdout.trim(), child.status], ["1", 0], child.stderr)
    })
  )

  it.effect("uses the Matching service if one is provided", () =>
    on({ "a.txt": "abc" }, (fs) =>
      Effect.gen(function* () {
        const found = { lineNumber: 7, lineContent: "from elsewhere", matchStart: 0, matchEnd: 4 }
        const matching: Matching = {
          searchInline: () => [],
          searchInWorkers: (_, { pathOf }) => Effect.succeed([{ found: [{ path: pathOf(0), ...found }] }])
        }
        const { matches } = yield* Effect.provideService(fs.grep("(a|b)+"), Matching, matching)
        assert.strictEqual(matches[0]!.lineNumber, 7)
      })
    )
  )
})

const ripgrep = spawnSync("rg", ["--version"]).status === 0
if (!ripgrep) console.log("skipped: grep against ripgrep; apt-get install ripgrep")

describe.runIf(ripgrep)("grep agrees with ripgrep", () => {
  const tree: Record<string, string> = {
    "README.md": "# Title\n\nSome text, some more.\nTODO: finish\n",
    "src/a.ts": 'import { x } from "./b.ts"\r\nexport const foo = 1\r\nconst food = foo + 1\r\n',
    "src/b.ts": "// todo later\nexport const x = () => {\n\treturn foo(1, [2, 3])\n}\n",
    "src/deep/er/c.ts": "",
    "src/é😀.txt": "Grüße, 世界\nstraße\n",
    "a-b.txt": "a\n\n\nb",
    "a.txt": "foo\rbar\nbaz",
    ".hidden/x.txt": "foo in hiding\n"
  }
  const root = mkdtempSync(join(tmpdir(), "fs-algebra-rg-"))
  for (const [path, text] of Object.entries(tree)) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  const nested = (): InMemory.Tree => {
    const top: Record<string, unknown> = {}
    for (const [path, text] of Object.entries(tree)) {
      const names = path.split("/")
      const last = names.pop()!
      let at = top
      for (const name of names) at = (at[name] ??= {}) as Record<string, unknown>
      at[last] = text
    }
    return top as InMemory.Tree
  }

  const rows: ReadonlyArray<readonly [pattern: string, options: Filesystem.GrepOptions, flags: ReadonlyArray<string>]> = [
    ["foo", {}, []],
    ["foo", { wholeWord: true }, ["-w"]],
    ["todo", { ignoreCase: true }, ["-i"]],
    ["(?i)todo", {}, []],
    ["[2, 3]", { literal: true }, ["-F"]],
    ["^$", {}, []],
    ["^\\s", {}, []],
    ["\\bfoo\\b", {}, []],
    ["ß", {}, []],
    ["\\p{Lu}\\w+", {}, []],
    ["export|import", {}, []],
    ["\\}$", { glob: "*.ts" }, ["-g", "*.ts"]],
    [".", { path: "src" }, ["src"]],
    ["a", { exclude: "src" }, ["-g", "!src"]],
    ["(?P<a>o)o", {}, []]
  ]
  for (const [pattern, options, flags] of rows) {
    it.effect(`for ${pattern} ${JSON.stringify(options)}`, () =>
      on(nested(), (fs) =>
        Effect.gen(function* () {
          const ours = brief((yield* fs.grep(pattern, options)).matches).map((line) => line.replace(/:\d+-\d+:/, ":"))
          const args = ["--no-config", "-uu", "--crlf", "--no-heading", "-n", "--sort", "path", ...flags]
          const paths = flags.includes("src") ? [] : ["."]
          let out = ""
          try {
            out = execFileSync(
              "rg",
              [...args.filter((flag) => flag !== "src"), "-e", pattern, ...(paths.length ? paths : ["src"])],
              {
                cwd: root,
                encoding: "utf8"
              }
            )
          } catch {
            // Status 1 means no match.
          }
          const theirs = out
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => line.replace(/^\.\//, "").replace(/\r$/, ""))
          assert.deepStrictEqual([...ours].sort(), theirs.sort())
        })
      )
    )
  }
  process.on("exit", () => rmSync(root, { recursive: true, force: true }))
})
