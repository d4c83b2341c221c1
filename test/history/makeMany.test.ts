import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem, layer } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { Backend, NewEntry } from "../../src/port/Backend.ts"
import { capture, directory, type Files, link, plant } from "../../src/testing/Files.ts"
import * as Request from "../../src/port/Request.ts"

type MakeMany = (entries: ReadonlyArray<NewEntry>) => Effect.Effect<ReadonlyArray<boolean>, Fault>

const makeOne = (port: Backend, { bytes, mode, path }: NewEntry): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    yield* bytes === undefined ? port.makeDirectory(path) : port.write<never, never>(path, bytes, "create")
    if (mode !== undefined) yield* port.attributes!.set(path, { mode })
    return true
  }).pipe(Effect.orElseSucceed(() => false))

/** A filesystem in memory that answers MakeMany with the given function. */
const making = (way: (port: Backend) => MakeMany) =>
  Layer.provideMerge(
    Snapshots.layerArchive,
    layer(
      Effect.map(InMemory.make(), (port) => ({
        ...port,
        perform: Request.extend(port.perform, { MakeMany: ({ entries }) => Effect.asSome(way(port)(entries)) })
      }))
    )
  )

const tree: Files = {
  "a/b/c": "1",
  "a/b/d": "2",
  "a/e": "3",
  "a/l": link("e"),
  "a/large": "0123456789".repeat(110_000),
  "a/none": directory,
  f: "4"
}

const ways: ReadonlyArray<readonly [name: string, way: (port: Backend) => MakeMany]> = [
  ["all", (port) => (entries) => Effect.forEach(entries, (entry) => makeOne(port, entry))],
  ["none", () => (entries) => Effect.succeed(entries.map(() => false))],
  [
    "every other one",
    (port) => (entries) =>
      Effect.forEach(entries, (entry, index) => (index % 2 === 0 ? makeOne(port, entry) : Effect.succeed(false)))
  ]
]

describe("a restore on a port that creates many entries in one request", () => {
  for (const [name, way] of ways) {
    it.effect(`restores the whole tree when the port creates ${name} of the entries`, () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const { restore, snapshot } = yield* Snapshots.Snapshots
        yield* plant(fs.port, tree)
        yield* fs.setAttributes("a/e", { mode: 0o751 })
        yield* fs.setAttributes("a/b", { mode: 0o555 })
        yield* fs.setAttributes("a/none", { mode: 0o700 })
        const modes = Effect.forEach(["a", "a/b", "a/b/c", "a/e", "a/none", "f"], (path) =>
          Effect.map(fs.stat(path), ({ mode }) => mode)
        )
        const [files, bits] = [yield* capture(fs.port), yield* modes]
        const taken = yield* snapshot()
        yield* fs.setAttributes("a/b", { mode: 0o755 })
        yield* fs.delete("a", { recursive: true })
        yield* fs.write("f", "changed")
        yield* restore(taken)
        assert.deepStrictEqual([yield* capture(fs.port), yield* modes], [files, bits])
      }).pipe(Effect.provide(making(way)))
    )
  }

  const full: Fault = { _tag: "DiskFull" }
  it.effect("changes nothing when the disk of the port is full", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem
      const { restore, snapshot } = yield* Snapshots.Snapshots
      yield* plant(fs.port, tree)
      const taken = yield* snapshot()
      yield* fs.delete("a", { recursive: true })
      yield* fs.write("f", "changed")
      const before = yield* capture(fs.port)
      const error = yield* Effect.flip(restore(taken))
      assert.match(error.message, /restore "f": there is no space left/)
      assert.deepStrictEqual(yield* capture(fs.port), before)
    }).pipe(Effect.provide(making(() => () => Effect.fail(full))))
  )
})
