/** Single operations in memory: the cost of the service, compared with a bare loop that does the same work on a Map. */
import * as Effect from "effect/Effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import type { Case } from "../harness.ts"
import { check, effects } from "../harness.ts"

const content = new Uint8Array(1024).fill(97)
const path = "src/model/file.ts"

/** The service on a new memory tree with one file. */
const prepared = Effect.runPromise(
  Effect.gen(function* () {
    const fs = yield* Filesystem.Filesystem
    yield* fs.writeBytes(path, content)
    return fs
  }).pipe(Effect.provide(InMemory.layer()))
)

/** Runs the bare work as an effect in the same loop, so the difference is the service's own. */
const bare = (work: () => unknown) => effects(Effect.sync(work))

export const cases: ReadonlyArray<Case> = [
  {
    name: "memory: stat",
    target: "≤ 0.5 µs beyond a bare loop",
    bound: 0.5,
    figure: "overhead µs",
    count: 100_000,
    samples: 15,
    make: async () => {
      const fs = await prepared
      const map = new Map([[path, { sizeBytes: 1024 }]])
      check((await Effect.runPromise(fs.stat(path))).sizeBytes === map.get(path)!.sizeBytes)
      return {
        ours: { name: "stat", run: effects(fs.stat(path)) },
        baseline: { name: "Map.get", run: bare(() => map.get(path)) }
      }
    }
  },
  {
    name: "memory: readBytes of 1 KiB",
    target: "≤ 1.5 µs beyond a bare loop",
    bound: 1.5,
    figure: "overhead µs",
    count: 100_000,
    samples: 15,
    make: async () => {
      const fs = await prepared
      const map = new Map([[path, content]])
      check(Buffer.compare((await Effect.runPromise(fs.readBytes(path))).content, map.get(path)!) === 0)
      return {
        ours: { name: "readBytes", run: effects(fs.readBytes(path)) },
        baseline: { name: "copy", run: bare(() => map.get(path)!.slice()) }
      }
    }
  },
  {
    name: "memory: writeBytes of 1 KiB",
    target: "≤ 6 µs beyond a bare loop",
    bound: 6,
    figure: "overhead µs",
    count: 50_000,
    samples: 15,
    make: async () => {
      const fs = await prepared
      const map = new Map([[path, content]])
      check((await Effect.runPromise(fs.writeBytes(path, content))).bytesWritten === content.length)
      return {
        ours: { name: "writeBytes", run: effects(fs.writeBytes(path, content)) },
        baseline: { name: "copy", run: bare(() => map.set(path, content.slice())) }
      }
    }
  }
]
