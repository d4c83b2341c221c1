/**
 * Tests commands in a directory in which a process was killed while it changed several files, and in a directory that an
 * attacker prepared.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { runTransaction } from "../../src/history/transaction.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { file, goalOf, look, plant, tree, type Tree } from "../history/transactionTrees.ts"
import { type Kept, recordsOf, write } from "../history/records.ts"
import { shell, type Ran } from "./terminal.ts"

const before = tree({
  a: file("one old\n"),
  d: tree({ b: file("two old\n"), c: file("three old\n") }),
  ".git": tree({ hooks: tree({}) })
})
const after = tree({
  a: file("one new\n"),
  d: tree({ b: file("two new\n"), e: file("three new\n") }),
  ".git": tree({ hooks: tree({ "post-merge": file("# new\n", 0o755) }) })
})

interface Moment {
  readonly path: string
  readonly kept: ReadonlyArray<Kept>
}

/** Copies of the directory before each rename of a transaction. */
const moments = Effect.gen(function* () {
  const top = yield* fastDirectory
  const root = join(top, "root")
  plant(root, before)
  const port = yield* PosixHost.make({ root })
  const all: Array<Moment> = []
  const copied = Effect.sync(() => {
    const path = join(top, `copy-${all.length}`)
    execFileSync("cp", ["-a", root, path])
    all.push({ path, kept: recordsOf(root) })
  })
  const watched: Backend = { ...port, rename: (from, to, how) => Effect.andThen(copied, port.rename(from, to, how)) }
  yield* runTransaction(watched, goalOf(before, after))
  assert.isAbove(all.length, 4)
  return { top, all }
})

/** Runs a command over a directory on disk, as a terminal does. */
const typed = (root: string, args: ReadonlyArray<string>, input?: string): Effect.Effect<Ran> =>
  Effect.flatMap(shell({}), ({ run }) =>
    run([...args, "--root", root], {
      host: (directory) => PosixHost.layer({ root: directory }),
      stateDirectory: join(root, "../state"),
      input
    })
  )

const call = (id: number, name: string, input: object): string =>
  JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: input } })

const initialize = JSON.stringify({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } }
})

const asked = (root: string, args: ReadonlyArray<string>): Effect.Effect<Ran> =>
  typed(
    root,
    ["mcp", ...args],
    [initialize, call(1, "grep", { pattern: "old|new" }), call(2, "glob", { pattern: "**" })]
      .map((line) => `${line}\n`)
      .join("")
  )

const commands: ReadonlyArray<readonly [name: string, run: (root: string) => Effect.Effect<Ran>]> = [
  ["ls", (root) => typed(root, ["ls", "d"])],
  ["cat", (root) => typed(root, ["cat", "a", "d/b"])],
  ["grep", (root) => typed(root, ["grep", "old|new"])],
  ["glob", (root) => typed(root, ["glob", "**"])],
  ["tree", (root) => typed(root, ["tree"])],
  ["mcp", (root) => asked(root, [])]
]

const shownOf = ({ code, out }: Ran): string =>
  JSON.stringify([
    code,
    // A server may answer in any order.
    out.split("\n").sort().join("\n")
  ])

describe("a command over a directory with an unfinished transaction", () => {
  for (const [name, run] of commands) {
    it.live(`${name} completes the transaction before it shows the tree, and reports the completion`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { all, top } = yield* moments
          const whole = (tree: Tree): Effect.Effect<string> =>
            Effect.suspend(() => {
              const root = join(top, "whole")
              Fs.rmSync(root, { recursive: true, force: true })
              plant(root, tree)
              return Effect.map(run(root), shownOf)
            })
          const [old, made] = [yield* whole(before), yield* whole(after)]
          assert.notStrictEqual(old, made)
          for (const { kept, path } of all) {
            const root = join(top, "whole")
            Fs.rmSync(root, { recursive: true, force: true })
            Fs.renameSync(path, root)
            for (const each of kept) write(root, each)
            const ran = yield* run(root)
            assert.strictEqual(shownOf(ran), made)
            assert.include(ran.err, "completed or rolled back the unfinished change of")
            assert.deepStrictEqual(look(root), after)
          }
        })
      )
    )
  }

  it.live("mcp --read-only reports the transaction and leaves it unfinished", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { all } = yield* moments
        const { kept, path } = all[2]!
        const files = kept.map((each) => write(path, each))
        const found = look(path)
        const { err } = yield* asked(path, ["--read-only"])
        assert.include(err, "left the unfinished change of")
        assert.deepStrictEqual(look(path), found)
        for (const file of files) Fs.rmSync(file)
      })
    )
  )

  it.live("mcp --deny leaves a transaction with denied paths unfinished, and reports it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { all } = yield* moments
        const { kept, path } = all[2]!
        const files = kept.map((each) => write(path, each))
        const found = look(path)
        for (const glob of [".git", ".git/**", "**/post-merge"]) {
          const { err } = yield* asked(path, ["--deny", glob])
          assert.include(err, "left the unfinished change of")
          assert.deepStrictEqual(look(path), found)
        }
        assert.include((yield* asked(path, ["--deny", "*.pem"])).err, "completed or rolled back the unfinished change of")
        for (const file of files) assert.isFalse(Fs.existsSync(file))
      })
    )
  )
})

describe("a forged record of a transaction in a directory", () => {
  const step = { path: ".git/hooks/pre-commit", region: 0, slot: 0, next: "file", keeps: false }
  const journal = JSON.stringify({ version: 1, regions: [{ path: ".", isFlat: false }], steps: [step], modes: [] })

  it.live("is ignored by ls, snapshot, snapshots and mcp, which install no file", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = join(yield* fastDirectory, "root")
        plant(root, before)
        const staging = join(root, ".~fsa-exchange-a-1-1-0123456789abcdef01.tmp")
        Fs.mkdirSync(join(staging, "new"), { recursive: true })
        Fs.writeFileSync(join(staging, "new/0"), "#!/bin/sh\n", { mode: 0o755 })
        Fs.writeFileSync(join(staging, "journal"), journal)
        const longAgo = new Date(2020, 0, 1)
        for (const path of ["new/0", "new", "journal", ""]) Fs.utimesSync(join(staging, path), longAgo, longAgo)
        const found = look(root)
        for (const args of [["ls"], ["snapshot"], ["snapshots"], ["mcp", "--deny", ".git"]]) {
          const { err } = yield* args[0] === "mcp" ? asked(root, args.slice(1)) : typed(root, args)
          assert.notInclude(err, "unfinished")
          assert.deepStrictEqual(look(root), found)
        }
      })
    )
  )
})
