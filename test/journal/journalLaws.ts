/** The laws that every journal satisfies, wherever its entries are stored. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import { FileDeleted, FileMoved, FileRead, FileStat, FileWrite, FileWritten } from "../../src/journal/FileSystemEntry.ts"
import type { Entry, Recorded, Scrivener } from "../../src/journal/Journal.ts"

export interface LawOptions {
  /** The number of entries in the long laws. @default 1000 */
  readonly entries?: number
  /** @default 10 */
  readonly readers?: number
}

export const stat = (n: number): FileStat => new FileStat({ correlationId: `stat-${n}`, path: `dir/${n}` })
export const bytesOf = (length: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 31 + seed * 17 + (index >> 8)) % 256)
export const write = (id: string, content: Uint8Array): FileWrite =>
  new FileWrite({ correlationId: id, path: "f", content, createMode: "overwrite" })
export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

const isStat =
  (n: number) =>
  (entry: Entry): entry is FileStat =>
    entry._tag === "FileStat" && entry.correlationId === `stat-${n}`

const ids = (entries: ReadonlyArray<Recorded<Entry>>): ReadonlyArray<string> =>
  entries.map(({ entry }) =>
    "correlationId" in entry ? entry.correlationId : entry._tag === "DaemonChanged" ? entry.daemon : ""
  )
const positions = (entries: ReadonlyArray<Recorded<Entry>>): ReadonlyArray<number> => entries.map(({ position }) => position)
const count = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

const fill = (journal: Scrivener<Entry>, entries: number) =>
  Effect.forEach(count(1, entries), (n) => journal.append(stat(n)), { concurrency: 64 })

export const journalLaws = <E>(
  name: string,
  make: Effect.Effect<Scrivener<Entry>, E, Scope.Scope>,
  { entries = 1000, readers = 10 }: LawOptions = {}
): void => {
  const law = <E2>(claim: string, run: (journal: Scrivener<Entry>) => Effect.Effect<void, E2, Scope.Scope>): void => {
    it.live(claim, () => Effect.scoped(Effect.flatMap(make, run)))
  }

  describe(`a journal in ${name}`, () => {
    law("begins empty", (journal) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* journal.last, 0)
        assert.deepStrictEqual(yield* Stream.runCollect(journal.stored()), [])
        assert.deepStrictEqual(yield* Stream.runCollect(journal.readBackward()), [])
        assert.strictEqual(yield* journal.appendAll([]), 0)
      })
    )

    law("returns positions from 1 without gaps, and reads back each entry with the time of its append", (journal) =>
      Effect.gen(function* () {
        const before = yield* Clock.currentTimeMillis
        const answered = [
          yield* journal.append(stat(1)),
          yield* journal.append(new FileRead({ correlationId: "r", path: 'é\u2028\n\ud83d\ude00/"\\', offset: 3 })),
          yield* journal.append(write("w", bytesOf(100)))
        ]
        const after = yield* Clock.currentTimeMillis
        assert.deepStrictEqual(answered, [1, 2, 3])
        assert.strictEqual(yield* journal.last, 3)
        const read = yield* Stream.runCollect(journal.stored())
        assert.deepStrictEqual(positions(read), [1, 2, 3])
        assert.deepStrictEqual(
          read.map(({ entry }) => entry),
          [
            stat(1),
            new FileRead({ correlationId: "r", path: 'é\u2028\n\ud83d\ude00/"\\', offset: 3 }),
            write("w", bytesOf(100))
          ]
        )
        assert.instanceOf(read[1]!.entry, FileRead)
        for (const { at } of read) assert.isTrue(at >= before && at <= after, `${before} ${at} ${after}`)
      })
    )

    law("appends an entry at each run of the effect", (journal) =>
      Effect.gen(function* () {
        const append = journal.append(stat(1))
        assert.strictEqual(yield* journal.last, 0)
        assert.deepStrictEqual([yield* append, yield* append], [1, 2])
      })
    )

    law("appends all entries of a call at consecutive positions, even if contents are stored first", (journal) =>
      Effect.gen(function* () {
        const calls = count(0, 9).map((call) => [
          write(`${call}-0`, bytesOf(call % 2 === 0 ? 10_000 : 10, call)),
          write(`${call}-1`, bytesOf(5)),
          write(`${call}-2`, bytesOf(5_000, call))
        ])
        const last = yield* Effect.forEach(calls, (call) => journal.appendAll(call), { concurrency: "unbounded" })
        const read = yield* Stream.runCollect(journal.stored())
        assert.deepStrictEqual(positions(read), count(1, 30))
        for (const [call, end] of last.entries()) {
          assert.deepStrictEqual(ids(read.slice(end - 3, end)), [`${call}-0`, `${call}-1`, `${call}-2`])
        }
      })
    )

    law("keeps the order of one fiber's appends while others append", (journal) =>
      Effect.gen(function* () {
        const each = Math.ceil(entries / 20)
        yield* Effect.forEach(
          count(1, 5),
          (fiber) =>
            Effect.forEach(count(1, each), (n) => journal.append(write(`${fiber}:${n}`, bytesOf(n % 7 === 0 ? 4_100 : 3, n)))),
          { concurrency: "unbounded" }
        )
        const read = ids(yield* Stream.runCollect(journal.stored()))
        for (const fiber of count(1, 5)) {
          assert.deepStrictEqual(
            read.filter((id) => id.startsWith(`${fiber}:`)),
            count(1, each).map((n) => `${fiber}:${n}`)
          )
        }
      })
    )

    law("reads everything after a negative position", (journal) =>
      Effect.gen(function* () {
        yield* fill(journal, 3)
        for (const after of [-1, -2, -10, Number.NEGATIVE_INFINITY]) {
          assert.deepStrictEqual(positions(yield* Stream.runCollect(journal.stored(after))), [1, 2, 3])
          assert.deepStrictEqual(positions(yield* Stream.runCollect(Stream.take(journal.tail(after), 3))), [1, 2, 3])
          assert.strictEqual((yield* journal.waitFor(after, (entry) => entry._tag === "FileStat")).position, 1)
        }
      })
    )

    law("streams the stored entries after a position; the stream ends after the last entry", (journal) =>
      Effect.gen(function* () {
        yield* fill(journal, 600)
        for (const after of [0, 1, 255, 256, 257, 511, 512, 599, 600, 601, 10_000]) {
          const read = yield* Stream.runCollect(journal.stored(after))
          assert.deepStrictEqual(positions(read), count(after + 1, 600))
        }
      })
    )

    law("reads the entries strictly before a position backward, the latest first", (journal) =>
      Effect.gen(function* () {
        yield* fill(journal, 600)
        for (const before of [undefined, 0, 1, 2, 256, 257, 258, 513, 600, 601, 602, 10_000]) {
          const read = yield* Stream.runCollect(journal.readBackward(before))
          assert.deepStrictEqual(positions(read), [...count(1, Math.min(600, (before ?? 601) - 1))].reverse(), String(before))
        }
        const latest = yield* Stream.runCollect(Stream.take(journal.readBackward(), 3))
        assert.deepStrictEqual(positions(latest), [600, 599, 598])
      })
    )

    law("emits the stored entries and then the new entries to a tail from any position, while other fibers append", (journal) =>
      Effect.gen(function* () {
        const half = Math.ceil(entries / 4)
        yield* fill(journal, half)
        const afters = [0, 1, half - 1, half, half + 1, half + 10]
        const tails = yield* Effect.forEach(afters, (after) =>
          Effect.forkChild(Stream.runCollect(Stream.takeUntil(journal.tail(after), ({ position }) => position >= 2 * half)), {
            startImmediately: true
          })
        )
        yield* fill(journal, half)
        const stored = yield* Stream.runCollect(journal.stored())
        for (const [index, tail] of tails.entries()) {
          const read = yield* Fiber.join(tail)
          assert.deepStrictEqual(positions(read), count(afters[index]! + 1, 2 * half))
          assert.deepStrictEqual(ids(read), ids(stored.slice(afters[index]!)))
        }
      })
    )

    law(`loses none of ${entries} entries with ${readers} readers, some of them slow or late`, (journal) =>
      Effect.gen(function* () {
        const read = (reader: number) =>
          journal.tail().pipe(
            reader % 10 === 0
              ? Stream.tap(({ position }) => (position % 97 === 0 ? Effect.yieldNow : Effect.void))
              : (tail) => tail,
            Stream.take(entries),
            Stream.runFold(
              () => ({ next: 1, wrong: 0 }),
              ({ next, wrong }, { position }) => ({ next: next + 1, wrong: wrong + (position === next ? 0 : 1) })
            )
          )
        const early = yield* Effect.forEach(count(1, Math.ceil(readers / 2)), (reader) => Effect.forkChild(read(reader)))
        const writing = yield* Effect.forkChild(
          Effect.forEach(
            count(1, 8),
            (writer) =>
              Effect.forEach(count(1, entries / 8), (n) => journal.append(stat(writer * entries + n)), { discard: true }),
            { concurrency: "unbounded", discard: true }
          )
        )
        yield* journal.waitFor(0, (entry): entry is Entry => entry._tag === "FileStat")
        const late = yield* Effect.forEach(count(early.length + 1, readers), (reader) => Effect.forkChild(read(reader)))
        yield* Fiber.join(writing)
        for (const reader of [...early, ...late]) {
          assert.deepStrictEqual(yield* Fiber.join(reader), { next: entries + 1, wrong: 0 })
        }
      })
    )

    law("finds the first matching entry, stored or new, strictly after the position", (journal) =>
      Effect.gen(function* () {
        yield* journal.appendAll([stat(1), stat(2), stat(1)])
        assert.strictEqual((yield* journal.waitFor(0, isStat(1))).position, 1)
        assert.strictEqual((yield* journal.waitFor(1, isStat(1))).position, 3)
        const waiting = yield* Effect.forEach([stat(2), stat(3)], (_, index) =>
          Effect.forkChild(journal.waitFor(2, isStat(index + 2)), { startImmediately: true })
        )
        yield* fill(journal, 10)
        const [second, third] = yield* Effect.forEach(waiting, Fiber.join)
        assert.strictEqual(second!.entry.correlationId, "stat-2")
        assert.strictEqual(third!.entry.correlationId, "stat-3")
        const read = yield* Stream.runCollect(journal.stored())
        assert.deepStrictEqual(read[third!.position - 1], third)
        assert.isAbove(second!.position, 3)
      })
    )

    law("wakes a fiber that waits for a position only when the journal reaches this position", (journal) =>
      Effect.gen(function* () {
        const any = (entry: Entry): entry is Entry => entry._tag === "FileStat"
        const waiting = yield* Effect.forkChild(journal.waitFor(3, any), { startImmediately: true })
        yield* fill(journal, 5)
        assert.strictEqual((yield* Fiber.join(waiting)).position, 4)
      })
    )

    law("keeps 4,096 bytes of any field in the entry, and stores 4,097 bytes as a content", (journal) =>
      Effect.gen(function* () {
        const [small, large, other] = [bytesOf(4_096), bytesOf(4_097), bytesOf(100_000)]
        const ref = { sha256: sha256(large), size: 4_097 }
        const otherRef = { sha256: sha256(other), size: 100_000 }
        const removed = (content: Uint8Array | typeof ref) => ({ path: "f", kind: "file" as const, content })
        yield* journal.appendAll([
          write("small", small),
          write("large", large),
          new FileWritten({ correlationId: "previous", path: "f", bytesWritten: 1, previous: large }),
          new FileDeleted({
            correlationId: "removed",
            path: "f",
            deletedCount: 3,
            removed: [removed(small), removed(large), removed(other)]
          }),
          new FileMoved({
            correlationId: "replaced",
            path: "f",
            to: "g",
            files: 1,
            directories: 0,
            bytes: 1,
            replaced: removed(large)
          }),
          new FileWrite({ correlationId: "ref", path: "f", content: otherRef, createMode: "create" })
        ])
        const read = (yield* Stream.runCollect(journal.stored())).map(({ entry }) => entry)
        assert.deepStrictEqual(read, [
          write("small", small),
          new FileWrite({ correlationId: "large", path: "f", content: ref, createMode: "overwrite" }),
          new FileWritten({ correlationId: "previous", path: "f", bytesWritten: 1, previous: ref }),
          new FileDeleted({
            correlationId: "removed",
            path: "f",
            deletedCount: 3,
            removed: [removed(small), removed(ref), removed(otherRef)]
          }),
          new FileMoved({
            correlationId: "replaced",
            path: "f",
            to: "g",
            files: 1,
            directories: 0,
            bytes: 1,
            replaced: removed(ref)
          }),
          new FileWrite({ correlationId: "ref", path: "f", content: otherRef, createMode: "create" })
        ])
        assert.deepStrictEqual(yield* journal.bytes(ref), large)
        assert.deepStrictEqual(yield* journal.bytes(small), small)
        assert.deepStrictEqual(yield* journal.contents.get(otherRef), other)
        const chunks = yield* Stream.runCollect(journal.contents.stream(otherRef))
        assert.deepStrictEqual(Buffer.concat(chunks), Buffer.from(other))
        assert.isTrue(chunks.every((chunk) => chunk.length <= 65_536))
        assert.isTrue(yield* journal.contents.has(ref))
        const unknown = { sha256: sha256(bytesOf(9)), size: 9 }
        assert.isFalse(yield* journal.contents.has(unknown))
        assert.strictEqual((yield* Effect.flip(journal.bytes(unknown))).reason, "corrupt")
      })
    )

    law("stores a streamed content, and no part of a stream that fails", (journal) =>
      Effect.gen(function* () {
        const chunks = count(1, 5).map((n) => bytesOf(n * 20_000, n))
        const whole = new Uint8Array(Buffer.concat(chunks))
        const ref = yield* journal.contents.putStream(Stream.fromIterable(chunks))
        assert.deepStrictEqual(ref, { sha256: sha256(whole), size: whole.length })
        assert.deepStrictEqual(yield* journal.contents.get(ref), whole)
        const half = bytesOf(1000, 77)
        const failing = Stream.concat(Stream.make(half), Stream.fail("lost" as const))
        assert.strictEqual(yield* Effect.flip(journal.contents.putStream(failing)), "lost")
        assert.isFalse(yield* journal.contents.has({ sha256: sha256(half), size: half.length }))
        const empty = yield* journal.contents.put(new Uint8Array(0))
        assert.deepStrictEqual(yield* journal.contents.get(empty), new Uint8Array(0))
      })
    )

    law("is unchanged if a caller changes an entry that the caller appended or read", (journal) =>
      Effect.gen(function* () {
        const meddle = (entry: Entry): void => {
          const fields = entry as unknown as Record<string, unknown>
          const previous = fields["content"]
          if (previous instanceof Uint8Array) previous.fill(9)
          const tries: ReadonlyArray<() => unknown> = [
            () => (fields["correlationId"] = "changed"),
            () => delete fields["path"],
            () => ((fields["entries"] as Array<{ name: string }>)[0]!.name = "changed"),
            () => (fields["removed"] as Array<{ content: Uint8Array }>)[0]!.content.fill(9)
          ]
          for (const attempt of tries) {
            try {
              attempt()
            } catch {
              // Frozen entries refuse the change.
            }
          }
        }
        const given = (): ReadonlyArray<Entry> => [
          stat(1),
          write("small", bytesOf(100)),
          write("large", bytesOf(5_000)),
          write("buffer", Buffer.from(bytesOf(50))),
          new FileDeleted({
            correlationId: "removed",
            path: "f",
            deletedCount: 1,
            removed: [{ path: "f", kind: "file", content: bytesOf(10) }]
          })
        ]
        const mine = given()
        yield* journal.appendAll(mine)
        mine.forEach(meddle)
        const read = Effect.map(Stream.runCollect(journal.stored()), (found) => found.map(({ entry }) => entry))
        const once = yield* read
        const expected = given().map((entry) =>
          entry._tag !== "FileWrite"
            ? entry
            : new FileWrite({
                ...entry,
                content:
                  entry.correlationId === "large"
                    ? { sha256: sha256(bytesOf(5_000)), size: 5_000 }
                    : new Uint8Array(entry.content as Uint8Array)
              })
        )
        assert.deepStrictEqual(once, expected)
        once.forEach(meddle)
        assert.deepStrictEqual(yield* read, expected)
        assert.deepStrictEqual(
          (yield* Stream.runCollect(journal.readBackward())).map(({ entry }) => entry),
          [...expected].reverse()
        )
        const ref = { sha256: sha256(bytesOf(5_000)), size: 5_000 }
        const bytes = yield* journal.bytes(ref)
        bytes.fill(9)
        assert.deepStrictEqual(yield* journal.bytes(ref), bytesOf(5_000))
      })
    )

    law("contains all or none of an interrupted append, and accepts later appends", (journal) =>
      Effect.gen(function* () {
        const calls = count(1, 40)
        for (const call of calls) {
          const group = [
            write(`${call}-0`, bytesOf(5_000, call)),
            write(`${call}-1`, bytesOf(10)),
            write(`${call}-2`, bytesOf(10))
          ]
          const appending = yield* Effect.forkChild(journal.appendAll(group), { startImmediately: true })
          // The append is interrupted after zero to seven yields.
          yield* Effect.forEach(count(1, call % 8), () => Effect.yieldNow)
          yield* Fiber.interrupt(appending)
        }
        const end = yield* journal.append(stat(1))
        const read = yield* Stream.runCollect(journal.stored())
        assert.deepStrictEqual(positions(read), count(1, end))
        const found = ids(read).slice(0, -1)
        assert.strictEqual(found.length % 3, 0)
        for (let at = 0; at < found.length; at += 3) {
          const call = found[at]!.split("-")[0]!
          assert.deepStrictEqual(found.slice(at, at + 3), [`${call}-0`, `${call}-1`, `${call}-2`])
        }
        assert.strictEqual(new Set(found).size, found.length)
      })
    )

    law("loses no entry for other readers if some readers are interrupted", (journal) =>
      Effect.gen(function* () {
        const gone = yield* Effect.forEach(count(1, 20), () =>
          Effect.forkChild(Stream.runDrain(journal.tail()), { startImmediately: true })
        )
        const stays = yield* Effect.forkChild(Stream.runCollect(Stream.take(journal.tail(), 50)), { startImmediately: true })
        yield* fill(journal, 25)
        yield* Effect.forEach(gone, Fiber.interrupt)
        yield* fill(journal, 25)
        assert.deepStrictEqual(positions(yield* Fiber.join(stays)), count(1, 50))
      })
    )
  })
}
