import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { compare } from "../../src/model/FsPath.ts"
import type { Backend, Fault } from "../../src/port/Backend.ts"

const on = <A, E>(tree: InMemory.Tree, program: (fs: Filesystem.Algebra) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    return yield* program(yield* Filesystem.Filesystem)
  }).pipe(Effect.provide(InMemory.layer({ tree })))

const paths = <E>(entries: Stream.Stream<{ readonly path: string }, E>) =>
  Effect.map(Stream.runCollect(entries), (all) => all.map(({ path }) => path))

const denied: Fault = { _tag: "AccessDenied", why: "permission" }

/** Returns a filesystem on which some directories cannot be listed. The filesystem records every listing. */
const guarded = (fs: Filesystem.Algebra, closed: ReadonlyArray<string>, listed: Array<string>): Filesystem.Algebra => {
  const port: Backend = {
    ...fs.port,
    explore: undefined,
    list: (path) =>
      Effect.suspend(() => {
        listed.push(path)
        return closed.includes(path) ? Effect.fail(denied) : fs.port.list(path)
      })
  }
  return Filesystem.make(port)
}

const tree: InMemory.Tree = {
  "a-b.txt": "",
  "a.txt": "",
  a: { "b.txt": "1234", deep: { "x.ts": "" } },
  src: { "i.ts": "", lib: { "j.ts": "", "k.js": "" } },
  link: { link: "src" },
  z: {}
}

describe("walk", () => {
  it.effect("returns entries in path order, each directory directly before its entries, and follows no symlink", () =>
    on(tree, (fs) =>
      Effect.map(paths(fs.walk()), (found) =>
        assert.deepStrictEqual(found, [
          "a-b.txt",
          "a.txt",
          "a",
          "a/b.txt",
          "a/deep",
          "a/deep/x.ts",
          "link",
          "src",
          "src/i.ts",
          "src/lib",
          "src/lib/j.ts",
          "src/lib/k.js",
          "z"
        ])
      )
    )
  )

  it.effect("keeps the caller's path for a base that is a link, as do glob and grep", () =>
    on(tree, (fs) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* paths(fs.walk("link/lib")), ["link/lib/j.ts", "link/lib/k.js"])
        assert.deepStrictEqual(
          (yield* fs.glob("*.js", { path: "link" })).matches.map(({ path }) => path),
          ["link/lib/k.js"]
        )
        yield* fs.write("src/lib/k.js", "hit")
        assert.deepStrictEqual(
          (yield* fs.grep("hit", { path: "link" })).matches.map(({ path }) => path),
          ["link/lib/k.js"]
        )
      })
    )
  )

  it.effect("reports sizes on request, limits the depth, and reports excluded entries without entering them", () =>
    on(tree, (fs) =>
      Effect.gen(function* () {
        const sized = yield* Stream.runCollect(fs.walk("a", { sizes: true }))
        assert.deepStrictEqual(
          sized.map(({ path, sizeBytes }): ReadonlyArray<unknown> => [path, sizeBytes]),
          [
            ["a/b.txt", 4],
            ["a/deep", 0],
            ["a/deep/x.ts", 0]
          ]
        )
        assert.deepStrictEqual(yield* paths(fs.walk("src", { maxDepth: 1 })), ["src/i.ts", "src/lib"])
        assert.deepStrictEqual(yield* paths(fs.walk("src", { maxDepth: 0 })), [])
        const listed: Array<string> = []
        const skipped: Array<string> = []
        const found = yield* paths(
          guarded(fs, [], listed).walk(".", {
            exclude: ["src", "*.txt", "!a.txt"],
            onSkip: (path, why) => skipped.push(`${why} ${path}`)
          })
        )
        assert.deepStrictEqual(found, ["a.txt", "a", "a/deep", "a/deep/x.ts", "link", "z"])
        assert.deepStrictEqual(skipped, ["ignored a-b.txt", "ignored a/b.txt", "ignored src"])
        assert.notInclude(listed, "src")
      })
    )
  )

  it.effect("fails for a missing base, a file, or an unreadable directory, which the error names", () =>
    on(tree, (fs) =>
      Effect.gen(function* () {
        const tag = (path: string) => Effect.map(Effect.flip(Stream.runDrain(fs.walk(path))), (error) => error._tag)
        assert.strictEqual(yield* tag("nope"), "NotFound")
        assert.strictEqual(yield* tag("a.txt"), "NotADirectory")
        assert.strictEqual(yield* tag("a.txt/x"), "NotFound")
        const error = yield* Effect.flip(Stream.runDrain(guarded(fs, ["src/lib"], []).walk()))
        assert.deepStrictEqual([error._tag, error.path], ["AccessDenied", "src/lib"])
      })
    )
  )

  it.effect("handles a tree that is ten thousand levels deep", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      let at = "."
      for (let i = 0; i < 10_000; i++) {
        at = at === "." ? "d" : `${at}/d`
        yield* fs.port.makeDirectory(at as never)
      }
      const depth = yield* Stream.runFold(
        fs.walk(),
        () => 0,
        (count) => count + 1
      )
      assert.strictEqual(depth, 10_000)
      assert.deepStrictEqual(yield* fs.delete("d", { recursive: true }), { deleted: 1, directories: 10_000 })
    }).pipe(Effect.provide(InMemory.layer()))
  )
})

describe("glob", () => {
  it.effect("reports directories that it cannot read, and continues", () =>
    on(tree, (fs) =>
      Effect.gen(function* () {
        const { matches, skipped } = yield* guarded(fs, ["src/lib"], []).glob("*.ts")
        assert.deepStrictEqual(
          matches.map(({ path }) => path),
          ["a/deep/x.ts", "src/i.ts"]
        )
        assert.deepStrictEqual([skipped.unreadable, skipped.unreadablePaths], [1, ["src/lib"]])
      })
    )
  )

  it.effect("lists only directories in which something can match", () =>
    on(tree, (fs) =>
      Effect.gen(function* () {
        const listed: Array<string> = []
        yield* guarded(fs, [], listed).glob("src/*.ts")
        assert.deepStrictEqual(listed, [".", "src"])
      })
    )
  )

  it.effect("returns only entries of the requested kinds", () =>
    on(tree, (fs) =>
      Effect.gen(function* () {
        const of = (pattern: string, kinds: Filesystem.GlobOptions["kinds"]) =>
          Effect.map(fs.glob(pattern, { kinds }), ({ matches }) => matches.map(({ path }) => path))
        assert.deepStrictEqual(yield* of("**", ["directory"]), ["a", "a/deep", "src", "src/lib", "z"])
        assert.deepStrictEqual(yield* of("*/", ["directory", "file"]), ["a", "a/deep", "src", "src/lib", "z"])
        assert.deepStrictEqual(yield* of("*", ["symlink"]), ["link"])
        assert.deepStrictEqual(yield* of("*", []), [])
      })
    )
  )

  it.effect("fails with NotFound for a missing base and NotADirectory for a file", () =>
    on(tree, (fs) =>
      Effect.gen(function* () {
        assert.strictEqual((yield* Effect.flip(fs.glob("*", { path: "nope" })))._tag, "NotFound")
        assert.strictEqual((yield* Effect.flip(fs.glob("*", { path: "a.txt/below" })))._tag, "NotFound")
        assert.strictEqual((yield* Effect.flip(fs.glob("*", { path: "a.txt" })))._tag, "NotADirectory")
      })
    )
  )

  it.effect("returns every match once over pages of any size, and reports skipped entries up to the last match", () =>
    on(tree, (fs) =>
      Effect.gen(function* () {
        const kinds = ["file", "directory", "symlink"] as const
        const all = (yield* fs.glob("**", { kinds })).matches.map(({ path }) => path)
        for (const size of [1, 2, 5, all.length, all.length + 1]) {
          const seen: Array<string> = []
          for (let after: string | undefined; ;) {
            const page = yield* fs.glob("**", { kinds, maxMatches: size, after })
            seen.push(...page.matches.map(({ path }) => path))
            assert.strictEqual(page.truncated, page.next !== undefined)
            if (page.next === undefined) break
            after = page.next
          }
          assert.deepStrictEqual(seen, all)
        }
        const exclude = ["a.txt", "lib", "z"]
        const cut = yield* fs.glob("*.ts", { maxMatches: 1, exclude })
        assert.deepStrictEqual([cut.matches[0]!.path, cut.skipped.ignored], ["a/deep/x.ts", 1])
        // The next page counts only later skips, so that the pages add up to the total.
        const rest = yield* fs.glob("*.ts", { exclude, after: cut.next })
        assert.deepStrictEqual([rest.matches.length, rest.skipped.ignored], [1, 2])
      })
    )
  )

  it.effect("applies the ignore files from the root of the filesystem down, for any base", () =>
    on(
      {
        ".gitignore": "*.log\n/build/\n!keep.log\n",
        a: { ".ignore": "!b.log\n", "b.log": "x", "c.log": "x", "keep.log": "x" },
        build: { o: "x" },
        ".git": { HEAD: "" }
      },
      (fs) =>
        Effect.gen(function* () {
          const of = (path: string) =>
            Effect.map(fs.glob("**", { path, gitignore: true }), ({ matches }) => matches.map(({ path }) => path))
          assert.deepStrictEqual(yield* of("."), [".gitignore", "a/.ignore", "a/b.log", "a/keep.log"])
          assert.deepStrictEqual(yield* of("a"), ["a/.ignore", "a/b.log", "a/keep.log"])
          assert.strictEqual((yield* fs.grep("x", { gitignore: true })).filesSearched, 4)
        })
    )
  )

  const Name = Schema.Literals(["a", "b-", "a.b", "é", "😀", "～", "z"])
  const Path = Schema.Array(Name).check(Schema.isMinLength(1), Schema.isMaxLength(3))
  it.effect.prop("returns entries in path order, as walk does", [Schema.Array(Path)], ([all]) =>
    Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      for (const names of all as ReadonlyArray<ReadonlyArray<string>>) yield* Effect.ignore(fs.write(names.join("/"), ""))
      const entries = yield* Stream.runCollect(fs.walk())
      const keys = entries.map(({ isDirectory, path }) => (isDirectory ? `${path}/` : path))
      assert.deepStrictEqual(keys, [...keys].sort(compare))
      const files = yield* paths(fs.globStream("**"))
      assert.deepStrictEqual(
        files,
        entries.filter(({ isFile }) => isFile).map(({ path }) => path)
      )
    }).pipe(Effect.provide(InMemory.layer()))
  )
})

describe("an entry that is listed but cannot be found", () => {
  const files: InMemory.Tree = { "odd.txt": "12", "plain.txt": "123" }

  /** Returns a filesystem whose listings have no sizes and whose `stat` does not find one name. */
  const odd = (fs: Filesystem.Algebra): Filesystem.Algebra =>
    Filesystem.make({
      ...fs.port,
      perform: undefined,
      explore: undefined,
      list: (path) =>
        Effect.map(fs.port.list(path), (all) => all.map(({ addressable, kind, name }) => ({ addressable, kind, name }))),
      stat: (path) => (path === "odd.txt" ? Effect.undefined : fs.port.stat(path))
    })

  it.effect("does not fail the listing of its directory", () =>
    on(files, (fs) =>
      Effect.gen(function* () {
        const expected = ["odd.txt 0", "plain.txt 3"]
        const listed = yield* odd(fs).list()
        assert.deepStrictEqual(
          listed.map(({ name, sizeBytes }) => `${name} ${sizeBytes}`),
          expected
        )
        const walked = yield* Stream.runCollect(odd(fs).walk(".", { sizes: true }))
        assert.deepStrictEqual(
          walked.map(({ path, sizeBytes }) => `${path} ${sizeBytes}`),
          expected
        )
      })
    )
  )
})

describe("a search of files that are listed but cannot be opened", () => {
  const many = 1000

  it.effect("lists their directory again a bounded number of times", () =>
    on({ d: Object.fromEntries(Array.from({ length: many }, (_, i) => [`${i}`, "x"])) }, (fs) =>
      Effect.gen(function* () {
        const listed: Array<string> = []
        const port = guarded(fs, [], listed).port
        const { skipped } = yield* Filesystem.make({
          ...port,
          perform: undefined,
          explore: undefined,
          open: () => Effect.fail({ _tag: "NotFound" })
        }).grep("x")
        assert.strictEqual(skipped.unreadable, many)
        assert.isAtMost(listed.length, 200)
      })
    )
  )
})
