import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { DaemonChanged, LeafCheckpoint } from "../../src/journal/entries/status.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as MemoryStore from "../../src/journal/store/memoryStore.ts"
import * as Answered from "../../src/journal/leaf/answered.ts"
import { asking, bytes, id, memory, quiet, read, started, stat, write } from "./leafBench.ts"

/** Returns a journal in memory that counts the entries read from it. */
const counting = () => {
  const store = MemoryStore.make<Journal.Entry>()
  let count = 0
  const counted = <A extends ReadonlyArray<unknown>, E>(effect: Effect.Effect<A, E>) =>
    Effect.tap(effect, (all) => Effect.sync(() => void (count += all.length)))
  const journal = Journal.make<Journal.Entry>({
    ...store,
    read: (after, limit) => counted(store.read(after, limit)),
    readBackward: (before, limit) => counted(store.readBackward(before, limit))
  })
  return { ...asking(journal), read: () => count, reset: () => void (count = 0) }
}

type Here = ReturnType<typeof counting>

const within = <A, E, R>(here: Here, effect: Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.provideService(effect, Journal.Journal, here.journal))

/** Appends `pairs` requests of other clients, each with its answer. */
const filled = (here: Here, pairs: number) =>
  here.journal.appendAll(
    Array.from({ length: pairs }, () => {
      const { correlationId } = stat("f")
      return [
        new Entry.FileStat({ correlationId, path: "f" }),
        new Entry.FileMetadata({ correlationId, size: 1, isDirectory: false })
      ]
    }).flat()
  )

const checkpoints = (here: Here) =>
  Effect.map(here.all, (all) => all.filter((entry): entry is LeafCheckpoint => entry._tag === "LeafCheckpoint"))

/** Runs one leaf from its start to its end, with one request. */
const visit = (here: Here, fs: Effect.Success<ReturnType<typeof memory>>, options = {}) =>
  within(
    here,
    Effect.gen(function* () {
      yield* started(fs, { extended: true, ...options })
      yield* here.ask(stat("f"))
      yield* quiet
    })
  )

describe("a leaf's checkpoint", () => {
  it.effect("lets the next leaf start after the checkpoint instead of reading the whole journal", () =>
    Effect.gen(function* () {
      const here = counting()
      const fs = yield* memory({ tree: { f: "x" } })
      yield* filled(here, 15_000)
      yield* visit(here, fs)
      const [first, ...more] = yield* checkpoints(here)
      assert.isAbove(first!.through, 30_000)
      assert.deepStrictEqual(more, [])
      yield* filled(here, 100)
      here.reset()
      yield* visit(here, fs)
      assert.isBelow(here.read(), Answered.duplicateWindow + 2_000)
    })
  )

  it.effect("is used, but never appended, by a leaf with only the basic kinds of entry", () =>
    Effect.gen(function* () {
      const here = counting()
      const fs = yield* memory({ tree: { f: "x" } })
      yield* filled(here, 10_000)
      yield* visit(here, fs, { extended: false })
      assert.deepStrictEqual(yield* checkpoints(here), [])
      yield* visit(here, fs)
      assert.strictEqual((yield* checkpoints(here)).length, 1)
      here.reset()
      yield* visit(here, fs, { extended: false })
      assert.isBelow(here.read(), Answered.duplicateWindow + 2_000)
    })
  )

  it.effect("never covers an unanswered request", () =>
    Effect.gen(function* () {
      const here = counting()
      const fs = yield* memory({ tree: { f: "x" } })
      yield* within(
        here,
        Effect.gen(function* () {
          yield* started(fs, { extended: true, prefix: "f" })
          const open = yield* here.append(read("elsewhere"))
          for (let i = 0; i < 10; i++) {
            yield* filled(here, 500)
            yield* here.ask(stat("f"))
          }
          yield* quiet
          for (const { through } of yield* checkpoints(here)) assert.isBelow(through, open)
        })
      )
    })
  )

  it.effect("keeps an earlier unanswered request for the next leaf", () =>
    Effect.gen(function* () {
      const here = counting()
      const fs = yield* memory({ tree: { f: "x", elsewhere: "y" } })
      const open = read("elsewhere")
      yield* within(
        here,
        Effect.gen(function* () {
          const leaf = yield* started(fs, { extended: true, prefix: "f" })
          yield* filled(here, 1_000)
          yield* here.ask(stat("f"))
          yield* here.append(open)
          yield* filled(here, 2_000)
          yield* here.ask(stat("f"))
          yield* leaf.shutdown
        })
      )
      assert.isAbove((yield* checkpoints(here)).length, 0)
      yield* within(
        here,
        Effect.gen(function* () {
          yield* started(fs, { extended: true })
          assert.strictEqual((yield* here.answer(open.correlationId))._tag, "FileContent")
        })
      )
    })
  )

  it.effect("makes a leaf ignore a repeated id within the window, even after a restart, but not beyond the window", () =>
    Effect.gen(function* () {
      const here = counting()
      const fs = yield* memory({ tree: { f: "x" } })
      const once = write("log", "once;", "append")
      const settings = { extended: true, resume: "all" as const }
      yield* within(
        here,
        Effect.gen(function* () {
          yield* started(fs, settings)
          yield* here.ask(once)
          yield* filled(here, 300)
          yield* here.append(once)
          yield* filled(here, 600)
          yield* here.ask(stat("f"))
          yield* quiet
        })
      )
      const [last] = (yield* checkpoints(here)).slice(-1)
      const repeated = (yield* here.all).findLastIndex(
        (entry) => "correlationId" in entry && entry.correlationId === once.correlationId
      )
      assert.isAbove(last!.through, repeated + 1, "the checkpoint is behind the repeated one")
      yield* within(
        here,
        Effect.gen(function* () {
          yield* started(fs, settings)
          yield* here.append(once)
          yield* here.ask(stat("f"))
          yield* quiet
          assert.strictEqual(yield* fs.readString("log"), "once;")
          yield* filled(here, Answered.duplicateWindow)
          yield* here.ask(stat("f"))
          const again = yield* here.append(once)
          yield* here.answer(once.correlationId, again)
          assert.strictEqual(yield* fs.readString("log"), "once;once;")
        })
      )
    })
  )

  it.effect("is ignored if it is from another installation or for another journal", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ tree: { f: "x" } })
      const other = counting()
      yield* filled(other, 2_000)
      yield* visit(other, fs)
      const [true_] = yield* checkpoints(other)
      const leaves = true_!.leaves
      for (const forged of [
        new LeafCheckpoint({ through: 3_000, digest: "0".repeat(64), leaves: [], code: "0".repeat(32) }),
        new LeafCheckpoint({ through: 3_000, digest: true_!.digest, leaves, code: true_!.code }),
        new LeafCheckpoint({ through: Number.MAX_SAFE_INTEGER, digest: "", leaves: [], code: "" }),
        new LeafCheckpoint({ through: 0, digest: "", leaves: [], code: "" }),
        true_!
      ]) {
        const here = counting()
        const open = read("f")
        yield* here.append(open)
        yield* filled(here, 3_000)
        yield* here.append(forged)
        yield* within(
          here,
          Effect.gen(function* () {
            yield* started(fs, { extended: true })
            assert.strictEqual((yield* here.answer(open.correlationId))._tag, "FileContent")
          })
        )
      }
    })
  )

  it.effect("is appended although a leaf of another installation also appends checkpoints", () =>
    Effect.gen(function* () {
      const here = counting()
      const fs = yield* memory({ tree: { f: "x" } })
      const foreign = new LeafCheckpoint({ through: Number.MAX_SAFE_INTEGER, digest: "", leaves: [], code: "f".repeat(32) })
      yield* within(
        here,
        Effect.gen(function* () {
          // A leaf on another machine that has run longest, and so appends the checkpoints there.
          yield* here.append(
            new DaemonChanged({
              daemon: "far",
              instance: "far",
              status: "Running",
              prefix: "far",
              extended: true
            })
          )
          yield* started(fs, { extended: true })
          for (let i = 0; i < 4; i++) {
            yield* filled(here, 1_000)
            yield* here.ask(stat("f"))
            yield* here.append(foreign)
            yield* quiet
          }
        })
      )
      assert.isAbove((yield* checkpoints(here)).filter(({ code }) => code !== foreign.code).length, 0)
    })
  )

  it.effect("is found although forged checkpoints follow it", () =>
    Effect.gen(function* () {
      const here = counting()
      const fs = yield* memory({ tree: { f: "x" } })
      yield* filled(here, 10_000)
      yield* visit(here, fs)
      const forged = new LeafCheckpoint({ through: 30_000, digest: "", leaves: [], code: "f".repeat(32) })
      yield* here.journal.appendAll(Array.from({ length: 100 }, () => forged))
      here.reset()
      yield* visit(here, fs)
      assert.isBelow(here.read(), Answered.duplicateWindow + 2_000)
    })
  )
})

describe("the ids of answered requests that a leaf keeps", () => {
  it("are at most one more than the window, even for a long journal", () => {
    const answered = Answered.make()
    const content = bytes("x")
    for (let position = 1; position <= 50_000; position++) {
      answered.advanceTo({
        position,
        entry: new Entry.FileContent({ correlationId: id(), content, totalSize: 1, isPartial: false })
      })
      assert.isAtMost(answered.size(), Answered.duplicateWindow + 1)
    }
  })
})
