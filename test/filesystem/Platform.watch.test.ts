import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, type FileSystem, Queue, type Scope, Stream } from "effect"
import { overHost, overMemory, nodes, temporary } from "./platformDisk.ts"

interface Ground {
  readonly fs: FileSystem.FileSystem
  readonly at: (path: string) => string
}

const grounds: ReadonlyArray<readonly [string, Effect.Effect<Ground, unknown, Scope.Scope>]> = [
  [
    "effect's Node implementation",
    Effect.zipWith(nodes, temporary, (fs, root) => ({ fs, at: (path: string) => `${root}/${path}` }))
  ],
  ["ours over a host", Effect.map(Effect.flatMap(temporary, overHost), (fs) => ({ fs, at: (path: string) => path }))],
  ["ours in memory", Effect.map(overMemory(), (fs) => ({ fs, at: (path: string) => path }))]
]

/** Starts a watch. Returns the events seen so far and a way to wait for one. */
const watched = ({ at, fs }: Ground, path: string, recursive: boolean) =>
  Effect.gen(function* () {
    const ready = yield* Deferred.make<void>()
    const queue = yield* Queue.unbounded<FileSystem.WatchEvent>()
    const seen: Array<string> = []
    const onReady = () => Deferred.doneUnsafe(ready, Effect.void)
    yield* Effect.forkScoped(
      Stream.runForEach(fs.watch(at(path), { recursive, onReady }), (event) => Queue.offer(queue, event))
    )
    yield* Deferred.await(ready)
    const until = (line: string) =>
      Effect.gen(function* () {
        while (seen[seen.length - 1] !== line) {
          const event = yield* Queue.take(queue)
          seen.push(`${event._tag} ${event.path}`)
        }
      })
    return { seen, until }
  })

for (const [name, ground] of grounds) {
  describe(`watching, ${name}`, () => {
    it.live("reports direct entries by name, and no deeper entries", () =>
      Effect.gen(function* () {
        const here = yield* ground
        const { at, fs } = here
        yield* fs.makeDirectory(at("d/sub"), { recursive: true })
        const { seen, until } = yield* watched(here, "d", false)
        yield* fs.writeFileString(at("d/sub/inner"), "x")
        yield* fs.writeFileString(at("d/n"), "x")
        yield* until("Create n")
        yield* fs.remove(at("d/n"))
        yield* until("Remove n")
        assert.isFalse(
          seen.some((line) => line.includes("inner")),
          seen.join(", ")
        )
      })
    )

    it.live("reports deeper entries on request, relative to the directory", () =>
      Effect.gen(function* () {
        const here = yield* ground
        const { at, fs } = here
        yield* fs.makeDirectory(at("d/sub"), { recursive: true })
        const { until } = yield* watched(here, "d", true)
        yield* fs.writeFileString(at("d/sub/inner"), "x")
        yield* until("Create sub/inner")
        yield* fs.remove(at("d/sub/inner"))
        yield* until("Remove sub/inner")
      })
    )

    it.live("reports a file by its own name", () =>
      Effect.gen(function* () {
        const here = yield* ground
        const { at, fs } = here
        yield* fs.writeFileString(at("a"), "old")
        yield* fs.writeFileString(at("b"), "old")
        const { seen, until } = yield* watched(here, "a", false)
        yield* fs.writeFileString(at("b"), "new")
        yield* fs.writeFileString(at("a"), "new", { flag: "a" })
        yield* until("Update a")
        assert.isFalse(
          seen.some((line) => line.endsWith(" b")),
          seen.join(", ")
        )
      })
    )

    it.live("fails with NotFound for a missing path", () =>
      Effect.gen(function* () {
        const { at, fs } = yield* ground
        const error = yield* Effect.flip(Stream.runDrain(fs.watch(at("none"))))
        assert.strictEqual(error.reason._tag, "NotFound")
      })
    )
  })
}
