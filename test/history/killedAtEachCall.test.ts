/**
 * Stops a process before each of its calls, for every operation that changes several files at once. The next process
 * that opens the directory must find the whole old tree or the whole new one, without leftovers.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import { applyChanges } from "../../src/agent/changes.ts"
import { removeDirectory } from "../../src/agent/tools/rm.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Decorator from "../../src/filesystem/Decorator.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as SnapshotStore from "../../src/history/SnapshotStore.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { hydrate } from "../../src/workspace/HostMount.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { bytesOf, file, link, look, oneByOne, p, plant, tree, type Tree, unlike } from "./transactionTrees.ts"
import { opening, recordsOf, write } from "./records.ts"
import * as Request from "../../src/port/Request.ts"

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined

const before = tree({
  a: file("1"),
  large: file("o".repeat(1_100_000)),
  d: tree({ x: file("1"), y: file("2"), e: tree({ z: file("3") }) }),
  l: link("a"),
  gone: file("gone")
})

/** Calls `visit` before each call that changes something. */
const watching = (port: Backend, visit: Effect.Effect<void>): Backend => {
  const then = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => Effect.andThen(visit, work)
  const { attributes, links } = port
  return {
    ...port,
    write: (...given) => then(port.write(...given)),
    makeDirectory: (path) => then(port.makeDirectory(path)),
    remove: (path) => then(port.remove(path)),
    rename: (from, to, how) => then(port.rename(from, to, how)),
    links: links && { ...links, make: (path, target) => then(links.make(path, target)) },
    attributes: attributes && { set: (path, values) => then(attributes.set(path, values)) },
    perform: Request.override(oneByOne(port, then), (perform) => ({ RemoveTree: (request) => then(perform(request)) }))
  }
}

const version = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Marks the atomic change. All calls before it are preparation. */
interface Aim {
  <A, E, R>(change: Effect.Effect<A, E, R>): Effect.Effect<A, E, R>
}

interface Way {
  readonly claim: string
  /** `beside` is a directory outside the root. */
  readonly run: (fs: Algebra, beside: string, aim: Aim) => Effect.Effect<unknown, unknown>
}

const differently = (fs: Algebra): Effect.Effect<void, unknown> =>
  Effect.gen(function* () {
    yield* fs.write("a", "2")
    yield* fs.write("d/x", "2")
    yield* fs.delete("gone")
    yield* fs.write("n/new", "new", { createParents: true })
  })

const ways: ReadonlyArray<Way> = [
  {
    claim: "a change of several files",
    run: (fs, _, aim) =>
      aim(
        applyChanges(fs, [
          { path: p("a"), before: version("1"), after: bytesOf("2") },
          { path: p("d/e/z"), before: version("3"), after: null },
          { path: p("n/new"), before: null, after: bytesOf("new") },
          { path: p("moved"), before: null, after: bytesOf("gone"), from: { path: p("gone"), version: version("gone") } }
        ])
      )
  },
  { claim: "the removal of a directory", run: (fs, _, aim) => aim(removeDirectory(fs, p("d"), "fail")) },
  {
    claim: "the restore of a snapshot",
    run: (fs, _, aim) =>
      Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const taken = yield* snapshots.snapshot()
        yield* differently(fs)
        yield* aim(snapshots.restore(taken))
      }).pipe(Effect.provide(Snapshots.layerArchive.pipe(Layer.provide(Layer.succeed(Filesystem, fs)))))
  },
  {
    claim: "an import",
    run: (fs, _, aim) =>
      Effect.gen(function* () {
        const chunks = yield* Stream.runCollect(Archive.exportZipOf(fs))
        yield* differently(fs)
        yield* aim(Archive.importZipOf(fs, Stream.fromIterable(chunks)))
      })
  },
  {
    claim: "a rollback to a named archive",
    run: (fs, beside, aim) =>
      Effect.gen(function* () {
        const store = yield* SnapshotStore.SnapshotStore
        yield* store.snapshot("one")
        yield* differently(fs)
        yield* aim(store.rollback("one"))
      }).pipe(
        Effect.provide(
          SnapshotStore.layer({ directory: join(beside, "store") }).pipe(Layer.provide(Layer.succeed(Filesystem, fs)))
        )
      )
  },
  {
    claim: "a copy of mounts into the tree",
    run: (fs, beside, aim) =>
      Effect.suspend(() => {
        plant(join(beside, "source"), tree({ m: file("m"), n: tree({ o: file("o") }) }))
        return aim(hydrate(fs, [{ hostPath: "source" }], { allowedRoots: [beside] }))
      })
  }
]

/** The directory of the changed filesystem within the root. */
const places: ReadonlyArray<readonly [claim: string, inside: string, over: (fs: Algebra) => Effect.Effect<Algebra, unknown>]> =
  [
    ["", "", Effect.succeed],
    [" through a subdirectory", "sub", Decorator.subdirectory("sub")]
  ]

/** The largest number of calls at which each operation is stopped. */
const stops = soak ? Number.POSITIVE_INFINITY : 12

const evenly = <A>(all: ReadonlyArray<A>, most: number): ReadonlyArray<A> =>
  all.length <= most ? all : Array.from({ length: most }, (_, i) => all[Math.floor((i * (all.length - 1)) / (most - 1))]!)

describe("a process that is killed in the middle of", () => {
  for (const { claim, run } of ways) {
    for (const [through, inside, over] of places) {
      it.live(`${claim}${through} leaves the old tree or the new one to the next process that opens the directory`, () =>
        Effect.scoped(
          Effect.gen(function* () {
            const top = yield* fastDirectory
            const [root, beside] = [join(top, "root"), join(top, "beside")]
            Fs.mkdirSync(beside)
            Fs.mkdirSync(root)
            plant(join(root, inside), before)
            const copies: Array<{ readonly path: string; readonly kept: ReturnType<typeof recordsOf> }> = []
            let isAimed = false
            const copied = Effect.sync(() => {
              if (!isAimed) return
              const path = join(top, `copy-${copies.length}`)
              execFileSync("cp", ["-a", root, path])
              copies.push({ path, kept: recordsOf(root) })
            })
            let old: Tree | undefined
            const aim: Aim = (change) =>
              Effect.suspend(() => {
                old = look(root)
                isAimed = true
                return Effect.ensuring(
                  change,
                  Effect.sync(() => void (isAimed = false))
                )
              })
            const fs = yield* over(make(watching(yield* PosixHost.make({ root }), copied)))
            yield* run(fs, beside, aim)
            const after = look(root)
            assert.isAbove(copies.length, 5)
            const complaints: Array<string> = []
            const outcomes = new Set<string>()
            for (const { kept, path } of evenly(copies, stops)) {
              for (const each of kept) write(path, each)
              const said = yield* opening(path)
              for (const { outcome } of said) outcomes.add(outcome)
              const found = look(path)
              const isFinished = said.some(({ outcome }) => outcome === "finished")
              const wrong = unlike(found, isFinished ? after : old!)
              if (wrong.length > 0 && unlike(found, after).length > 0) complaints.push(`${path}: ${wrong.join()}`)
              assert.deepStrictEqual(recordsOf(path), [])
            }
            assert.deepStrictEqual(complaints, [])
            assert.deepStrictEqual([...outcomes].sort(), ["cleared", "finished"])
          })
        )
      )
    }
  }
})
