/**
 * The cost of the journal: a recorded filesystem compared with a plain one, a branch compared with its leaf's
 * filesystem, and a journal file compared with plain writes of the same bytes.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Branch from "../../src/journal/Branch.ts"
import * as FileSystemEntry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import type { Case } from "../harness.ts"
import { check, effects } from "../harness.ts"

const temporary = () => mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))

/** Builds the services of a layer, which stay open until the case is closed. */
const opened = async <A>(layer: Layer.Layer<A, unknown>) => {
  const runtime = ManagedRuntime.make(Layer.fresh(layer))
  return { runtime, close: () => runtime.dispose() }
}

const content = "a".repeat(1024)

/** Writes new content each time, as programs do, in turn over 64 files. */
const writes = (fs: Filesystem.Algebra) => {
  let serial = 0
  return Effect.suspend(() => {
    serial++
    return fs.write(`f${serial & 63}.txt`, `${serial}${content}`)
  })
}

const recorded = (
  name: string,
  bound: number,
  count: number,
  previous: boolean,
  layer: (root: string) => Layer.Layer<Filesystem.Filesystem, unknown>
): Case => ({
  name: `journal: recorded write of 1 KiB, ${name}${previous ? ", with what it replaced" : ""}`,
  target: `≤ ${bound} of the write`,
  bound,
  figure: "ratio",
  count,
  samples: 21,
  make: async () => {
    const roots = [temporary(), temporary()] as const
    const plain = await opened(layer(roots[0]))
    const written = await opened(
      Layer.provideMerge(Filesystem.decorate(Journal.record({ previous }))(layer(roots[1])), Journal.layerMemory)
    )
    const plainFs = await plain.runtime.runPromise(Filesystem.Filesystem)
    const fs = await written.runtime.runPromise(Filesystem.Filesystem)
    const journal = await written.runtime.runPromise(Journal.Journal)
    await Effect.runPromise(writes(plainFs))
    await Effect.runPromise(writes(fs))
    check((await Effect.runPromise(fs.readString("f1.txt"))) === (await Effect.runPromise(plainFs.readString("f1.txt"))))
    check((await Effect.runPromise(journal.last)) === 2)
    return {
      ours: { name: "recorded", run: effects(writes(fs)) },
      baseline: { name: "plain", run: effects(writes(plainFs)) },
      close: async () => {
        await plain.close()
        await written.close()
        for (const root of roots) rmSync(root, { recursive: true })
      }
    }
  }
})

const roundTrip = (name: string, ask: (fs: Filesystem.Algebra) => Effect.Effect<unknown, unknown>): Case => ({
  name: `journal: round trip through memory, ${name}`,
  target: "≤ 50 µs beyond the leaf's filesystem",
  bound: 50,
  figure: "overhead µs",
  count: 1_000,
  samples: 21,
  make: async () => {
    const tree = { "a.txt": content }
    const plain = await opened(InMemory.layer({ tree }))
    const leaf = Leaf.mockFS({}, { tree, extended: true })
    const asked = await opened(
      Layer.provideMerge(Branch.layer({ extended: true }), Layer.provideMerge(leaf, Journal.layerMemory))
    )
    const plainFs = await plain.runtime.runPromise(Filesystem.Filesystem)
    const fs = await asked.runtime.runPromise(Filesystem.Filesystem)
    check((await Effect.runPromise(fs.readString("a.txt"))) === (await Effect.runPromise(plainFs.readString("a.txt"))))
    return {
      ours: { name: "branch and leaf", run: effects(ask(fs)) },
      baseline: { name: "the leaf's filesystem", run: effects(ask(plainFs)) },
      close: async () => {
        await asked.close()
        await plain.close()
      }
    }
  }
})

const entry = new FileSystemEntry.FileWritten({
  correlationId: "0123456789abcdef0123456789abcdef",
  path: "a.txt",
  bytesWritten: 5
})

export const cases: ReadonlyArray<Case> = [
  recorded("memory", 1.8, 2_000, false, () => InMemory.layer()),
  recorded("memory", 1.8, 2_000, true, () => InMemory.layer()),
  recorded("host", 1.15, 200, false, (root) => PosixHost.layer({ root })),
  recorded("host", 1.15, 200, true, (root) => PosixHost.layer({ root })),
  roundTrip("stat", (fs) => fs.stat("a.txt")),
  roundTrip("read of 1 KiB", (fs) => fs.readBytes("a.txt")),
  roundTrip("write of 1 KiB", (fs) => fs.write("b.txt", content)),
  {
    name: "journal: an entry into a file, of many at once",
    target: "≤ 10 µs beyond the bytes (100,000 a second)",
    bound: 10,
    figure: "overhead µs",
    count: 20_000,
    samples: 11,
    make: async () => {
      const root = temporary()
      const scope = Scope.makeUnsafe()
      const journal = await Effect.runPromise(
        Scope.provide(Journal.makeFile(Journal.Entry, { path: join(root, "journal.ndjson") }), scope)
      )
      await Effect.runPromise(journal.append(entry))
      const stored = await Effect.runPromise(Stream.runCollect(journal.stored()))
      check(stored.length === 1 && stored[0]!.entry._tag === "FileWritten")
      const line = readFileSync(join(root, "journal.ndjson"), "utf8").trimEnd().split("\n").at(-1)! + "\n"
      const out = openSync(join(root, "bytes"), "a")
      return {
        ours: {
          name: "append, a hundred fibers",
          run: (count) =>
            Effect.runPromise(
              Effect.forEach(
                Array.from({ length: 100 }),
                () =>
                  Effect.gen(function* () {
                    for (let i = 0; i < count / 100; i++) yield* journal.append(entry)
                  }),
                { concurrency: "unbounded", discard: true }
              )
            )
        },
        baseline: {
          name: "the same bytes, a hundred lines a write",
          run: (count) => {
            for (let i = 0; i < count / 100; i++) writeSync(out, line.repeat(100))
          }
        },
        close: async () => {
          await Effect.runPromise(Scope.close(scope, Exit.void))
          closeSync(out)
          rmSync(root, { recursive: true })
        }
      }
    }
  }
]
