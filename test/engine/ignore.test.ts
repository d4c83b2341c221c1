import { assert, describe, it, layer } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as Ignore from "../../src/engine/ignore.ts"
import { enterDirectory, rulesAtBase } from "../../src/engine/ignoreFiles.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { mapBackend, path } from "./mapBackend.ts"

/** Returns the files below a directory that are not ignored. */
const left = Effect.fnUntraced(function* (port: Backend, base = "."): Effect.fn.Return<Array<string>, unknown> {
  const out: Array<string> = []
  const todo: Array<readonly [FsPath.FsPath, Ignore.Rules]> = [[path(base), yield* rulesAtBase(port, path(base))]]
  for (const [at, above] of todo) {
    const children = yield* port.list(at)
    const rules = yield* enterDirectory(above, port, at, children) ?? Effect.succeed(above)
    for (const { kind, name } of children) {
      if (Ignore.ignores(rules, name, kind === "directory")) continue
      if (kind === "directory") todo.push([FsPath.join(at, name), Ignore.below(rules, name)])
      else out.push(FsPath.join(at, name))
    }
  }
  return out.sort()
})

const blank = (...names: ReadonlyArray<string>): Record<string, string> => Object.fromEntries(names.map((name) => [name, ""]))

const segments = ["a", "b", "ab", "foo", "foobar", ".x", "a b", "é", "#a", "!b", "A", "a*", "[a]", "a ", "b\\"]

/** Files at many combinations of the names in the rules below. No file has the path of a directory. */
const files: ReadonlyArray<string> = segments.flatMap((one, i) =>
  [`${one}.f`, `${one}/d/a/b/foo`].concat(
    segments.filter((_, j) => (i + j) % 3 === 0).map((two) => `${one}/${two}`),
    ["a", "foo", "é"].flatMap((two) => segments.filter((_, k) => (i + k) % 5 === 0).map((three) => `${one}/d${two}/${three}`))
  )
)

/** The real git on a real working tree, with the rules of the tree alone. */
class Git extends Context.Service<Git, (rules: Readonly<Record<string, string>>) => Array<string>>()("test/Git") {}

const makeGit = (ignoreCase: boolean) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const root = mkdtempSync(join(tmpdir(), "fs-algebra-git-"))
      const env = { PATH: process.env["PATH"], HOME: root, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" }
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", args, { cwd: root, env, encoding: "utf8", maxBuffer: 2 ** 26 })
      git("init", "--quiet")
      git("config", "core.ignorecase", String(ignoreCase))
      for (const file of files) {
        mkdirSync(join(root, dirname(file)), { recursive: true })
        writeFileSync(join(root, file), "")
      }
      return { root, git }
    }),
    ({ root }) => Effect.sync(() => rmSync(root, { recursive: true }))
  ).pipe(
    Effect.map(({ git, root }) => (rules: Readonly<Record<string, string>>) => {
      for (const [file, text] of Object.entries(rules)) writeFileSync(join(root, file), text)
      const listed = git("ls-files", "--others", "--exclude-standard", "-z").split("\0")
      for (const file of Object.keys(rules)) rmSync(join(root, file))
      return listed.filter((name) => name !== "").sort()
    })
  )

const word = (parts: ReadonlyArray<string>) =>
  Arbitrary.map(Arbitrary.array(Arbitrary.schema(Schema.Literals(parts)), { minLength: 1, maxLength: 5 }), (all) =>
    all.join("")
  )
const parts = (
  "a b ab foo bar d / / / * ** **/ /** ? [ab] [!a] [^b] [a-f] \\ \\# \\! \\* é .x [ ] []a] A \\/ *** - [a-] [z-a] # ! .f " +
  "[[:alpha:]] [[:upper:]] [a\\]] [[:foo:]]"
)
  .split(" ")
  .concat([" ", "\\ "])
const line = (rule: ReadonlyArray<string>) =>
  Arbitrary.map(
    Arbitrary.all({
      before: Schema.Literals(["", "", "", "!", "#"]).pipe(Arbitrary.schema),
      rule: word(rule),
      after: Schema.Literals(["", "", "/", "  ", "\r", "/ \r"]).pipe(Arbitrary.schema)
    }),
    ({ after, before, rule }) => before + rule + after
  )
const text = (rule: ReadonlyArray<string>) =>
  Arbitrary.map(
    Arbitrary.all({
      bom: Arbitrary.schema(Schema.Literals(["", "", "\ufeff"])),
      lines: Arbitrary.array(line(rule), { minLength: 1, maxLength: 5 }),
      end: Arbitrary.schema(Schema.Literals(["\n", ""]))
    }),
    ({ bom, end, lines }) => bom + lines.join("\n") + end
  )
const directory = Arbitrary.schema(Schema.Literals(["a/", "foo/", "foo/da/", "é/", "a*/", "[a]/d/", "b\\/"]))

describe("a search with ignore files", () => {
  layer(Layer.effect(Git, makeGit(false)))("compared with git", (it) => {
    it.effect.prop(
      "excludes the same files as git for random ignore files",
      { top: text(parts), inner: text(parts), where: directory },
      ({ inner, top, where }) =>
        Effect.gen(function* () {
          const git = yield* Git
          const rules = { ".gitignore": top, [`${where}.gitignore`]: inner }
          assert.deepStrictEqual(yield* left(mapBackend({ ...blank(...files), ...rules })), git(rules))
        }),
      { arbitrary: { runs: 250 } }
    )

    it.effect("excludes the same files as git in the corner cases of git", () =>
      Effect.gen(function* () {
        const git = yield* Git
        const corners = [
          "foo**/a",
          "foo**/d**/a",
          "a**/d**/foo",
          "*/d**/a",
          "foo**//",
          "fo**/**/",
          "a/d**",
          "**//",
          "/**/**/a",
          "a/**",
          "a/**/",
          "d\\/a",
          "**\\/a",
          "a/***/foo",
          "f**"
        ]
        for (const rule of [...corners, "a\\", "[a", "/", "//", "\\/", "!", "a//b", "/a/", "*/", "a ", "a\\ ", "a \\ "]) {
          const rules = { ".gitignore": `${rule}\n` }
          assert.deepStrictEqual(yield* left(mapBackend({ ...blank(...files), ...rules })), git(rules), rule)
        }
      })
    )
  })

  layer(Layer.effect(Git, makeGit(true)))("compared with git and core.ignoreCase", (it) => {
    // When git ignores case, it never matches a capital letter after a backslash or in a set.
    const plain = parts.filter((part) => !part.includes("\\") && !part.includes("["))
    it.effect.prop(
      "excludes the same files as git for random ignore files",
      { top: text([...plain, "A", "FOO", "É"]) },
      ({ top }) =>
        Effect.gen(function* () {
          const git = yield* Git
          const rules = { ".gitignore": top }
          const port = mapBackend({ ...blank(...files), ...rules }, { caseSensitive: false })
          assert.deepStrictEqual(yield* left(port), git(rules))
        }),
      { arbitrary: { runs: 80 } }
    )
  })

  it.effect("follows the last matching rule of the deepest file", () =>
    Effect.gen(function* () {
      const port = mapBackend({
        ".gitignore": "*.log\n!keep.log\n",
        "src/.gitignore": "!a.log\nkeep.log\n",
        ...blank("a.log", "b.log", "keep.log", "src/a.log", "src/b.log", "src/keep.log")
      })
      assert.deepStrictEqual(yield* left(port), [".gitignore", "keep.log", "src/.gitignore", "src/a.log"])
    })
  )

  it.effect("prefers .ignore files to all .gitignore files", () =>
    Effect.gen(function* () {
      const port = mapBackend({
        ".ignore": "!a.log\nb.txt\n",
        ".gitignore": "*.log\n",
        "src/.gitignore": "a.log\n!b.txt\n",
        ...blank("a.log", "b.log", "b.txt", "src/a.log", "src/b.txt")
      })
      assert.deepStrictEqual(yield* left(port), [".gitignore", ".ignore", "a.log", "src/.gitignore", "src/a.log"])
    })
  )

  it.effect("applies rules above the base, which stay anchored at their own directory", () =>
    Effect.gen(function* () {
      const port = mapBackend({
        ".gitignore": "/src/gen/*.ts\n/lib\n",
        ".ignore": "*.tmp\n",
        "src/.gitignore": "gen/b.js\n",
        ...blank("src/gen/a.ts", "src/gen/b.js", "src/gen/c.tmp", "src/gen/d.js", "src/gen/lib/x")
      })
      assert.deepStrictEqual(yield* left(port, "src/gen"), ["src/gen/d.js", "src/gen/lib/x"])
    })
  )

  it.effect("finds no files if the base is ignored, or is below an ignored directory", () =>
    Effect.gen(function* () {
      const port = mapBackend({ ".gitignore": "build/\n!build/keep/\n", ...blank("build/a", "build/keep/b") })
      assert.deepStrictEqual(yield* left(port, "build"), [])
      assert.deepStrictEqual(yield* left(port, "build/keep"), [])
    })
  )

  it.effect("skips .git at any level, as a file or a directory", () =>
    Effect.gen(function* () {
      const port = mapBackend(blank(".git/config", "a", "sub/.git", "sub/b", ".github/c"))
      assert.deepStrictEqual(yield* left(port), [".github/c", "a", "sub/b"])
      assert.deepStrictEqual(yield* left(mapBackend(blank(".GIT/config"))), [".GIT/config"])
      assert.deepStrictEqual(yield* left(mapBackend(blank(".GIT/config"), { caseSensitive: false })), [])
    })
  )

  it.effect("ignores an ignore file that is a symlink, a directory or unreadable", () =>
    Effect.gen(function* () {
      const port = mapBackend(
        { "d/.gitignore/x": "", ".ignore": "*", ...blank("a") },
        { links: [".gitignore"], faults: { ".ignore": { _tag: "AccessDenied", why: "permission" } } }
      )
      assert.deepStrictEqual(yield* left(port), [".gitignore", ".ignore", "a", "d/.gitignore/x"])
    })
  )

  it.effect("reports a failure of the backend instead of assuming that an ignore file is missing", () =>
    Effect.gen(function* () {
      const port = mapBackend({ ".gitignore": "*" }, { faults: { ".gitignore": { _tag: "Unavailable", detail: "gone" } } })
      const fault = yield* Effect.flip(left(port))
      assert.deepStrictEqual(fault, { _tag: "Unavailable", detail: "gone" })
    })
  )

  it.effect("matches hostile rules in bounded time", () =>
    Effect.gen(function* () {
      const rules = [`${"*a".repeat(60)}*b`, `x${"**/".repeat(1300)}y`, `${"**/a/".repeat(800)}b`, `a${"/**".repeat(1300)}`]
      const port = mapBackend({ ".gitignore": rules.join("\n"), ["a".repeat(250)]: "", [`${"a/".repeat(500)}c`]: "" })
      assert.deepStrictEqual(yield* left(port), [".gitignore", "a".repeat(250)])
    })
  )
})
