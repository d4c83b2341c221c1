import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import type * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { around } from "../../src/port/Backend.ts"
import type { Operation } from "../../src/port/Operation.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { asked, chunk, id, journaled, list, many, memory, quiet, read, remove, started, stat, write } from "./leafBench.ts"

const kindOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.faultKind : answer._tag)
/** Returns the tag of the complete error if the answer contains one, else the kind of the answer. */
const errorOf = (answer: Entry.Afferent): string =>
  answer._tag === "FileFault" ? (answer.error?._tag ?? answer.faultKind) : answer._tag
const messageOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.message : "")

/** Runs an effect before each operation on a path. */
const first = (
  self: Filesystem.Algebra,
  what: (step: Operation["_tag"], path: string) => Effect.Effect<unknown, Fault> | undefined
): Filesystem.Algebra =>
  make(
    around(self.port, (operation, next) =>
      Effect.suspend(() => {
        const before = what(operation._tag, operation.path)
        return before === undefined ? next : Effect.andThen(before, next)
      })
    )
  )

const now = Effect.map(asked, ({ all }) => all).pipe(Effect.flatten)

const answersAs = (name: (answer: Entry.Afferent) => string, intents: ReadonlyArray<Entry.Efferent>) =>
  Effect.map(now, (all) =>
    intents.map(({ correlationId }) => {
      const found = all.find((entry) => Entry.isTerminal(entry) && entry.correlationId === correlationId)
      return found === undefined ? undefined : name(found as Entry.Afferent)
    })
  )
const answersTo = (...intents: ReadonlyArray<Entry.Efferent>) => answersAs(kindOf, intents)
const errorsOf = (...intents: ReadonlyArray<Entry.Efferent>) => answersAs(errorOf, intents)

const appendAll = (...intents: ReadonlyArray<Entry.Efferent>) =>
  Effect.flatMap(asked, ({ append }) => Effect.forEach(intents, append, { discard: true }))

describe("a request that takes too long", () => {
  it.effect("fails with Timeout after 30 seconds, and the next request on its path proceeds", () =>
    journaled(
      Effect.gen(function* () {
        const inner = yield* memory()
        yield* inner.write("a", "x")
        const fs = faulty([
          { operation: "Stat", path: "hangs", nth: 1, fault: "hang" },
          { operation: "Write", path: "w", nth: 1, fault: "hang" }
        ])(inner)
        yield* started(fs)
        const [looking, next] = [stat("hangs"), stat("hangs")]
        const [writing, then] = [write("w", "1"), write("w", "2")]
        const other = read("a")
        yield* appendAll(looking, next, writing, then, other)
        yield* quiet
        assert.deepStrictEqual(yield* answersTo(looking, next, writing, then, other), [
          undefined,
          undefined,
          undefined,
          undefined,
          "FileContent"
        ])
        yield* TestClock.adjust("29999 millis")
        yield* quiet
        assert.deepStrictEqual(yield* answersTo(looking, writing), [undefined, undefined])
        yield* TestClock.adjust("1 millis")
        yield* quiet
        assert.deepStrictEqual(yield* answersTo(looking, next, writing, then), [
          "Timeout",
          "NotFound",
          "Timeout",
          "FileWritten"
        ])
        const { answer } = yield* asked
        assert.notInclude(messageOf(yield* answer(looking.correlationId)), "may have been completed")
        assert.include(messageOf(yield* answer(writing.correlationId)), "may have been completed")
        assert.strictEqual(yield* inner.readString("w"), "2")
      })
    )
  )

  it.effect("that cannot be interrupted makes the requests on its path time out, but no other requests", () =>
    journaled(
      Effect.gen(function* () {
        const inner = yield* memory()
        yield* inner.write("d/g", "x")
        const fs = first(inner, (step, path) =>
          path === "d/f" && step === "Open" ? Effect.uninterruptible(Effect.never) : undefined
        )
        yield* started(fs, { timeout: "10 seconds" })
        const [stuck, behind, around, other] = [read("d/f"), write("d/f", "x"), list("d"), read("d/g")]
        yield* appendAll(stuck, behind, around, other)
        yield* quiet
        yield* TestClock.adjust("10 seconds")
        yield* quiet
        yield* TestClock.adjust("10 seconds")
        yield* quiet
        assert.deepStrictEqual(yield* answersTo(stuck, behind, around), ["Timeout", "Timeout", "Timeout"])
        const { answer, ask } = yield* asked
        assert.include(messageOf(yield* answer(behind.correlationId)), "did not start")
        assert.notInclude(messageOf(yield* answer(behind.correlationId)), "may have been completed")
        assert.strictEqual(kindOf(yield* ask(read("d/g"))), "FileContent")
      })
    )
  )

  it.effect("does not time out while it waits for other requests that make progress", () =>
    journaled(
      Effect.gen(function* () {
        const fs = first(yield* memory(), (step) => (step === "Write" ? Effect.sleep("20 seconds") : undefined))
        yield* started(fs)
        const all = Array.from({ length: 5 }, (_, i) => write("f", String(i)))
        yield* appendAll(...all)
        for (let i = 0; i < 5; i++) {
          yield* quiet
          yield* TestClock.adjust("20 seconds")
        }
        yield* quiet
        assert.deepStrictEqual(
          yield* answersTo(...all),
          all.map(() => "FileWritten")
        )
        assert.strictEqual(yield* fs.readString("f"), "4")
      })
    )
  )

  it.effect("is not ended while its content is still being transferred", () =>
    journaled(
      Effect.gen(function* () {
        const inner = yield* memory()
        yield* inner.writeBytes("f", many(3_000_000))
        const port = around(inner.port, (_, next) => next)
        const fs = make({
          ...port,
          open: (path) =>
            Effect.map(port.open(path), ({ read, stat }) => ({
              stat,
              read: (offset: number, length: number) => Effect.delay(read(offset, length), "20 seconds")
            }))
        })
        yield* started(fs)
        const intent = read("f")
        yield* appendAll(intent)
        for (let i = 0; i < 8; i++) {
          yield* quiet
          yield* TestClock.adjust("20 seconds")
        }
        yield* quiet
        const { answers } = yield* asked
        const told = yield* answers(intent.correlationId)
        assert.strictEqual(told.length, Math.ceil(3_000_000 / 65_536))
        assert.isTrue(told.every(({ _tag }) => _tag === "FileContentChunk"))
      })
    )
  )

  it.effect("gets a Timeout fault as the last entry of its chunked answer", () =>
    journaled(
      Effect.gen(function* () {
        const inner = yield* memory()
        yield* inner.writeBytes("f", many(3_000_000))
        yield* started(faulty([{ operation: "Read", path: "f", nth: 3, fault: "hang" }])(inner))
        const intent = read("f")
        yield* appendAll(intent)
        yield* quiet
        yield* TestClock.adjust("30 seconds")
        yield* quiet
        const told = (yield* now).filter(Entry.answers(intent.correlationId))
        assert.isAbove(told.length, 1)
        assert.deepStrictEqual(
          told.map((entry) => (Entry.isTerminal(entry) ? kindOf(entry) : "part")),
          [...told.slice(1).map(() => "part"), "Timeout"]
        )
      })
    )
  )
})

describe("a request that has timed out in the leaf", () => {
  it.effect("appends no late answer, and the next request proceeds", () =>
    journaled(
      Effect.gen(function* () {
        const inner = yield* memory()
        yield* inner.writeBytes("f", many(3_000_000))
        const gate = yield* Deferred.make<void>()
        const port = around(inner.port, (_, next) => next)
        let reads = 0
        const fs = make({
          ...port,
          open: (path) =>
            Effect.map(port.open(path), ({ read, stat }) => ({
              stat,
              read: (offset: number, length: number) =>
                ++reads === 3
                  ? Effect.uninterruptible(Effect.andThen(Deferred.await(gate), read(offset, length)))
                  : read(offset, length)
            }))
        })
        yield* started(fs)
        const intent = read("f")
        yield* appendAll(intent)
        yield* quiet
        yield* TestClock.adjust("30 seconds")
        yield* quiet
        const told = () => Effect.map(now, (all) => all.filter(Entry.answers(intent.correlationId)).map(kindOf))
        const before = yield* told()
        assert.strictEqual(before[before.length - 1], "Timeout")
        yield* Deferred.succeed(gate, undefined)
        yield* quiet
        assert.deepStrictEqual(yield* told(), before)
        // The path is free for the next request.
        const { ask } = yield* asked
        assert.strictEqual(kindOf(yield* ask(read("f", { length: 1 }))), "FileContent")
      })
    )
  )
})

describe("a file that another program has open", () => {
  /** Returns the number of attempts of an operation that is busy `times` times, and the answer. */
  const tried = (step: Operation["_tag"], times: number, intent: Entry.Efferent, lockedRetries?: number) =>
    journaled(
      Effect.gen(function* () {
        const inner = yield* memory()
        yield* inner.write("f", "x")
        let count = 0
        const fs = first(inner, (tag, path) =>
          tag === step && path === "f" && count++ < times
            ? Effect.fail<Fault>({ _tag: "AccessDenied", why: "busy" })
            : undefined
        )
        yield* started(fs, { lockedRetries })
        yield* appendAll(intent)
        // The pauses are 50, 100, … 800 ms, each at most a fifth longer.
        yield* quiet
        for (let i = 0; i < 200; i++) {
          yield* TestClock.adjust("10 millis")
          yield* Effect.yieldNow
        }
        yield* quiet
        return [count, (yield* answersTo(intent))[0]]
      })
    )

  it.effect("makes a read or a write retry five times, and then fail with AccessDenied", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* tried("Open", 5, read("f")), [6, "FileContent"])
      assert.deepStrictEqual(yield* tried("Open", 6, read("f")), [6, "AccessDenied"])
      assert.deepStrictEqual(yield* tried("Write", 5, write("f", "y")), [6, "FileWritten"])
      assert.deepStrictEqual(yield* tried("Write", 6, write("f", "y")), [6, "AccessDenied"])
      assert.deepStrictEqual(yield* tried("Open", 3, read("f"), 2), [3, "AccessDenied"])
      assert.deepStrictEqual(yield* tried("Open", 1, read("f"), 0), [1, "AccessDenied"])
    })
  )

  it.effect("makes a delete fail immediately with AccessDenied", () =>
    Effect.map(tried("Remove", 1, remove("f")), (told) => assert.deepStrictEqual(told, [1, "AccessDenied"]))
  )
})

describe("a request whose path no leaf serves at first", () => {
  it.effect("is answered once as Unavailable after five seconds, for any number of leaves", () =>
    journaled(
      Effect.gen(function* () {
        for (const prefix of ["a", "b", "b/c"]) yield* started(yield* memory({ tree: {} }), { prefix })
        const intents = [stat("x"), write("/y/z", "1"), chunk(id(), 0, "x", { path: "w" }), list("nobody"), stat("bb")]
        yield* appendAll(...intents)
        yield* quiet
        yield* TestClock.adjust("4999 millis")
        yield* quiet
        assert.deepStrictEqual(
          yield* errorsOf(...intents),
          intents.map(() => undefined)
        )
        yield* TestClock.adjust("1 millis")
        yield* quiet
        assert.deepStrictEqual(
          yield* errorsOf(...intents),
          intents.map(() => "Unavailable")
        )
        yield* TestClock.adjust("1 minute")
        yield* quiet
        assert.strictEqual((yield* now).filter((entry) => Entry.isTerminal(entry)).length, intents.length)
      })
    )
  )

  it.effect("is answered by the next leaf if the first leaf was shut down", () =>
    journaled(
      Effect.gen(function* () {
        const leaf = yield* started(yield* memory(), { prefix: "a" })
        yield* started(yield* memory(), { prefix: "b" })
        const intent = stat("x")
        yield* appendAll(intent)
        yield* quiet
        yield* TestClock.adjust("3 seconds")
        yield* leaf.shutdown
        yield* quiet
        yield* TestClock.adjust("2 seconds")
        yield* quiet
        assert.deepStrictEqual(yield* errorsOf(intent), ["Unavailable"])
      })
    )
  )

  it.effect("fails as Unavailable, answered by the leaf that started first or, after its shutdown, by the next leaf", () =>
    journaled(
      Effect.gen(function* () {
        const first = yield* started(yield* memory(), { prefix: "a", grace: "5 seconds" })
        yield* started(yield* memory(), { prefix: "b", grace: "1 second" })
        const [one, other] = [stat("x"), stat("y")]
        yield* appendAll(one)
        yield* quiet
        yield* TestClock.adjust("4 seconds")
        yield* quiet
        assert.deepStrictEqual(yield* errorsOf(one), [undefined])
        yield* TestClock.adjust("1 second")
        yield* quiet
        assert.deepStrictEqual(yield* errorsOf(one), ["Unavailable"])
        yield* appendAll(other)
        yield* quiet
        yield* TestClock.adjust("2 seconds")
        yield* quiet
        assert.deepStrictEqual(yield* errorsOf(other), [undefined])
        yield* first.shutdown
        yield* quiet
        assert.deepStrictEqual(yield* errorsOf(other), ["Unavailable"])
      })
    )
  )

  it.effect("is served by a leaf that starts in time, and by no other leaf", () =>
    journaled(
      Effect.gen(function* () {
        yield* started(yield* memory(), { prefix: "a" })
        const intent = read("b/f")
        yield* appendAll(intent)
        yield* quiet
        yield* TestClock.adjust("2 seconds")
        yield* started(yield* memory({ tree: { b: { f: "here" } } }), { prefix: "b" })
        yield* quiet
        assert.deepStrictEqual(yield* errorsOf(intent), ["FileContent"])
        yield* TestClock.adjust("1 minute")
        yield* quiet
        assert.strictEqual((yield* now).filter(Entry.answers(intent.correlationId)).length, 1)
      })
    )
  )

  it.effect("fails as Unavailable, answered by the first leaf, if another leaf starts too late", () =>
    journaled(
      Effect.gen(function* () {
        yield* started(yield* memory(), { prefix: "a" })
        const intent = read("b/f")
        yield* appendAll(intent)
        yield* quiet
        yield* TestClock.adjust("3 seconds")
        yield* started(yield* memory({ tree: { b: { f: "here" } } }), { prefix: "b" })
        yield* quiet
        yield* TestClock.adjust("1 minute")
        yield* quiet
        assert.deepStrictEqual(
          (yield* now).filter(Entry.answers(intent.correlationId)).map((entry) => errorOf(entry)),
          ["Unavailable"]
        )
      })
    )
  )
})

describe("several leaves", () => {
  it.effect("each serve the paths for which their prefix is the longest, and one of them answers invalid paths", () =>
    journaled(
      Effect.gen(function* () {
        const tree = (name: string) => ({ a: { who: name, b: { who: name } }, who: name })
        for (const [prefix, name] of [
          [undefined, "all"],
          ["a", "a"],
          ["/a/b", "ab"]
        ] as const) {
          yield* started(yield* memory({ tree: tree(name) }), prefix === undefined ? {} : { prefix })
        }
        const { all, ask, content } = yield* asked
        for (const [path, name] of [
          ["who", "all"],
          ["a/who", "a"],
          ["/a/b/who", "ab"]
        ] as const) {
          const answer = yield* ask(read(path))
          assert.isTrue(answer._tag === "FileContent")
          if (answer._tag === "FileContent") {
            assert.strictEqual(new TextDecoder().decode(yield* content(answer.content)), name)
          }
        }
        const wrong = stat("a//b")
        assert.strictEqual(kindOf(yield* ask(wrong)), "InvalidPath")
        yield* quiet
        assert.strictEqual((yield* all).filter(Entry.answers(wrong.correlationId)).length, 1)
      })
    )
  )

  it.effect("refuse to move a file from one leaf to another", () =>
    journaled(
      Effect.gen(function* () {
        const [one, other] = [yield* memory({ tree: { a: { f: "x" } } }), yield* memory()]
        yield* started(one, { prefix: "a", extended: true })
        yield* started(other, { prefix: "b", extended: true })
        const { ask } = yield* asked
        const move = (to: string) => new Entry.FileMove({ correlationId: id(), path: "a/f", to })
        for (const to of ["b/f", "nobody/f"]) {
          const answer = yield* ask(move(to))
          assert.strictEqual(kindOf(answer), "IoError")
          assert.include(messageOf(answer), "another leaf")
        }
        assert.strictEqual(kindOf(yield* ask(move("a/g"))), "FileMoved")
      })
    )
  )
})
