/** The error messages of journals: each says what failed once, and what to do. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Branch from "../../src/journal/Branch.ts"
import * as Correlation from "../../src/journal/Correlation.ts"
import * as FileSystemEntry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import * as Replay from "../../src/journal/Replay.ts"
import { onDisk } from "../scratch.ts"

const memory = Effect.map(InMemory.make(), make)

const recorded = Effect.fnUntraced(function* (options?: Journal.RecordOptions) {
  const journal = yield* Journal.makeMemory<Journal.Entry>()
  const fs = yield* Effect.provideService(Journal.record(options)(yield* memory), Journal.Journal, journal)
  return { journal, fs }
})

describe("a branch", () => {
  const ends = Layer.mergeAll(Branch.layer({ extended: true }), Branch.layerRequests(), Leaf.mockFS()).pipe(
    Layer.provideMerge(Journal.layerMemory)
  )

  it.effect("fails with messages that name operation and path once, and advise `extended: true` if the leaf lacks it", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem
      const { message } = yield* Effect.flip(fs.mkdir("d"))
      assert.strictEqual(message, 'mkdir "d": this leaf does not accept FileMakeDirectory; start it with `extended: true`')
      yield* fs.write("a.txt", "a")
      const conflict = yield* Effect.flip(fs.write("a.txt", "b", { ifMatch: "c" }))
      assert.match(conflict.message, /^write "a.txt": it changed in the meantime/)
    }).pipe(Effect.provide(ends))
  )

  it.effect("exposes only its four operations", () =>
    Effect.gen(function* () {
      const requests = yield* Branch.Branch
      assert.deepStrictEqual(Object.keys(requests).sort(), ["request", "send", "stream", "waitFor"])
      const correlationId = yield* Correlation.generate
      const asked = new FileSystemEntry.FileStat({ correlationId, path: "/" })
      assert.strictEqual((yield* requests.request(asked))._tag, "FileMetadata")
      assert.strictEqual((yield* requests.waitFor(correlationId))._tag, "FileMetadata")
    }).pipe(Effect.provide(ends))
  )
})

describe("a replay double", () => {
  it.effect("of a journal without reads explains how to record reads", () =>
    Effect.gen(function* () {
      for (const [reads, hint] of [
        [false, true],
        [true, false]
      ] as const) {
        const { fs, journal } = yield* recorded({ reads })
        yield* fs.write("a.txt", "a")
        yield* fs.readString("a.txt")
        const { message } = yield* Effect.flip((yield* Replay.double(journal)).readString("b.txt"))
        assert.strictEqual(message.includes("Journal.record({ reads: true })"), hint, message)
      }
    })
  )
})

describe("an undo", () => {
  it.effect("of a journal of another directory reports a missing entry as changed, without an expected version", () =>
    Effect.gen(function* () {
      const { fs, journal } = yield* recorded()
      yield* fs.mkdir("d")
      const error = yield* Effect.flip(Replay.undo(journal, yield* memory, { to: 0 }))
      assert.strictEqual(error.message, 'undo "d": it changed in the meantime; read it again')
    })
  )
})

describe("a journal in a file", () => {
  it.live("that is already open for writing fails as busy, and the error names possible writers", () =>
    Effect.gen(function* () {
      const open = Journal.makeFile(Journal.Entry, { path: join(onDisk(), "work.journal") })
      yield* open
      const error = yield* Effect.flip(open)
      assert.strictEqual(error.reason, "busy")
      assert.include(error.detail, "this process or in another process")
    })
  )

  it.live.each(["", " "])("with a blank path, %j, is invalid", (path) =>
    Effect.gen(function* () {
      for (const options of [{ path }, { path, readOnly: true }]) {
        const error = yield* Effect.flip(Journal.makeFile(Journal.Entry, options))
        assert.strictEqual(error.reason, "invalid", error.message)
        assert.include(error.detail, "blank")
      }
    }).pipe(Effect.scoped)
  )
})
