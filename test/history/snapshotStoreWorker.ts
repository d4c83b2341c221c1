/**
 * A process that takes named snapshots. Arguments: the directory, the name of the worker, the count. Prints its
 * identity at the end.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as SnapshotStore from "../../src/history/SnapshotStore.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"

const [directory, worker, times] = process.argv.slice(2) as [string, string, string]

const program = Effect.gen(function* () {
  const fs = yield* Filesystem
  const store = yield* SnapshotStore.SnapshotStore
  for (let i = 0; i < Number(times); i++) {
    yield* fs.write("who", worker)
    yield* fs.write("large", `${worker}${i}`.repeat(50_000))
    yield* store.snapshot("shared")
    yield* store.snapshot(`${worker}-${i}`)
  }
})

await Effect.runPromise(Effect.provide(program, Layer.provideMerge(SnapshotStore.layer({ directory }), InMemory.layer())))
process.stdout.write(Identity.self())
