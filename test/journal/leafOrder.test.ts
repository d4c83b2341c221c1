import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import { around } from "../../src/port/Backend.ts"
import { capture } from "../../src/testing/Files.ts"
import { asked, journaled, memory, plain, quiet, read, started, stat, write } from "./leafBench.ts"
import { intents, type Made, plainNames, threshold } from "./leafIntents.ts"

/** Delays each operation at random, so that requests without the right order would show. */
const uneven = (self: Filesystem.Algebra): Filesystem.Algebra =>
  make(
    around(self.port, (_, next) =>
      Effect.flatMap(Random.nextIntBetween(0, 12), (pauses) =>
        Effect.andThen(
          Effect.forEach(Array.from({ length: pauses }), () => Effect.yieldNow, { discard: true }),
          next
        )
      )
    )
  )

const settings = { streamingThreshold: threshold, chunkSize: 64, extended: true }

/**
 * Returns the answers and the tree. With `oneByOne`, each request waits for the previous answer, so there is only one
 * order.
 */
const told = (program: ReadonlyArray<Made>, oneByOne: boolean) =>
  journaled(
    Effect.scoped(
      Effect.gen(function* () {
        const inner = yield* memory()
        yield* started(oneByOne ? inner : uneven(inner), settings)
        const { answer, append, told } = yield* asked
        const id = (index: number): string => `i${index}`
        for (const [index, made] of program.entries()) {
          for (const intent of made(id(index))) yield* append(intent)
          if (oneByOne) yield* answer(id(index))
        }
        const out = (yield* told(program.map((_, index) => id(index)))).map((all) =>
          all
            .filter(({ _tag }) => _tag !== "FileStarted")
            .map((entry) => plain(entry, ["modified", "created", "stat", "error"]))
        )
        return { out, tree: yield* Effect.orDie(capture(inner.port) as Effect.Effect<unknown, unknown>) }
      })
    )
  )

const soak = process.env["FS_ALGEBRA_SOAK"] === "1"

describe("the requests of one journal", () => {
  it.effect.prop(
    "get the answers and leave the tree of a sequential execution, whatever their durations",
    [intents(plainNames, { extended: true, length: 60 })],
    ([program]) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* told(program, false), yield* told(program, true))
      }),
    { arbitrary: { runs: soak ? 500 : 20 } }
  )

  it.effect("on different paths run concurrently, at most sixteen of them", () =>
    journaled(
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        let working = 0
        let most = 0
        const inner = yield* memory()
        const fs = make(
          around(inner.port, (operation, next) =>
            operation._tag !== "Write"
              ? next
              : Effect.suspend(() => {
                  most = Math.max(most, ++working)
                  return Effect.ensuring(
                    Effect.andThen(Deferred.await(gate), next),
                    Effect.sync(() => void working--)
                  )
                })
          )
        )
        yield* started(fs)
        const { answer, append } = yield* asked
        const all = Array.from({ length: 40 }, (_, i) => write(`f${i}`, "x"))
        for (const intent of all) yield* append(intent)
        yield* quiet
        assert.strictEqual(most, 16)
        yield* Deferred.succeed(gate, undefined)
        for (const { correlationId } of all) assert.strictEqual((yield* answer(correlationId))._tag, "FileWritten")
        assert.strictEqual(most, 16)
      })
    )
  )

  it.effect("run one at a time if the concurrency is 1", () =>
    journaled(
      Effect.gen(function* () {
        let working = 0
        const fs = make(
          around((yield* memory()).port, (_, next) =>
            Effect.suspend(() => {
              assert.strictEqual(++working, 1)
              return Effect.ensuring(
                Effect.andThen(Effect.yieldNow, next),
                Effect.sync(() => void working--)
              )
            })
          )
        )
        yield* started(fs, { concurrency: 1 })
        const { answer, append } = yield* asked
        const all = Array.from({ length: 20 }, (_, i) => stat(`f${i}`))
        for (const intent of all) yield* append(intent)
        for (const { correlationId } of all) {
          const found = yield* answer(correlationId)
          assert.strictEqual(found._tag === "FileFault" ? found.faultKind : found._tag, "NotFound")
        }
      })
    )
  )

  it.effect("start a few hundred at a time, even if thousands wait", () =>
    journaled(
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const inner = yield* memory()
        yield* inner.write("f", "x")
        let begun = 0
        const fs = make(
          around(inner.port, (_, next) =>
            Effect.suspend(() => {
              begun++
              return Effect.andThen(Deferred.await(gate), next)
            })
          )
        )
        yield* started(fs, { concurrency: 1_000_000 })
        const { append, answer } = yield* asked
        const all = Array.from({ length: 5_000 }, (_, i) => read(`g${i}`))
        for (const intent of all) yield* append(intent)
        const last = read("f")
        yield* append(last)
        yield* quiet
        // Only started requests reach the filesystem.
        assert.isAtMost(begun, 256)
        assert.isAtLeast(begun, 100)
        yield* Deferred.succeed(gate, undefined)
        assert.strictEqual((yield* answer(last.correlationId))._tag, "FileContent")
      })
    )
  )

  it.effect("fail with IoError if their id is in use, and are ignored if their id was answered", () =>
    journaled(
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const inner = yield* memory()
        let writes = 0
        const fs = make(
          around(inner.port, (operation, next) =>
            operation._tag === "Write"
              ? Effect.suspend(() => {
                  writes++
                  return Effect.andThen(Deferred.await(gate), next)
                })
              : next
          )
        )
        yield* started(fs)
        const { all, answers, append, ask } = yield* asked
        const intent = write("f", "x", "append")
        yield* append(intent)
        yield* quiet
        const at = yield* append(new Entry.FileStat({ correlationId: intent.correlationId, path: "other" }))
        const [refused] = yield* answers(intent.correlationId, at)
        assert.strictEqual(refused?._tag === "FileFault" ? refused.faultKind : refused?._tag, "IoError")
        yield* Deferred.succeed(gate, undefined)
        yield* ask(stat("f"))
        yield* append(intent)
        yield* append(new Entry.FileDelete({ correlationId: intent.correlationId, path: "f" }))
        yield* ask(stat("f"))
        assert.strictEqual(writes, 1)
        assert.deepStrictEqual(
          (yield* all).filter(Entry.answers(intent.correlationId)).map(({ _tag }) => _tag),
          ["FileFault", "FileWritten"]
        )
        assert.strictEqual(yield* inner.readString("f"), "x")
      })
    )
  )

  it.effect("are executed once even if they are repeated in the same append", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* memory()
        yield* started(fs)
        const { ask, journal } = yield* asked
        const intent = write("f", "x", "append")
        yield* journal.appendAll([intent, intent, intent])
        yield* ask(stat("f"))
        yield* quiet
        assert.strictEqual(yield* fs.readString("f"), "x")
      })
    )
  )
})
