/** Tests that searches skip the files that git ignores, unless a path names them or --no-ignore is given. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { shell } from "./terminal.ts"

const tree = {
  ".gitignore": "dist\n*.log\n",
  ".git": { HEAD: "needle\n" },
  "a.ts": "needle\n",
  "debug.log": "needle\n",
  dist: { "a.js": "needle\n", "b[1]": { "c.js": "needle\n" } },
  src: { "b.ts": "needle\n", "b.log": "needle\n" }
}

const ran = (...args: ReadonlyArray<string>) => Effect.flatMap(shell(tree), ({ run }) => run(args))
const hint = "(--no-ignore includes them)"

describe(".git and files that git ignores", () => {
  it.effect("are skipped and counted by grep, glob and tree", () =>
    Effect.gen(function* () {
      const grep = yield* ran("grep", "needle")
      assert.strictEqual(grep.out, "a.ts:1:needle\nsrc/b.ts:1:needle\n")
      const glob = yield* ran("glob", "*")
      assert.strictEqual(glob.out, ".gitignore\na.ts\nsrc/b.ts\n")
      const drawn = yield* ran("tree")
      assert.match(drawn.out, /^1 directory, 3 files, /m)
      for (const { err } of [grep, glob, drawn]) assert.strictEqual(err, `skipped: 4 ignored ${hint}\n`)
    })
  )
  it.effect("are searched and listed with --no-ignore", () =>
    Effect.gen(function* () {
      const grep = yield* ran("grep", "needle", "--no-ignore", "--count")
      assert.strictEqual(grep.out.trimEnd().split("\n").length, 7)
      assert.strictEqual(grep.err, "")
      assert.include((yield* ran("glob", "*.js", "--no-ignore")).out, "dist/a.js")
      assert.include((yield* ran("tree", "--no-ignore")).out, "dist/")
    })
  )
  it.effect("are skipped with --gitignore too, which cannot be combined with --no-ignore", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ran("glob", "*.js", "--gitignore")).code, 1)
      assert.strictEqual((yield* ran("glob", "*.js", "--gitignore", "--no-ignore")).code, 2)
    })
  )
  it.effect("are searched if the path of the search names them", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ran("grep", "needle", "debug.log")).out, "debug.log:1:needle\n")
      assert.strictEqual((yield* ran("grep", "needle", "dist/a.js", "a.ts")).out, "a.ts:1:needle\ndist/a.js:1:needle\n")
      assert.strictEqual((yield* ran("grep", "needle", "dist")).out, "dist/a.js:1:needle\ndist/b[1]/c.js:1:needle\n")
      assert.strictEqual((yield* ran("grep", "needle", "dist/b[1]")).out, "dist/b[1]/c.js:1:needle\n")
      assert.strictEqual((yield* ran("grep", "needle", ".git")).out, ".git/HEAD:1:needle\n")
      assert.strictEqual((yield* ran("glob", "*.js", "--path", "dist")).out, "dist/a.js\ndist/b[1]/c.js\n")
      assert.include((yield* ran("tree", "dist")).out, "a.js")
    })
  )
  it.effect("are skipped below a named directory that is not ignored", () =>
    Effect.gen(function* () {
      const grep = yield* ran("grep", "needle", "src")
      assert.strictEqual(grep.out, "src/b.ts:1:needle\n")
      assert.strictEqual(grep.err, `skipped: 1 ignored ${hint}\n`)
    })
  )
  it.effect("are counted in the JSON output, also with --max", () =>
    Effect.gen(function* () {
      for (const max of [[], ["--max", "100"]]) {
        const { err } = yield* ran("glob", "*", ...max, "--json")
        assert.deepInclude((JSON.parse(err) as { skipped: object }).skipped, { ignored: 4 })
      }
    })
  )
})
