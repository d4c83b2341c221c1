/** A branch over leaves with prefixes is one tree, as if the leaves were mounted. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as TestClock from "effect/testing/TestClock"
import * as Branch from "../../src/journal/Branch.ts"
import { list as listIntent, asked, fork, journaled, memory, quiet, started, stat } from "./leafBench.ts"

const names = (entries: ReadonlyArray<{ readonly name: string }>) => entries.map(({ name }) => name)

/** Starts the leaves alpha and deep/beta, and returns a branch over them with their filesystems. */
const two = Effect.gen(function* () {
  const alpha = yield* memory({ tree: { alpha: { x: "needle in alpha" }, other: "hidden" } })
  const beta = yield* memory({ tree: { deep: { beta: { d: { y: "needle in beta" } } } } })
  const leaves = [
    yield* started(alpha, { prefix: "alpha", extended: true }),
    yield* started(beta, { prefix: "deep/beta", extended: true })
  ] as const
  return { alpha, beta, leaves, branch: yield* Branch.make({ extended: true }) }
})

describe("a branch with several leaves for prefixes", () => {
  it.effect("has a root and the parent directories of the prefixes", () =>
    journaled(
      Effect.gen(function* () {
        const { branch } = yield* two
        assert.isTrue(yield* branch.exists("."))
        assert.deepStrictEqual(names(yield* branch.list(".")), ["alpha", "deep"])
        assert.deepStrictEqual(names(yield* branch.list("deep")), ["beta"])
        assert.isTrue((yield* branch.stat("deep")).isDirectory)
        yield* branch.mkdir("deep")
        const error = yield* Effect.flip(branch.readString("deep"))
        assert.strictEqual(error._tag, "NotAFile")
      })
    )
  )

  it.effect("is searched as one tree", () =>
    journaled(
      Effect.gen(function* () {
        const { branch } = yield* two
        assert.deepStrictEqual(
          (yield* branch.glob("**/*")).matches.map(({ path }) => path),
          ["alpha/x", "deep/beta/d/y"]
        )
        assert.deepStrictEqual(
          (yield* branch.grep("needle")).matches.map(({ path }) => path),
          ["alpha/x", "deep/beta/d/y"]
        )
      })
    )
  )

  it.effect("copies and moves files and directories from one leaf to another", () =>
    journaled(
      Effect.gen(function* () {
        const { alpha, beta, branch } = yield* two
        yield* branch.copy("alpha/x", "deep/beta/copied/x")
        yield* branch.move("alpha/x", "deep/beta/moved")
        yield* branch.move("deep/beta/d", "alpha/d")
        assert.isFalse(yield* alpha.exists("alpha/x"))
        assert.strictEqual(yield* beta.readString("deep/beta/moved"), "needle in alpha")
        assert.strictEqual(yield* beta.readString("deep/beta/copied/x"), "needle in alpha")
        assert.strictEqual(yield* alpha.readString("alpha/d/y"), "needle in beta")
        assert.isFalse(yield* beta.exists("deep/beta/d"))
      })
    )
  )

  it.effect("refuses to remove or move the prefixes and their parents", () =>
    journaled(
      Effect.gen(function* () {
        const { alpha, beta, branch } = yield* two
        for (const path of ["alpha", "deep", "deep/beta"]) {
          const gone = yield* Effect.flip(branch.delete(path, { recursive: true }))
          assert.isTrue(gone._tag === "AccessDenied" && gone.why === "root", path)
          const moved = yield* Effect.flip(branch.move(path, "alpha/elsewhere"))
          assert.notStrictEqual(moved._tag, "NotFound")
        }
        assert.isTrue(yield* alpha.exists("alpha/x"))
        assert.isTrue(yield* beta.exists("deep/beta/d/y"))
      })
    )
  )

  it.effect("lists the prefixes among the entries of the root leaf; a prefix hides an entry with the same name", () =>
    journaled(
      Effect.gen(function* () {
        yield* started(yield* memory({ tree: { alpha: "hidden", own: "o" } }), { extended: true })
        yield* started(yield* memory({ tree: {} }), { prefix: "alpha", extended: true })
        const branch = yield* Branch.make({ extended: true })
        assert.deepStrictEqual(
          (yield* branch.list(".")).map(({ kind, name }) => [name, kind]),
          [
            ["alpha", "directory"],
            ["own", "file"]
          ]
        )
        assert.deepStrictEqual(yield* branch.list("alpha"), [])
        yield* branch.move("own", "alpha/d/own")
        assert.strictEqual(yield* branch.readString("alpha/d/own"), "o")
      })
    )
  )

  it.effect("fails searches with Unavailable and the path while the leaf for the path does not run", () =>
    journaled(
      Effect.gen(function* () {
        const { branch, leaves } = yield* two
        yield* leaves[1].shutdown
        assert.deepStrictEqual(names(yield* branch.list(".")), ["alpha", "deep"])
        for (const search of [branch.glob("**/*"), branch.grep("needle")]) {
          const searching = yield* fork(
            Effect.flip<unknown, { readonly _tag: string; readonly message: string }, never>(search)
          )
          for (let i = 0; i < 3; i++) {
            yield* quiet
            yield* TestClock.adjust("5 seconds")
          }
          yield* quiet
          const exit = searching.pollUnsafe()
          assert.isTrue(exit !== undefined && Exit.isSuccess(exit))
          if (exit !== undefined && Exit.isSuccess(exit)) {
            assert.strictEqual(exit.value._tag, "Unavailable")
            assert.include(exit.value.message, "deep/beta")
          }
        }
      })
    )
  )

  it.effect(
    "refuses a recursive list across a prefix to a client with the basic kinds of entry, but no list of one directory",
    () =>
      journaled(
        Effect.gen(function* () {
          yield* started(yield* memory({ tree: {} }), { prefix: "a/b" })
          const { ask } = yield* asked
          assert.strictEqual((yield* ask(stat("/")))._tag, "FileMetadata")
          const listing = yield* ask(listIntent("/", { pattern: "a*" }))
          assert.isTrue(listing._tag === "FileListing" && names(listing.entries).join() === "a")
          const whole = yield* ask(listIntent("/", { recursive: true }))
          assert.isTrue(whole._tag === "FileFault" && whole.message.includes("cannot cross the prefixes"))
        })
      )
  )
})
