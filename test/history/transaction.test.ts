import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { quota, subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import { ArchiveError } from "../../src/history/errors.ts"
import { runTransaction, type TransactionGoal } from "../../src/history/transaction.ts"
import { type Backend } from "../../src/port/Backend.ts"
import { adversarial } from "../../src/testing/Faults.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import {
  allKinds,
  bytesOf,
  common,
  file,
  goalOf,
  identities,
  link,
  look,
  lookIn,
  nodeOf,
  ordered,
  p,
  plant,
  plantIn,
  type Tree,
  tree,
  trees,
  unlike
} from "./transactionTrees.ts"

const runs = process.env["FS_ALGEBRA_SOAK"] === undefined ? 60 : 2000

const onHost = (before: Tree) =>
  Effect.gen(function* () {
    const root = join(yield* fastDirectory, "root")
    plant(root, before)
    return { root, port: yield* PosixHost.make({ root }) }
  })

/** Returns the failure of a transaction, which must leave every entry unchanged, hidden or not. */
const refused = <E>(port: Backend, root: string, goal: TransactionGoal<E>) =>
  Effect.gen(function* () {
    const before = [look(root), identities(root)]
    const failure = yield* Effect.flip(runTransaction(port, goal))
    assert.deepStrictEqual([look(root), identities(root)], before)
    return failure
  })

describe("a change of one tree into another", () => {
  it.effect.prop(
    "in memory works for any two trees",
    [trees, trees],
    ([before, after]) =>
      Effect.gen(function* () {
        const port = yield* InMemory.make()
        yield* plantIn(port, before)
        yield* runTransaction(port, goalOf(before, after))
        assert.deepStrictEqual(yield* lookIn(port), ordered(after))
      }),
    { arbitrary: { runs } }
  )

  it.live.prop(
    "on a host works for any two trees, and keeps the inodes of equal entries",
    [trees, trees],
    ([before, after]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { port, root } = yield* onHost(before)
          const old = identities(root)
          yield* runTransaction(port, goalOf(before, after))
          assert.deepStrictEqual(look(root), ordered(after))
          const now = identities(root)
          for (const path of common(before, after)) assert.strictEqual(now.get(path), old.get(path), path)
        })
      ),
    { arbitrary: { runs } }
  )

  it.live("replaces every kind of entry by every other kind, and back", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { after, before } = allKinds()
        const { port, root } = yield* onHost(before)
        yield* runTransaction(port, goalOf(before, after))
        assert.deepStrictEqual(unlike(look(root), after), [])
        yield* runTransaction(port, goalOf(after, before))
        assert.deepStrictEqual(unlike(look(root), before), [])
      })
    )
  )

  it.live("shows a changing file or link only as the whole old or the whole new entry", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const before = tree({ f: file("old"), l: link("old"), d: tree({ f: file("old", 0o400) }, 0o555) })
        const after = tree({ f: file("newer"), l: link("newer"), d: tree({ f: file("newer", 0o400) }, 0o555) })
        const { port, root } = yield* onHost(before)
        const seen = new Set<string>()
        const see = Effect.sync(() => {
          seen.add(Fs.readFileSync(join(root, "f"), "utf8"))
          seen.add(Fs.readlinkSync(join(root, "l")))
          seen.add(Fs.readFileSync(join(root, "d/f"), "utf8"))
        })
        const watched: Backend = {
          ...port,
          write: (path, bytes, mode, how) => Effect.tap(port.write(path, bytes, mode, how), see),
          rename: (from, to, how) => Effect.tap(port.rename(from, to, how), see),
          remove: (path) => Effect.tap(port.remove(path), see)
        }
        yield* runTransaction(watched, goalOf(before, after))
        assert.deepStrictEqual([...seen], ["old", "newer"])
      })
    )
  )

  it.live("keeps entries that are in neither tree, such as FIFOs, files and hidden names of other programs", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const before = tree({ d: tree({ f: file("1") }), g: file("g") })
        const after = tree({ d: tree({ f: file("2") }), h: file("h") })
        const { port, root } = yield* onHost(before)
        execFileSync("mkfifo", [join(root, "d/fifo"), join(root, "fifo")])
        Fs.writeFileSync(join(root, "d/unknown"), "?")
        Fs.writeFileSync(join(root, ".~fsa-0.tmp"), "?")
        const old = identities(root)
        yield* runTransaction(port, goalOf(before, after))
        const now = identities(root)
        for (const path of ["", "d", "d/fifo", "fifo", "d/unknown", ".~fsa-0.tmp"]) {
          assert.strictEqual(now.get(path), old.get(path), path)
        }
        assert.strictEqual(Fs.readFileSync(join(root, "d/f"), "utf8"), "2")
        assert.strictEqual(Fs.existsSync(join(root, "g")), false)
      })
    )
  )

  it.live("handles names that are not UTF-8", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { port, root } = yield* onHost(tree({}))
        const raw = Buffer.from([0xff, 0x0a, 0x61])
        const key = `\0${raw.toString("hex")}`
        const first = tree({ [key]: tree({ [key]: file("1") }) })
        const second = tree({ [key]: tree({ [key]: file("22") }), x: tree({ [key]: link("a") }) })
        const at = (...names: ReadonlyArray<string | Buffer>): Buffer =>
          Buffer.concat([Buffer.from(root), ...names.flatMap((name) => [Buffer.from("/"), Buffer.from(name)])])
        yield* runTransaction(port, goalOf(tree({}), first))
        assert.strictEqual(Fs.readFileSync(at(raw, raw), "utf8"), "1")
        yield* runTransaction(port, goalOf(first, second))
        assert.strictEqual(Fs.readFileSync(at(raw, raw), "utf8"), "22")
        assert.strictEqual(Fs.readlinkSync(at("x", raw)), "a")
        yield* runTransaction(port, goalOf(second, tree({})))
        assert.deepStrictEqual(Fs.readdirSync(root), [])
      })
    )
  )

  it.effect("reports progress after each file and link", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const after = tree({ a: file("1"), d: tree({ b: file("2"), e: tree({}), l: link("b") }) })
      const told: Array<string> = []
      yield* runTransaction(port, {
        ...goalOf(tree({}), after),
        onProgress: (done, of) => Effect.sync(() => void told.push(`${done}/${of}`))
      })
      assert.deepStrictEqual(told, ["1/3", "2/3", "3/3"])
    })
  )

  it.effect("makes no call to the backend if both trees are equal", () =>
    Effect.gen(function* () {
      const { after } = allKinds(10)
      const never = (): never => assert.fail("it was touched")
      const port = { ...(yield* InMemory.make()), stat: never, list: never, rename: never, write: never }
      yield* runTransaction(port, { before: nodeOf(after), after: nodeOf(after), content: never })
    })
  )
})

describe("a transaction fails and changes nothing for", () => {
  const before = tree({ d: tree({ f: file("1") }), f: file("old") })
  const after = tree({ d: file("flat"), f: file("content") })

  const contents: ReadonlyArray<readonly [claim: string, given: Uint8Array | Stream.Stream<Uint8Array>]> = [
    ["too few bytes", bytesOf("conten")],
    ["too many bytes", bytesOf("content!")],
    ["other bytes of the same number", bytesOf("contenT")],
    ["a stream that ends too early", Stream.make(bytesOf("con"), bytesOf("ten"))],
    ["a stream that never ends", Stream.forever(Stream.succeed(bytesOf("content")))],
    ["a stream of other bytes", Stream.make(bytesOf("con"), bytesOf("tent".toUpperCase()))],
    ["an empty stream", Stream.empty]
  ]
  for (const [claim, given] of contents) {
    it.live(`${claim}, with Mismatch at the path of the file`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { port, root } = yield* onHost(before)
          const goal = goalOf(before, after)
          const content: TransactionGoal<never>["content"] = (path, file) =>
            path === "f" ? Effect.succeed(given) : goal.content(path, file)
          assert.deepStrictEqual(yield* refused(port, root, { ...goal, content }), { _tag: "Mismatch", path: p("f") })
        })
      )
    )
  }

  it.live("content whose source fails, at the start or in the middle of the stream, with the failure of the source", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { port, root } = yield* onHost(before)
        const goal = goalOf(before, after)
        assert.strictEqual(yield* refused(port, root, { ...goal, content: () => Effect.fail("lost" as const) }), "lost")
        const torn = Stream.concat(Stream.make(bytesOf("c")), Stream.fail("torn" as const))
        assert.strictEqual(yield* refused(port, root, { ...goal, content: () => Effect.succeed(torn) }), "torn")
        const corrupt = new ArchiveError({ reason: "corrupt", detail: "torn" })
        const broken = Stream.fail(corrupt)
        assert.strictEqual(yield* refused(port, root, { ...goal, content: () => Effect.succeed(broken) }), corrupt)
      })
    )
  )

  const stands: ReadonlyArray<readonly [claim: string, path: string, before: Tree, after: Tree]> = [
    ["at the path of a new file", "new", tree({}), tree({ new: file("1") })],
    ["in a directory that is removed", "d/x", tree({ d: tree({}) }), tree({})],
    ["deep in a directory that is removed", "d/e/x", tree({ d: tree({ e: tree({ f: file("") }) }) }), tree({ f: file("") })],
    ["in a directory that is replaced by a file", "d/x", tree({ d: tree({}) }), tree({ d: file("") })],
    ["at the path of a replaced file", "f", tree({ f: file("1") }), tree({ f: file("2") })]
  ]
  for (const [claim, path, before, after] of stands) {
    for (const what of ["a FIFO", "a file that is in neither tree"]) {
      it.live(`${what} ${claim}`, () =>
        Effect.scoped(
          Effect.gen(function* () {
            const { port, root } = yield* onHost(before)
            Fs.rmSync(join(root, path), { force: true })
            if (what === "a FIFO") execFileSync("mkfifo", [join(root, path)])
            else Fs.writeFileSync(join(root, path), "somebody's")
            const failure = yield* refused(port, root, goalOf(before, after))
            assert.strictEqual(failure._tag, "IoError")
          })
        )
      )
    }
  }

  it.live("more data than a quota allows", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const before = tree({ f: file("x".repeat(50_000)) })
        const { port, root } = yield* onHost(before)
        const bounded = yield* quota({ maxBytes: 100_000 })(make(port))
        const failure = yield* refused(bounded.port, root, goalOf(before, tree({ g: file("y".repeat(60_000)) })))
        assert.strictEqual(failure._tag, "DiskFull")
        yield* runTransaction(bounded.port, goalOf(before, tree({ g: file("y".repeat(40_000)) })))
        // Removed files and files moved aside no longer count against the quota.
        yield* bounded.writeBytes("h", new Uint8Array(60_000))
      })
    )
  )
})

interface Ground {
  readonly fs: Algebra
  readonly shows: Effect.Effect<Tree, unknown>
}

const shown = (fs: Algebra): Ground => ({ fs, shows: lookIn(fs.port) })

const combinators: ReadonlyArray<readonly [name: string, (before: Tree) => Effect.Effect<Ground, unknown>]> = [
  [
    "a subdirectory",
    (before) =>
      Effect.gen(function* () {
        const whole = yield* InMemory.make()
        yield* plantIn(whole, tree({ sub: before, other: file("1") }))
        const fs = yield* subdirectory("sub")(make(whole))
        return {
          fs,
          shows: Effect.tap(lookIn(fs.port), () =>
            Effect.map(lookIn(whole), ({ entries }) => assert.deepStrictEqual(Object.keys(entries), ["other", "sub"]))
          )
        }
      })
  ],
  [
    "a quota",
    (before) =>
      Effect.gen(function* () {
        const port = yield* InMemory.make()
        yield* plantIn(port, before)
        return shown(yield* quota({ maxBytes: 1e9, maxFiles: 1e6 })(make(port)))
      })
  ],
  [
    "an overlay over the tree",
    (before) =>
      Effect.gen(function* () {
        const [upper, lower] = [yield* InMemory.make(), yield* InMemory.make()]
        // The mode of the root comes from the upper side.
        yield* plantIn(upper, tree({}, before.mode))
        yield* plantIn(lower, before)
        const fs = overlay(make(upper))(make(lower))
        return {
          fs,
          shows: Effect.tap(lookIn(fs.port), () =>
            Effect.map(lookIn(lower), (below) => assert.deepStrictEqual(below, ordered(before)))
          )
        }
      })
  ],
  [
    "a port that cannot move entries out of their directory",
    (before) =>
      Effect.gen(function* () {
        const port = yield* InMemory.make()
        yield* plantIn(port, before)
        const fs = adversarial(make(port))
        return { fs, shows: lookIn(port) }
      })
  ]
]

describe("a change of one tree into another, on combinators,", () => {
  for (const [name, prepare] of combinators) {
    it.effect.prop(
      `works for any two trees on ${name}`,
      [trees, trees],
      ([before, after]) =>
        Effect.gen(function* () {
          const { fs, shows } = yield* prepare(before)
          yield* runTransaction(fs.port, goalOf(before, after))
          assert.deepStrictEqual(yield* shows, ordered(after))
        }),
      { arbitrary: { runs: Math.ceil(runs / 2) } }
    )
  }

  const mounted = Effect.gen(function* () {
    const [outer, inner] = [yield* InMemory.make(), yield* InMemory.make()]
    yield* plantIn(outer, tree({ a: tree({}) }))
    return { fs: yield* mount("a/m", make(inner))(make(outer)), outer, inner }
  })
  const holding = (outside: Tree, inside: Tree): Tree => ({
    mode: outside.mode,
    entries: { ...outside.entries, a: tree({ m: inside, ...(outside.entries["b"] && { b: outside.entries["b"] }) }) }
  })

  it.effect.prop(
    "replaces any tree with a mount by any other tree, and leaves hidden names on neither side",
    [trees, trees, trees, trees],
    ([one, two, three, four]) =>
      Effect.gen(function* () {
        const { fs, inner, outer } = yield* mounted
        const [before, after] = [ordered(holding(one, two)), ordered(holding(three, four))]
        yield* plantIn(fs.port, before)
        yield* runTransaction(fs.port, goalOf(before, after))
        assert.deepStrictEqual(yield* lookIn(fs.port), after)
        for (const side of [inner, outer]) {
          for (const { name } of yield* side.list(p("."))) assert.notMatch(name, /^\.~fsa/)
        }
      }),
    { arbitrary: { runs: Math.ceil(runs / 2) } }
  )

  it.effect("refuses to remove a mount point or a parent of a mount point", () =>
    Effect.gen(function* () {
      const { fs } = yield* mounted
      const before = tree({ a: tree({ m: tree({ f: file("1") }) }), x: file("x") })
      yield* runTransaction(fs.port, goalOf(tree({ a: tree({ m: tree({}) }) }), before))
      for (const after of [tree({}), tree({ a: tree({}) }), tree({ a: file("1") }), tree({ a: tree({ m: link("x") }) })]) {
        const failure = yield* Effect.flip(runTransaction(fs.port, goalOf(before, after)))
        assert.deepInclude(failure, { _tag: "AccessDenied", why: "root" })
        assert.deepStrictEqual(yield* lookIn(fs.port), before)
      }
    })
  )

  it.effect("changes the case of names in a case-insensitive filesystem", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ caseInsensitive: true })
      const before = tree({ File: file("1"), Dir: tree({ f: file("2") }), x: tree({ Y: link("a") }) })
      const after = tree({ fILE: file("1"), dir: tree({ F: file("3") }), X: file("4") })
      yield* plantIn(port, before)
      yield* runTransaction(port, goalOf(before, after))
      assert.deepStrictEqual(yield* lookIn(port), ordered(after))
      const exit = yield* Effect.exit(runTransaction(port, goalOf(after, tree({ a: file("1"), A: file("2") }))))
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(yield* lookIn(port), ordered(after))
    })
  )
})
