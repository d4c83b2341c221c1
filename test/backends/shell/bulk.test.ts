import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Algebra } from "../../../src/filesystem/Filesystem.ts"
import { exportBytesOf } from "../../../src/history/Archive.ts"
import { collect } from "../../../src/testing/operations.ts"
import { makeSession } from "../../../src/backends/container/shell/session.ts"
import type { FileStat } from "../../../src/model/Entry.ts"
import * as TemporaryNames from "../../../src/runtime/temporaryNames.ts"
import { p } from "../posixHost.ts"
import { bench, plantMany, plantOddities } from "./bulkBench.ts"
import { dash, directory, missing, shared, shells, start } from "./shells.ts"
import { performed } from "../../performed.ts"

const outcome = (call: Effect.Effect<unknown, unknown>): Effect.Effect<unknown> =>
  Effect.match(call, { onSuccess: (value) => value, onFailure: (error) => ({ failed: { ...(error as object) } }) })

type Search = (fs: Algebra) => Effect.Effect<unknown, unknown>

const searches: ReadonlyArray<readonly [what: string, search: Search]> = [
  ["walk", (fs) => collect(fs.walk(".", { sizes: true }))],
  ["walk with exclusions", (fs) => collect(fs.walk(".", { exclude: ["a*", "*é*"] }))],
  ["glob", (fs) => fs.glob("**", { sizes: true, kinds: ["file", "directory", "symlink", "other"] })],
  ["glob with a limit", (fs) => fs.glob("*a*", { maxMatches: 3 })],
  ["grep", (fs) => fs.grep("h(i)t", { context: 1 })],
  ["grep for literal text", (fs) => fs.grep("hit", { literal: true })],
  ["grep with a limit", (fs) => fs.grep("hit", { maxMatches: 2 })],
  ["grep in small files", (fs) => fs.grep("hit", { maxFileSize: 100 })]
]

const bornAside = (stat: FileStat | undefined): unknown => {
  const { createdAt: _, identity: _identity, ...rest } = stat!
  return rest
}

for (const shell of shells) {
  const lacks = missing(shell)
  if (lacks !== undefined) {
    describe.skip(lacks)
    continue
  }
  describe(`bulk requests to ${shell.name}`, () => {
    const session = shared(shell)
    for (let tree = 0; tree < 12; tree++) {
      it.live(`find the same matches as the engine's own searches in a tree of odd names (${tree})`, () =>
        Effect.gen(function* () {
          const { asked, fast, root, slow } = yield* bench(session)
          plantOddities(root)
          for (const [what, search] of searches) {
            assert.deepStrictEqual(yield* outcome(search(fast)), yield* outcome(search(slow)), what)
          }
          assert.strictEqual(asked().alone, 0)
        })
      )
    }

    for (const count of [30, 300]) {
      it.live(`list ${count} files of a tree in one call per level, and search them in at most 9 calls`, () =>
        Effect.gen(function* () {
          const { asked, fast, root } = yield* bench(session)
          plantMany(root, count)
          const levels = Array.from({ length: 4 }, () => "bulk_lists")
          asked()
          assert.strictEqual((yield* fast.glob("**/*.txt", { sizes: true })).matches.length, count)
          const walked = asked()
          assert.deepStrictEqual([walked.calls, walked.alone], [["bulk_look", ...levels], 0])
          assert.strictEqual((yield* fast.grep("hit")).matches.length, count)
          const { alone, calls } = asked()
          assert.strictEqual(alone, 0)
          assert.isAtMost(calls.length, 9, calls.join(" "))
        })
      )
    }

    // The test clock stands still, because an archive contains its creation time.
    it.effect("read many files at a time for an archive with the same bytes as an archive without bulk requests", () =>
      Effect.gen(function* () {
        const { asked, fast, root, slow } = yield* bench(session)
        plantMany(root, 300)
        Fs.writeFileSync(join(root, "large"), Buffer.alloc(700_000, "large"))
        Fs.writeFileSync(join(root, "empty"), "")
        asked()
        const bytes = Buffer.from(yield* exportBytesOf(fast))
        const { calls } = asked()
        assert.isAtMost(calls.length, 20, calls.join(" "))
        assert.isTrue(bytes.equals(yield* exportBytesOf(slow)))
      })
    )

    it.live("do not list excluded directories", () =>
      Effect.gen(function* () {
        const { asked, fast, root } = yield* bench(session)
        Fs.mkdirSync(join(root, "node_modules/a/b/c/d"), { recursive: true })
        Fs.mkdirSync(join(root, "src"))
        asked()
        yield* fast.glob("**", { exclude: "node_modules" })
        assert.deepStrictEqual(asked().calls, ["bulk_look", "bulk_lists", "bulk_lists"])
      })
    )

    it.live("return the bytes of files of at most the given size, and nothing for larger files, directories and links", () =>
      Effect.gen(function* () {
        const { port, root } = yield* bench(session)
        const every = Buffer.from(Array.from({ length: 1024 }, (_, i) => i % 256))
        const header = "\n==> ./b <==\n\n==> /dev/null <==\n"
        Fs.writeFileSync(join(root, "a"), every)
        Fs.writeFileSync(join(root, "b"), header)
        Fs.writeFileSync(join(root, "empty"), "")
        Fs.writeFileSync(join(root, "large"), Buffer.alloc(1025))
        Fs.writeFileSync(join(root, "last\n"), "\n\n")
        Fs.mkdirSync(join(root, "d"))
        Fs.symlinkSync("a", join(root, "l"))
        Fs.symlinkSync("d", join(root, "ld"))
        Fs.writeFileSync(join(root, "d/in"), "in")
        const key = `\0${Buffer.from("last\n").toString("hex")}`
        const paths = ["a", "none", "b", "large", "empty", "d", "l", "ld/in", "a/x", "d/in", key, "x".repeat(300)]
        const wholes = (yield* performed(port, { _tag: "ReadMany", paths: paths.map(p), maxBytes: 1024 }))!
        const found = wholes.map((whole) => whole && Buffer.from(whole.bytes).toString("latin1"))
        const none = undefined
        const expected = [every.toString("latin1"), none, header, none, "", none, none, none, none, "in", "\n\n", none]
        assert.deepStrictEqual(found, expected)
        for (const [index, whole] of wholes.entries()) {
          if (whole === undefined) continue
          assert.deepStrictEqual(bornAside(whole.stat), bornAside(yield* port.stat(p(paths[index]!))))
        }
        wholes[0]!.bytes.fill(0)
        assert.deepStrictEqual(
          (yield* performed(port, { _tag: "ReadMany", paths: [p("a")], maxBytes: 1024 }))![0]!.bytes,
          new Uint8Array(every)
        )
      })
    )

    it.live("return content in several answers if it does not fit into one answer", () =>
      Effect.gen(function* () {
        const { asked, port, root } = yield* bench(session)
        const paths = Array.from({ length: 300 }, (_, i) => (i % 10 === 7 ? `large${i}` : `${"long".repeat(40)}${i}`))
        const content = (path: string) => Buffer.alloc(path.startsWith("large") ? 700_000 : 10, path.slice(-2))
        for (const path of paths) Fs.writeFileSync(join(root, path), content(path))
        asked()
        const wholes = (yield* performed(port, { _tag: "ReadMany", paths: paths.map(p), maxBytes: 1_000_000 }))!
        for (const [index, whole] of wholes.entries()) {
          assert.isTrue(content(paths[index]!).equals(whole?.bytes ?? Buffer.alloc(0)), paths[index]!)
        }
        const { calls, longest } = asked()
        assert.isAtMost(calls.length, 20)
        // The bound must hold even if the files had grown meanwhile.
        assert.isBelow(longest, 17 * 1024 * 1024)
      })
    )

    it.live("are bounded by the maximum size of each file, because a file may grow meanwhile", () =>
      Effect.gen(function* () {
        const { asked, port, root } = yield* bench(session)
        const paths = Array.from({ length: 100 }, (_, i) => `f${i}`)
        for (const path of paths) Fs.writeFileSync(join(root, path), path === "f1" ? Buffer.alloc(1_000_000) : "small")
        asked()
        const wholes = (yield* performed(port, { _tag: "ReadMany", paths: paths.map(p), maxBytes: 1_000_000 }))!
        assert.isTrue(wholes.every((whole) => whole !== undefined))
        // Sixteen files of the largest size fit into one answer.
        assert.strictEqual(asked().calls.length, 2)
      })
    )

    it.live("list a large directory, or a directory with a write in progress, in a separate call", () =>
      Effect.gen(function* () {
        const { asked, fast, root, slow } = yield* bench(session)
        Fs.mkdirSync(join(root, "large"))
        Fs.mkdirSync(join(root, "small"))
        Fs.mkdirSync(join(root, "busy"))
        for (let i = 0; i < 1000; i++) Fs.writeFileSync(join(root, "large", `a file among a thousand others ${i}`), "")
        Fs.writeFileSync(join(root, "busy", ".~fsa-0.tmp"), "a stranger's")
        yield* TemporaryNames.withName((name) =>
          Effect.gen(function* () {
            Fs.writeFileSync(join(root, "busy", name), "")
            asked()
            const found = yield* fast.glob("**")
            const { alone, calls } = asked()
            assert.deepStrictEqual([calls, alone], [["bulk_look", "bulk_lists", "bulk_lists"], 2])
            const paths = found.matches.map(({ path }) => String(path))
            assert.strictEqual(paths.length, 1001)
            assert.deepStrictEqual(
              paths.filter((path) => path.startsWith("busy/")),
              ["busy/.~fsa-0.tmp"]
            )
            assert.deepStrictEqual(found, yield* slow.glob("**"))
          })
        )
      })
    )

    it.live("follow no link to a directory or file", () =>
      Effect.gen(function* () {
        const { port, root } = yield* bench(session)
        Fs.mkdirSync(join(root, "d/e"), { recursive: true })
        Fs.writeFileSync(join(root, "d/e/f"), "secret")
        Fs.symlinkSync("d", join(root, "l"))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const explorer = yield* port.explore!<{ above: undefined; segment: string }>(({ segment }) => p(segment), false)
            explorer.read(["d/e", "l", "l/e", "d/e/f", "none"].map((segment) => ({ above: undefined, segment })))
            yield* explorer.waitForReading
            const found = explorer
              .take()
              .map(({ children, visit }) => [visit.segment, "_tag" in children ? children._tag : children.length])
            assert.deepStrictEqual(found, [
              ["d/e", 1],
              ["l", "NotADirectory"],
              ["l/e", "NotFound"],
              ["d/e/f", "NotADirectory"],
              ["none", "NotFound"]
            ])
          })
        )
        assert.deepStrictEqual(yield* performed(port, { _tag: "ReadMany", paths: [p("l/e/f")], maxBytes: 100 }), [undefined])
        const seen = yield* performed(port, { _tag: "Look", path: p("l/e/f") })
        assert.deepStrictEqual(
          seen?.map(({ stat, target }) => [stat.path, target]),
          [
            [".", undefined],
            ["l", "d"]
          ]
        )
      })
    )

    it.live("report each component of a path as a single stat request does", () =>
      Effect.gen(function* () {
        const { asked, port, root } = yield* bench(session)
        Fs.mkdirSync(join(root, "a/b/c"), { recursive: true })
        Fs.writeFileSync(join(root, "a/b/f"), "text")
        Fs.symlinkSync("b/c\n", join(root, "a/l"))
        Fs.symlinkSync(Buffer.from([0xff]), join(root, "a/bytes"))
        const seen = (path: string) =>
          Effect.map(performed(port, { _tag: "Look", path: p(path) }), (all) =>
            all?.map(({ stat, target }) => target ?? bornAside(stat))
          )
        const stats = (...paths: ReadonlyArray<string>) =>
          Effect.forEach(paths, (path) => Effect.map(port.stat(p(path)), bornAside))
        asked()
        assert.deepStrictEqual(yield* seen("."), yield* stats("."))
        assert.deepStrictEqual(yield* seen("a/b/c"), yield* stats(".", "a", "a/b", "a/b/c"))
        assert.deepStrictEqual(yield* seen("a/b/f/x/y"), yield* stats(".", "a", "a/b", "a/b/f"))
        assert.deepStrictEqual(yield* seen("a/none/y"), yield* stats(".", "a"))
        assert.deepStrictEqual(yield* seen("a/l/y"), [...(yield* stats(".", "a")), "b/c\n"])
        assert.strictEqual(asked().calls.length, 5)
        // Unusual entries are left to the caller, who stats one component after another.
        assert.isUndefined(yield* seen("a/bytes"))
        assert.isUndefined(yield* seen(`a/${"x".repeat(256)}`))
      })
    )

    it.live("resolve a path of ten components with one request, and one more request per link", () =>
      Effect.gen(function* () {
        const { asked, fast, root } = yield* bench(session)
        const deep = "1/2/3/4/5/6/7/8/9"
        Fs.mkdirSync(join(root, deep), { recursive: true })
        Fs.writeFileSync(join(root, deep, "f"), "deep")
        Fs.symlinkSync("2/3", join(root, "1/l"))
        asked()
        assert.strictEqual((yield* fast.stat("1/l/4/5/6/7/8/9/f")).sizeBytes, 4)
        assert.deepStrictEqual(asked().calls, ["bulk_look", "bulk_look"])
        assert.isFalse(yield* fast.exists("1/2/3/4/none/6/7/8/9/f"))
        assert.deepStrictEqual(asked().calls, ["bulk_look"])
      })
    )
  })
}

const withHead = (first: string) =>
  Effect.flatMap(directory, (bin) => {
    Fs.writeFileSync(join(bin, "head"), `#!/bin/sh\n${first}\nPATH=${dash.path} exec head "$@"\n`, { mode: 0o755 })
    return makeSession(start({ ...dash, path: `${bin}:${dash.path}` }))
  })

const lacks = missing(dash)
describe.skipIf(lacks !== undefined)(`a file that changes between its stat and its read${lacks ?? ""}`, () => {
  const changes: ReadonlyArray<readonly [what: string, change: string]> = [
    ["has grown", "printf '%s' more >>b"],
    ["has shrunk", "printf '%s' x >b"],
    ["has gone", "rm b"],
    ["is no longer a file", "rm b; mkdir b"],
    ["has grown beyond the others", "cat a a a a a a a >>b"],
    ["contains a forged header", "printf '\\n==> ./c <==\\nother' >b"]
  ]
  for (const [what, change] of changes) {
    it.live(`is declined when it ${what}, and the other files are read`, () =>
      Effect.gen(function* () {
        const { port, root } = yield* bench(yield* withHead(change))
        for (const name of ["a", "b", "c"]) Fs.writeFileSync(join(root, name), `content of ${name}`)
        const wholes = (yield* performed(port, { _tag: "ReadMany", paths: ["a", "b", "c"].map(p), maxBytes: 1000 }))!
        const found = wholes.map((whole) => whole && Buffer.from(whole.bytes).toString())
        assert.deepStrictEqual(found, ["content of a", undefined, "content of c"])
      })
    )
  }
})
