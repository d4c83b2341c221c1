/** A journal on a failing disk. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { FileStat } from "../../src/journal/FileSystemEntry.ts"
import { Entry, type JournalError, make, makeFile, type Scrivener, verify } from "../../src/journal/Journal.ts"
import { type Disk, realDisk } from "../../src/journal/store/writer.ts"
import * as FileStore from "../../src/journal/store/fileStore.ts"
import { inMemory } from "../scratch.ts"
import { bytesOf, stat, write } from "./journalLaws.ts"

const fresh = (): string => join(Fs.mkdtempSync(join(inMemory(), "journal-")), "journal.jsonl")

const on = (
  path: string,
  disk: Partial<Disk>,
  options: { readonly fsync?: boolean; readonly chained?: boolean } = {}
): Effect.Effect<Scrivener<Entry>, JournalError, Scope.Scope> =>
  Effect.map(
    FileStore.make(
      Entry,
      { path, contents: `${path}.contents`, fsync: false, chained: false, ...options },
      { ...realDisk, ...disk }
    ),
    make
  )

const failed = (code: string): Error => Object.assign(new Error(code), { code, errno: code === "ENOSPC" ? -28 : -5 })

const idsOf = (path: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const journal = yield* makeFile(Entry, { path })
      const read = yield* Stream.runCollect(journal.stored())
      return read.map(({ entry }) => (entry as FileStat).correlationId)
    })
  )

/** Returns a disk with space for `room` bytes; `free` adds space. */
const small = (room: number) => {
  let left = room
  const take = (bytes: Uint8Array): Uint8Array => {
    if (left === 0) throw failed("ENOSPC")
    const taken = bytes.subarray(0, left)
    left -= taken.length
    return taken
  }
  return {
    free: () => (left = Number.MAX_SAFE_INTEGER),
    write: (descriptor: number, bytes: Uint8Array) => realDisk.write(descriptor, take(bytes)),
    writeAsync: ((descriptor, bytes, done) => {
      try {
        realDisk.writeAsync(descriptor, take(bytes), done)
      } catch (error) {
        done(error as Error, 0)
      }
    }) satisfies Disk["writeAsync"]
  }
}

describe("a file journal whose disk is full", () => {
  for (const chained of [false, true]) {
    it.live(
      `fails an append that does not fit, keeps no part of it, and accepts the next append when there is space${chained ? " (chained)" : ""}`,
      () =>
        Effect.gen(function* () {
          const sample = fresh()
          const group = [stat(2), write("w", bytesOf(100)), stat(3)]
          yield* Effect.scoped(Effect.flatMap(on(sample, {}, { chained }), (journal) => journal.append(stat(1))))
          const before = Fs.statSync(sample).size
          yield* Effect.scoped(Effect.flatMap(on(sample, {}, { chained }), (journal) => journal.appendAll(group)))
          const size = Fs.statSync(sample).size - before
          for (let room = 0; room < size; room += 7) {
            const path = fresh()
            yield* Effect.scoped(Effect.flatMap(on(path, {}, { chained }), (journal) => journal.append(stat(1))))
            const start = Fs.statSync(path).size
            const disk = small(room)
            yield* Effect.scoped(
              Effect.gen(function* () {
                const journal = yield* on(path, disk)
                const error = yield* Effect.flip(journal.appendAll(group))
                assert.strictEqual(error.reason, "io")
                assert.strictEqual(Fs.statSync(path).size, start)
                assert.strictEqual(yield* journal.last, 1)
                disk.free()
                assert.strictEqual(yield* journal.append(stat(4)), 2)
              })
            )
            assert.deepStrictEqual(yield* idsOf(path), ["stat-1", "stat-4"])
            assert.deepInclude(yield* verify(path), { entries: 2, torn: false })
          }
        })
    )
  }

  it.live("accepts each append that fits if several appends are written together, and fails the others", () =>
    Effect.gen(function* () {
      for (const room of [0, 200, 250, 300, 1000, 10_000, 100_000]) {
        for (const [count, size] of [
          [10, 10],
          [100, 3_000]
        ] as const) {
          const path = fresh()
          const disk = small(room)
          const results = yield* Effect.scoped(
            Effect.gen(function* () {
              const journal = yield* on(path, disk)
              const results = yield* Effect.forEach(
                Array.from({ length: count }),
                (_, n) =>
                  Effect.map(Effect.result(journal.append(write(`w-${n}`, bytesOf(size)))), (result) => ({ n, result })),
                { concurrency: "unbounded" }
              )
              disk.free()
              yield* journal.append(stat(0))
              return results
            })
          )
          const answered = results.flatMap(({ n, result }) =>
            result._tag === "Success" ? [{ n, position: result.success }] : []
          )
          // A line has about 130 bytes.
          if (count === 10) assert.strictEqual(answered.length > 0, room >= 200, `room for ${room}`)
          if (room <= 1_000) assert.isBelow(answered.length, count)
          assert.deepStrictEqual(yield* idsOf(path), [...answered.map(({ n }) => `w-${n}`), "stat-0"], `room for ${room}`)
          assert.deepStrictEqual(
            answered.map(({ position }) => position),
            answered.map((_, index) => index + 1)
          )
        }
      }
    })
  )

  it.live(
    "removes a partial line later if it cannot remove the line immediately: before the next write or at the next opening",
    () =>
      Effect.gen(function* () {
        const path = fresh()
        const disk = small(100)
        let truncates = 0
        yield* Effect.scoped(
          Effect.gen(function* () {
            const journal = yield* on(path, {
              ...disk,
              truncate: (descriptor, size) => {
                if (++truncates < 3) throw failed("EIO")
                realDisk.truncate(descriptor, size)
              }
            })
            assert.strictEqual((yield* Effect.flip(journal.append(stat(1)))).reason, "io")
            assert.notInclude(Fs.readFileSync(path, "utf8").slice(-1), "\n")
            disk.free()
            assert.strictEqual((yield* Effect.flip(journal.append(stat(2)))).reason, "io")
            assert.strictEqual(yield* journal.append(stat(3)), 1)
          })
        )
        assert.deepStrictEqual(yield* idsOf(path), ["stat-3"])
        const never = fresh()
        const failing = Effect.scoped(
          Effect.flatMap(
            on(never, {
              ...small(20),
              truncate: () => {
                throw failed("EIO")
              }
            }),
            (journal) => journal.append(stat(1))
          )
        )
        yield* Effect.flip(failing)
        assert.isTrue((yield* verify(never)).torn)
        assert.deepStrictEqual(yield* idsOf(never), [])
        assert.isFalse((yield* verify(never)).torn)
      })
  )
})

describe("a file journal whose sync fails", () => {
  it.live("fails the append, and refuses further appends until it is opened again", () =>
    Effect.gen(function* () {
      const path = fresh()
      let syncs = 0
      const disk: Partial<Disk> = {
        sync: (descriptor, done) => (++syncs === 2 ? done(failed("EIO")) : realDisk.sync(descriptor, done))
      }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* on(path, disk, { fsync: true })
          assert.strictEqual(yield* journal.append(stat(1)), 1)
          assert.strictEqual((yield* Effect.flip(journal.append(stat(2)))).reason, "io")
          assert.strictEqual((yield* Effect.flip(journal.append(stat(3)))).reason, "io")
          assert.strictEqual(yield* journal.last, 1)
        })
      )
      assert.deepStrictEqual(yield* idsOf(path), ["stat-1"])
    })
  )

  it.live("confirms an append only after the sync", () =>
    Effect.scoped(
      Effect.gen(function* () {
        let finish: (() => void) | undefined
        const journal = yield* on(fresh(), { sync: (_, done) => (finish = () => done(null)) }, { fsync: true })
        const append = yield* Effect.forkChild(journal.append(stat(1)), { startImmediately: true })
        yield* Effect.yieldNow
        yield* Effect.yieldNow
        assert.isDefined(finish)
        assert.isUndefined(append.pollUnsafe())
        assert.strictEqual(yield* journal.last, 0)
        // Appends during a sync go with the next write.
        const next = yield* Effect.forkChild(
          Effect.all([journal.append(stat(2)), journal.append(stat(3))], { concurrency: 2 }),
          {
            startImmediately: true
          }
        )
        const first = finish!
        finish = undefined
        first()
        assert.strictEqual(yield* Fiber.join(append), 1)
        yield* Effect.yieldNow
        yield* Effect.yieldNow
        finish!()
        assert.deepStrictEqual(yield* Fiber.join(next), [2, 3])
      })
    )
  )
})

describe("an interrupted append to a file journal", () => {
  it.live("is absent if it was queued, and complete if it was being written", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* Effect.scoped(
        Effect.gen(function* () {
          let finish: (() => void) | undefined
          const journal = yield* on(path, { sync: (_, done) => (finish = () => done(null)) }, { fsync: true })
          const taken = yield* Effect.forkChild(journal.appendAll([stat(1), stat(2)]), { startImmediately: true })
          yield* Effect.yieldNow
          yield* Effect.yieldNow
          assert.isDefined(finish)
          const queued = yield* Effect.forkChild(journal.append(stat(3)), { startImmediately: true })
          yield* Fiber.interrupt(queued)
          const stopping = yield* Effect.forkChild(Fiber.interrupt(taken), { startImmediately: true })
          yield* Effect.yieldNow
          // The interruption waits for the write, which cannot be undone.
          assert.isUndefined(stopping.pollUnsafe())
          finish!()
          yield* Fiber.join(stopping)
          assert.strictEqual(yield* journal.last, 2)
          const last = yield* Effect.forkChild(journal.append(stat(4)), { startImmediately: true })
          yield* Effect.yieldNow
          yield* Effect.yieldNow
          finish!()
          assert.strictEqual(yield* Fiber.join(last), 3)
        })
      )
      assert.deepStrictEqual(yield* idsOf(path), ["stat-1", "stat-2", "stat-4"])
    })
  )
})

describe("a file journal whose file another program changes", () => {
  const meddled = (meddle: (path: string) => void) =>
    Effect.scoped(
      Effect.gen(function* () {
        const path = fresh()
        const journal = yield* makeFile(Entry, { path })
        yield* journal.append(stat(1))
        meddle(path)
        return (yield* Effect.flip(journal.append(stat(2)))).reason
      })
    )

  it.live("fails with `corrupt` if the size of the file has changed", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* meddled((path) => Fs.appendFileSync(path, "x")), "corrupt")
      assert.strictEqual(yield* meddled((path) => Fs.truncateSync(path, 60)), "corrupt")
    })
  )

  it.live("fails with `io` if the file was removed", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* meddled((path) => Fs.unlinkSync(path)), "io")
    })
  )
})
