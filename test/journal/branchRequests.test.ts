import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { MaxOpsBeforeYield } from "effect/Scheduler"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import * as Duration from "effect/Duration"
import * as Branch from "../../src/journal/Branch.ts"
import * as Asking from "../../src/journal/branch/requests.ts"
import { JournalError } from "../../src/journal/errors.ts"
import * as F from "../../src/journal/FileSystemEntry.ts"
import { type Entry, Journal, layerMemory, makeMemory, type Scrivener } from "../../src/journal/Journal.ts"
import { NotFound } from "../../src/model/FsError.ts"
import { answering, fault } from "./fakeLeaf.ts"

const statOf = (correlationId: string, path = "a"): F.FileStat => new F.FileStat({ correlationId, path })
const metadata = (correlationId: string, size = 1): F.FileMetadata =>
  new F.FileMetadata({ correlationId, size, isDirectory: false })
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (chunks: ReadonlyArray<Uint8Array>): string => Buffer.concat(chunks).toString()

const settings: Asking.Settings = { timeout: Duration.minutes(2), chunkSize: 4, extended: true }

/** Returns the requests of a branch over a journal in memory, and the journal. */
const begin = (options: Partial<Asking.Settings> = {}) =>
  Effect.flatMap(makeMemory<Entry>(), (journal) =>
    Effect.map(Asking.make(journal, { ...settings, ...options }), (asking) => ({ asking, journal }))
  )

const entriesOf = (journal: Scrivener<Entry>) =>
  Effect.map(Stream.runCollect(journal.stored()), (all) => all.map(({ entry }) => entry))

/** Waits until the journal holds an entry that matches. */
const until = <B extends Entry>(journal: Scrivener<Entry>, is: (entry: Entry) => entry is B) => journal.waitFor(0, is)

const isWrite = (entry: Entry): entry is F.FileWriteChunk => entry._tag === "FileWriteChunk"

const tagOf = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Exit.isFailure(exit) ? (Cause.squash(exit.cause) as { readonly _tag: string })._tag : "success"

describe("a request", () => {
  it.effect("gets the answer with its correlation id, in any order of answers", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      const ids = Array.from({ length: 1000 }, (_, i) => `id-${i}`)
      const fibers = yield* Effect.forEach(ids, (id) =>
        Effect.forkChild(asking.request(statOf(id)), { startImmediately: true })
      )
      yield* journal.appendAll(ids.map((id, i) => metadata(id, i)).reverse())
      const answers = yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(
        answers.map((answer) => (answer._tag === "FileMetadata" ? [answer.correlationId, answer.size] : answer)),
        ids.map((id, i) => [id, i])
      )
      assert.strictEqual(asking.waiting(), 0)
    })
  )

  it.effect("that fails at the leaf gets a fault as its answer", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      yield* answering(journal, (entry) =>
        Effect.succeed([fault(entry.correlationId, "a", new NotFound({ operation: "stat", path: "a" }))])
      )
      const answer = yield* asking.request(statOf("1"))
      assert.strictEqual(answer._tag === "FileFault" ? answer.faultKind : answer._tag, "NotFound")
    })
  )

  it.effect("with an id that is in use is refused, and appends nothing", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      const first = yield* Effect.forkChild(asking.request(statOf("1")), { startImmediately: true })
      const refused = yield* Effect.flip(asking.request(statOf("1", "b")))
      assert.strictEqual(refused._tag === "InvalidArgument" ? refused.argument : refused._tag, "correlationId")
      assert.deepStrictEqual(yield* entriesOf(journal), [statOf("1")])
      yield* journal.append(metadata("1"))
      assert.strictEqual((yield* Fiber.join(first))._tag, "FileMetadata")
    })
  )

  it.effect("without an answer fails with Timeout after two minutes or its own timeout, and then waits no more", () =>
    Effect.gen(function* () {
      const { asking } = yield* begin()
      const usual = yield* Effect.forkChild(Effect.exit(asking.request(statOf("1"))), { startImmediately: true })
      const short = yield* Effect.forkChild(Effect.exit(asking.request(statOf("2"), { timeout: "1 second" })), {
        startImmediately: true
      })
      yield* TestClock.adjust("999 millis")
      assert.strictEqual(asking.waiting(), 2)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(tagOf(yield* Fiber.join(short)), "Timeout")
      yield* TestClock.adjust("118999 millis")
      assert.strictEqual(asking.waiting(), 1)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(tagOf(yield* Fiber.join(usual)), "Timeout")
      assert.strictEqual(asking.waiting(), 0)
    })
  )

  it.effect("gets its full timeout, even if earlier requests have waited", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      yield* Effect.forkChild(Effect.exit(asking.request(statOf("1"))), { startImmediately: true })
      yield* TestClock.adjust("119 seconds")
      const later = yield* Effect.forkChild(asking.request(statOf("2")), { startImmediately: true })
      yield* TestClock.adjust("119 seconds")
      yield* journal.append(metadata("2"))
      assert.strictEqual((yield* Fiber.join(later))._tag, "FileMetadata")
    })
  )

  it.effect("does not cancel the timers of other requests if it is interrupted at any step", () =>
    Effect.gen(function* () {
      for (let step = 0; step < 200; step++) {
        const { asking } = yield* begin()
        const patient = yield* Effect.forkChild(Effect.exit(asking.request(statOf("1"), { timeout: "1 hour" })), {
          startImmediately: true
        })
        // The fiber yields after every three operations, with up to three operations before the request.
        const before = Effect.forEach(Array.from({ length: Math.floor(step / 50) }), () => Effect.void, { discard: true })
        const leaving = yield* Effect.andThen(before, asking.request(statOf("2"))).pipe(
          Effect.exit,
          Effect.provideService(MaxOpsBeforeYield, 3),
          Effect.forkChild({ startImmediately: true })
        )
        for (let turn = 0; turn < step % 50; turn++) yield* Effect.yieldNow
        yield* Fiber.interrupt(leaving)
        const next = yield* Effect.forkChild(Effect.exit(asking.request(statOf("3"))), { startImmediately: true })
        // The fiber of the timers also proceeds in small steps.
        for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow
        yield* TestClock.adjust("3 minutes")
        assert.strictEqual(tagOf(yield* Fiber.join(next)), "Timeout", `step ${step}`)
        yield* TestClock.adjust("1 hour")
        assert.strictEqual(tagOf(yield* Fiber.join(patient)), "Timeout", `step ${step}`)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("does not time out while chunks of its answer arrive", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin({ timeout: Duration.seconds(10) })
      const read = yield* Effect.forkChild(
        Effect.exit(Stream.runCollect(asking.stream(new F.FileRead({ correlationId: "1", path: "a" })))),
        { startImmediately: true }
      )
      yield* until(journal, (entry) => entry._tag === "FileRead")
      for (const offset of [0, 1, 2, 3]) {
        yield* TestClock.adjust("9 seconds")
        yield* journal.append(
          new F.FileContentChunk({ correlationId: "1", offset, data: utf8(`${offset}`), isFinal: offset === 3 })
        )
      }
      const exit = yield* Fiber.join(read)
      assert.strictEqual(Exit.isSuccess(exit) ? text(exit.value) : tagOf(exit), "0123")
    })
  )

  it.effect("fails with Timeout when no further chunk arrives", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin({ timeout: Duration.seconds(10) })
      const read = yield* Effect.forkChild(
        Effect.exit(Stream.runCollect(asking.stream(new F.FileRead({ correlationId: "1", path: "a" })))),
        { startImmediately: true }
      )
      yield* until(journal, (entry) => entry._tag === "FileRead")
      yield* journal.append(new F.FileContentChunk({ correlationId: "1", offset: 0, data: utf8("0"), isFinal: false }))
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(tagOf(yield* Fiber.join(read)), "Timeout")
      assert.strictEqual(asking.waiting(), 0)
    })
  )

  it.effect("that is interrupted stops waiting, and ignores its answer", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      const fiber = yield* Effect.forkChild(asking.request(statOf("1")), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(asking.waiting(), 0)
      yield* journal.append(metadata("1"))
      const next = yield* Effect.forkChild(asking.request(statOf("2")), { startImmediately: true })
      yield* journal.append(metadata("2"))
      assert.strictEqual((yield* Fiber.join(next)).correlationId, "2")
    })
  )

  it.effect("ignores an answer that was appended before it", () =>
    Effect.gen(function* () {
      const journal = yield* makeMemory<Entry>()
      yield* journal.append(metadata("1", 7))
      const asking = yield* Asking.make(journal, settings)
      const fiber = yield* Effect.forkChild(asking.request(statOf("1")), { startImmediately: true })
      yield* journal.append(metadata("1", 8))
      const answer = yield* Fiber.join(fiber)
      assert.strictEqual(answer._tag === "FileMetadata" ? answer.size : undefined, 8)
    })
  )

  it.effect("fails with JournalError for an answer of the wrong kind", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      yield* answering(journal, ({ correlationId }) => Effect.succeed([new F.FileDirectoryMade({ correlationId, path: "a" })]))
      const error = yield* Effect.flip(asking.request(statOf("1")))
      assert.strictEqual(error._tag === "JournalError" ? error.reason : error._tag, "corrupt")
    })
  )

  it.effect("fails if the journal refuses to append it, and the next request succeeds", () =>
    Effect.gen(function* () {
      const journal = yield* makeMemory<Entry>()
      const broken = new JournalError({ operation: "append", reason: "io", detail: "planned" })
      let isBroken = true
      const asking = yield* Asking.make(
        { ...journal, append: (entry) => (isBroken ? Effect.fail(broken) : journal.append(entry)) },
        settings
      )
      assert.strictEqual(yield* Effect.flip(asking.request(statOf("1"))), broken)
      assert.strictEqual(asking.waiting(), 0)
      isBroken = false
      const fiber = yield* Effect.forkChild(asking.request(statOf("1")), { startImmediately: true })
      yield* journal.append(metadata("1"))
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "FileMetadata")
    })
  )

  it.effect("fails if the tail of the journal fails, and the next request continues at the same position", () =>
    Effect.gen(function* () {
      const journal = yield* makeMemory<Entry>()
      const lost = new JournalError({ operation: "tail", reason: "unavailable", detail: "planned" })
      const losing = yield* Deferred.make<never, JournalError>()
      const tails: Array<number> = []
      const asking = yield* Asking.make(
        {
          ...journal,
          tail: (after = 0) => {
            tails.push(after)
            return tails.length > 1
              ? journal.tail(after)
              : Stream.merge(journal.tail(after), Stream.fromEffect(Deferred.await(losing)))
          }
        },
        settings
      )
      const answered = yield* Effect.forkChild(asking.request(statOf("0")), { startImmediately: true })
      yield* journal.append(metadata("0"))
      yield* Fiber.join(answered)
      const fiber = yield* Effect.forkChild(Effect.exit(asking.request(statOf("1"))), { startImmediately: true })
      yield* until(journal, (entry): entry is F.FileStat => entry._tag === "FileStat" && entry.correlationId === "1")
      yield* Deferred.fail(losing, lost)
      const exit = yield* Fiber.join(fiber)
      assert.strictEqual(Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined, lost)
      const next = yield* Effect.forkChild(asking.request(statOf("2")), { startImmediately: true })
      yield* journal.append(metadata("2"))
      assert.strictEqual((yield* Fiber.join(next)).correlationId, "2")
      assert.isAbove(tails[1]!, 0)
    })
  )

  it.effect("fails with `closed` if the scope of its branch ends, and so do later requests", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { asking } = yield* Scope.provide(begin(), scope)
      const fiber = yield* Effect.forkChild(Effect.exit(asking.request(statOf("1"))), { startImmediately: true })
      yield* Scope.close(scope, Exit.void)
      const exit = yield* Fiber.join(fiber)
      const error = Exit.isFailure(exit) ? (Cause.squash(exit.cause) as JournalError) : undefined
      assert.strictEqual(error?.reason, "closed")
      const later = yield* Effect.flip(asking.request(statOf("2")))
      assert.strictEqual(later._tag === "JournalError" ? later.reason : later._tag, "closed")
    })
  )

  it.effect("of another process can be waited for, before or after its answer, and up to a timeout", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      yield* journal.appendAll([statOf("1"), metadata("1", 5), statOf("2")])
      const first = yield* asking.waitFor("1")
      assert.strictEqual(first._tag === "FileMetadata" ? first.size : undefined, 5)
      const second = yield* Effect.forkChild(asking.waitFor("2", { after: 2 }), { startImmediately: true })
      yield* journal.append(metadata("2", 6))
      assert.strictEqual((yield* Fiber.join(second)).correlationId, "2")
      const never = yield* Effect.forkChild(Effect.exit(asking.waitFor("3", { timeout: "1 second" })), {
        startImmediately: true
      })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(tagOf(yield* Fiber.join(never)), "Timeout")
    })
  )

  it.effect("needs only layerRequests and a journal", () =>
    Effect.gen(function* () {
      yield* answering(yield* Journal, ({ correlationId }) => Effect.succeed([metadata(correlationId)]))
      const requests = yield* Branch.Branch
      const answer = yield* requests.request(statOf("1"))
      assert.strictEqual(answer._tag, "FileMetadata")
    }).pipe(Effect.provide(Branch.layerRequests()), Effect.provide(layerMemory))
  )
})

describe("a read of a stream through a branch", () => {
  const read = (
    journal: Scrivener<Entry>,
    asking: Asking.RequestClient,
    ...chunks: ReadonlyArray<readonly [offset: number, data: string]>
  ) =>
    Effect.gen(function* () {
      yield* answering(journal, ({ correlationId }) =>
        Effect.succeed(
          chunks.map(
            ([offset, data], i) =>
              new F.FileContentChunk({ correlationId, offset, data: utf8(data), isFinal: i === chunks.length - 1 })
          )
        )
      )
      return text(yield* Stream.runCollect(asking.stream(new F.FileRead({ correlationId: "1", path: "a", offset: 2 }))))
    })

  it.effect("returns the chunks in order", () =>
    Effect.flatMap(begin(), ({ asking, journal }) =>
      Effect.map(read(journal, asking, [2, "abc"], [5, "d"], [6, "ef"]), (found) => assert.strictEqual(found, "abcdef"))
    )
  )

  it.effect("fails for chunks that are not in order", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      const error = yield* Effect.flip(read(journal, asking, [2, "abc"], [6, "d"]))
      assert.strictEqual(error._tag === "JournalError" ? error.reason : error._tag, "corrupt")
    })
  )

  it.effect("returns no bytes if a fault follows some chunks", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      yield* answering(journal, ({ correlationId }) =>
        Effect.succeed([
          new F.FileContentChunk({ correlationId, offset: 0, data: utf8("half"), isFinal: false }),
          fault(correlationId, "a", new NotFound({ operation: "read", path: "a" }))
        ])
      )
      const seen: Array<Uint8Array> = []
      const stream = asking.stream(new F.FileRead({ correlationId: "1", path: "a" }))
      const error = yield* Effect.flip(Stream.runForEach(stream, (chunk) => Effect.sync(() => seen.push(chunk))))
      assert.strictEqual(error._tag, "FileFault")
      assert.deepStrictEqual(seen, [])
    })
  )
})

describe("a write of a stream through a branch", () => {
  const write: Branch.Sending = { correlationId: "1", path: "a", createMode: "create", ifMatch: null, version: true }

  const written = (journal: Scrivener<Entry>) =>
    answering(journal, (entry) =>
      Effect.succeed(
        entry._tag === "FileWriteChunk" && entry.isFinal
          ? [new F.FileWritten({ correlationId: entry.correlationId, path: "a", bytesWritten: 1 })]
          : []
      )
    )

  const chunksIn = (journal: Scrivener<Entry>) => Effect.map(entriesOf(journal), (all) => all.filter(isWrite))

  const shown = (all: ReadonlyArray<F.FileWriteChunk>) =>
    all.map(({ data, isFinal, offset }) => [offset, data instanceof Uint8Array ? text([data]) : data.size, isFinal])

  it.effect("is sent in chunks of equal size, and only the first chunk contains the path and the options", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      yield* written(journal)
      const pieces = ["a", "", "bcdefgh", "ij", "kl"]
      const answer = yield* asking.send(write, Stream.map(Stream.fromIterable(pieces), utf8))
      assert.strictEqual(answer._tag, "FileWritten")
      const all = yield* chunksIn(journal)
      assert.deepStrictEqual(shown(all), [
        [0, "abcd", false],
        [4, "efgh", false],
        [8, "ijkl", true]
      ])
      const { createMode, ifMatch, path, version } = all[0]!
      assert.deepStrictEqual([path, createMode, ifMatch, version], ["a", "create", null, true])
      assert.isTrue(all.slice(1).every((chunk) => chunk.path === undefined && chunk.createMode === undefined))
    })
  )

  it.effect("is sent as one chunk if it is empty", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      yield* written(journal)
      yield* asking.send(write, Stream.empty)
      assert.deepStrictEqual(shown(yield* chunksIn(journal)), [[0, "", true]])
    })
  )

  it.effect("stops reading the stream once the leaf has refused the write", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      yield* answering(journal, (entry) =>
        Effect.succeed(
          entry._tag === "FileWriteChunk" && entry.offset === 0
            ? [fault("1", "a", new NotFound({ operation: "write", path: "a" }))]
            : []
        )
      )
      let pulled = 0
      const endless = Stream.fromEffectRepeat(
        Effect.andThen(
          Effect.yieldNow,
          Effect.sync(() => {
            pulled++
            return utf8("four")
          })
        )
      )
      const answer = yield* asking.send(write, endless)
      assert.strictEqual(answer._tag, "FileFault")
      assert.isBelow(pulled, 100)
      assert.isTrue((yield* chunksIn(journal)).every(({ isFinal }) => !isFinal))
    })
  )

  const broken = Stream.concat(Stream.make(utf8("12345")), Stream.fail({ _tag: "Cable" } as const))

  it.effect("sends a discard to the leaf if the stream fails or is interrupted", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      assert.deepStrictEqual(yield* Effect.flip(asking.send(write, broken)), { _tag: "Cable" })
      const reached = yield* Deferred.make<void>()
      const slow = Stream.concat(
        Stream.make(utf8("12345")),
        Stream.fromEffect(Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))
      )
      const fiber = yield* Effect.forkChild(asking.send({ ...write, correlationId: "2" }, slow))
      yield* Deferred.await(reached)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(
        (yield* chunksIn(journal)).map(({ correlationId, discard, isFinal, offset }) => [
          correlationId,
          offset,
          isFinal,
          discard
        ]),
        [
          ["1", 0, false, undefined],
          ["1", 4, true, true],
          ["2", 0, false, undefined],
          ["2", 4, true, true]
        ]
      )
      assert.strictEqual(asking.waiting(), 0)
    })
  )

  it.effect("sends no discard to a leaf with only basic kinds of entry, which would take the discard for a last chunk", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin({ extended: false })
      yield* Effect.flip(asking.send(write, broken))
      assert.deepStrictEqual(shown(yield* chunksIn(journal)), [[0, "1234", false]])
    })
  )

  it.effect("sends nothing if the stream fails before the first chunk", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      yield* Effect.flip(asking.send(write, Stream.concat(Stream.make(utf8("123")), Stream.fail("cut"))))
      assert.deepStrictEqual(yield* entriesOf(journal), [])
    })
  )

  it.effect("is not discarded once its last chunk is appended", () =>
    Effect.gen(function* () {
      const { asking, journal } = yield* begin()
      const fiber = yield* Effect.forkChild(asking.send(write, Stream.make(utf8("123456"))), { startImmediately: true })
      yield* until(journal, (entry): entry is F.FileWriteChunk => isWrite(entry) && entry.isFinal)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(shown(yield* chunksIn(journal)), [
        [0, "1234", false],
        [4, "56", true]
      ])
    })
  )
})
