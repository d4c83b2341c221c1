/** Several processes on the file of a journal, of which some are killed. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { FileWrite } from "../../src/journal/FileSystemEntry.ts"
import { Entry, makeFile, verify } from "../../src/journal/Journal.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import { type Child, clean, start } from "../durability/children.ts"
import { dice } from "../durability/choice.ts"
import { inMemory } from "../scratch.ts"
import type { Orders } from "./fileJournalChild.ts"
import { bytesOf, stat, write } from "./journalLaws.ts"

afterAll(clean)

const soak = process.env["FS_ALGEBRA_SOAK"] === "1"
const kills = soak ? 600 : 5

const fresh = (): string => join(Fs.mkdtempSync(join(inMemory(), "journal-")), "journal.jsonl")
const cache = join(inMemory(), "compiled")
const program = (): Child => start("../journal/fileJournalChild.ts", cache)
const child = (orders: Orders, started = program()): Child => {
  started.say(orders)
  return started
}
/** Kills the process, which must not have ended by itself. */
const killed = async (victim: Child): Promise<void> => {
  victim.process.kill("SIGKILL")
  const { errors, signal } = await victim.ended
  assert.strictEqual(signal, "SIGKILL", errors)
}

const reasonOf = (path: string) =>
  Effect.scoped(Effect.match(makeFile(Entry, { path }), { onSuccess: () => "opened", onFailure: ({ reason }) => reason }))

describe("a file journal", () => {
  it.live("has one writer at a time, even in one process, and leaves no lock after it is closed", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* makeFile(Entry, { path })
          assert.strictEqual(yield* reasonOf(path), "busy")
          assert.strictEqual(yield* reasonOf(path), "busy")
        })
      )
      assert.strictEqual(yield* reasonOf(path), "opened")
      assert.isFalse(Fs.existsSync(`${path}.lock`))
    })
  )

  it.live("has one writer at a time, even through different paths", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* Effect.scoped(Effect.flatMap(makeFile(Entry, { path }), (journal) => journal.append(stat(1))))
      const link = join(Fs.mkdtempSync(join(inMemory(), "journal-")), "link")
      Fs.symlinkSync(path, link)
      for (const [one, other] of [
        [path, link],
        [link, path]
      ] as const) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const journal = yield* makeFile(Entry, { path: one })
            assert.strictEqual(yield* reasonOf(other), "busy")
            yield* journal.append(stat(2))
          })
        )
      }
      assert.strictEqual((yield* verify(path)).entries, 3)
    })
  )

  it.live("has one writing process at a time, until this process ends in any way", () =>
    Effect.gen(function* () {
      const path = fresh()
      const other = child({ task: "open", path })
      yield* Effect.promise(() => other.dots(2))
      assert.strictEqual(other.said(), "1\n")
      assert.strictEqual(yield* reasonOf(path), "busy")
      const third = child({ task: "open", path })
      yield* Effect.promise(() => third.dots(5))
      assert.strictEqual(third.said(), "busy\n")
      yield* Effect.promise(() => Promise.all([killed(other), killed(third)]))
      assert.strictEqual(Fs.readdirSync(`${path}.lock`).length, 1)
      assert.strictEqual(yield* reasonOf(path), "opened")
      assert.isFalse(Fs.existsSync(`${path}.lock`))
    })
  )

  it.live("is taken from a process in an unknown state only if its claim was not renewed for a minute", () =>
    Effect.gen(function* () {
      const path = fresh()
      // The identity of a process on another machine, or in another container.
      const stranger = Identity.self().replace(/^[0-9a-z]+/, "elsewhere")
      const entry = join(`${path}.lock`, `${stranger}.${"0".repeat(24)}`)
      const leave = (age: number): void => {
        Fs.mkdirSync(`${path}.lock`, { recursive: true })
        Fs.writeFileSync(entry, "")
        const then = performance.timeOrigin / 1000 + performance.now() / 1000 - age
        Fs.utimesSync(entry, then, then)
      }
      leave(10)
      assert.strictEqual(yield* reasonOf(path), "busy")
      leave(90)
      assert.strictEqual(yield* reasonOf(path), "opened")
      assert.isFalse(Fs.existsSync(`${path}.lock`))
    })
  )
})

describe("a journal writer that is killed at any moment", () => {
  for (const [name, options] of [
    ["plain", { chained: false, fsync: false }],
    ["chained and synced at each append", { chained: true, fsync: true }]
  ] as const) {
    it.live(
      `leaves every confirmed append at its position, once, complete and without gaps: ${name}, ${kills} times`,
      () =>
        Effect.gen(function* () {
          const path = fresh()
          const random = dice(soak ? Number(process.hrtime.bigint() % 1_000_000n) : options.chained ? 5 : 6)
          const answered = new Map<number, string>()
          let torn = 0
          let next = program()
          for (let from = 1; from <= kills; from++) {
            const writer = child({ task: "append", path, from, ...options }, next)
            next = program()
            yield* Effect.promise(() => writer.dots(1 + random.below(2_000)))
            yield* Effect.promise(() => killed(writer))
            for (const line of writer.said().split("\n").slice(0, -1)) {
              const [position, id] = line.split(" ")
              answered.set(Number(position), id!)
            }
            const before = yield* verify(path)
            torn += before.torn ? 1 : 0
            assert.deepInclude(before.contents, { missing: 0, damaged: 0 })
          }
          yield* Effect.promise(() => killed(next))
          const found = yield* Effect.scoped(
            Effect.gen(function* () {
              const journal = yield* makeFile(Entry, { path })
              return yield* Stream.runCollect(journal.stored())
            })
          )
          assert.deepStrictEqual(
            found.map(({ position }) => position),
            found.map((_, index) => index + 1)
          )
          const ids = found.map(({ entry }) => (entry as FileWrite).correlationId)
          assert.strictEqual(new Set(ids).size, ids.length)
          assert.isAbove(answered.size, kills)
          for (const [position, id] of answered) assert.strictEqual(ids[position - 1], id, `at ${position}`)
          for (const [index, id] of ids.entries()) {
            if (!id.endsWith("-a")) continue
            const call = id.slice(0, -2)
            assert.deepStrictEqual(ids.slice(index, index + 3), [id, `${call}-b`, `${call}-c`])
          }
          assert.strictEqual(ids.filter((id) => id.endsWith("-c")).length, ids.filter((id) => id.endsWith("-a")).length)
          if (soak) console.log(`${name}: ${ids.length} entries, ${answered.size} answers, ${torn} torn ends`)
        }),
      soak ? 3_600_000 : 60_000
    )
  }
})

describe("a read-only journal", () => {
  it.live("shows stored entries and appends of another process, and refuses to append", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const path = fresh()
        yield* Effect.scoped(
          Effect.flatMap(makeFile(Entry, { path, chained: true }), (journal) => journal.append(write("first", bytesOf(5_000))))
        )
        const follower = yield* makeFile(Entry, { path, readOnly: true })
        assert.strictEqual(yield* follower.last, 1)
        assert.strictEqual((yield* Effect.flip(follower.append(stat(1)))).reason, "readOnly")
        assert.strictEqual((yield* Effect.flip(follower.append(write("large", bytesOf(9_000))))).reason, "readOnly")
        const tail = yield* Effect.forkChild(Stream.runCollect(Stream.take(follower.tail(), 400)), { startImmediately: true })
        const writer = child({ task: "append", path, from: 7, chained: true, fsync: false })
        const read = yield* Fiber.join(tail)
        yield* Effect.promise(() => killed(writer))
        assert.deepStrictEqual(
          read.map(({ position }) => position),
          Array.from({ length: 400 }, (_, index) => index + 1)
        )
        const written = yield* Effect.scoped(
          Effect.flatMap(makeFile(Entry, { path }), (journal) => Stream.runCollect(Stream.take(journal.stored(), 400)))
        )
        assert.deepStrictEqual(read, written)
        const { content } = read[0]!.entry as FileWrite
        assert.deepStrictEqual(yield* follower.bytes(content), bytesOf(5_000))
      })
    )
  )

  it.live("wakes for an append at any moment, and misses no append", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const path = fresh()
        const journal = yield* makeFile(Entry, { path })
        const follower = yield* makeFile(Entry, { path, readOnly: true })
        for (let n = 1; n <= 200; n++) {
          const waiting = yield* Effect.forkChild(
            follower.waitFor(n - 1, (entry): entry is Entry => entry._tag === "FileStat"),
            { startImmediately: n % 2 === 0 }
          )
          for (let turn = n % 5; turn > 0; turn--) yield* Effect.yieldNow
          yield* journal.append(stat(n))
          assert.deepStrictEqual((yield* Fiber.join(waiting)).entry, stat(n))
        }
        assert.strictEqual((yield* Stream.runCollect(follower.readBackward())).length, 200)
      })
    )
  )

  it.live("never shows a part of an append", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const source = fresh()
        yield* Effect.scoped(
          Effect.flatMap(makeFile(Entry, { path: source }), (journal) => journal.appendAll([stat(1), stat(2), stat(3)]))
        )
        const whole = Fs.readFileSync(source)
        const path = fresh()
        Fs.writeFileSync(path, "")
        const follower = yield* makeFile(Entry, { path, readOnly: true })
        for (let size = 1; size <= whole.length; size++) {
          Fs.appendFileSync(path, whole.subarray(size - 1, size))
          assert.strictEqual(yield* follower.last, size === whole.length ? 3 : 0)
        }
      })
    )
  )

  it.live("shows an append that replaces an incomplete last line of the same length", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const path = fresh()
        const appending = (n: number) => Effect.scoped(Effect.flatMap(makeFile(Entry, { path }), (it) => it.append(stat(n))))
        yield* Effect.andThen(appending(1), appending(2))
        const whole = Fs.readFileSync(path)
        const end = whole.lastIndexOf(10, whole.length - 2) + 1
        Fs.writeFileSync(path, Buffer.concat([whole.subarray(0, end), Buffer.alloc(whole.length - end, "x")]))
        const follower = yield* makeFile(Entry, { path, readOnly: true })
        assert.strictEqual(yield* follower.last, 1)
        yield* appending(2)
        assert.strictEqual(Fs.statSync(path).size, whole.length)
        assert.strictEqual(yield* follower.last, 2)
      })
    )
  )

  it.live("ends its tails when it is closed, after which reads fail", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* Effect.scoped(Effect.flatMap(makeFile(Entry, { path }), (journal) => journal.append(stat(1))))
      const { follower, tail } = yield* Effect.scoped(
        Effect.gen(function* () {
          const follower = yield* makeFile(Entry, { path, readOnly: true })
          const tail = yield* Effect.forkDetach(Effect.flip(Stream.runDrain(follower.tail())), { startImmediately: true })
          return { follower, tail }
        })
      )
      assert.strictEqual((yield* Fiber.join(tail)).reason, "closed")
      assert.strictEqual((yield* Effect.flip(Stream.runDrain(follower.stored()))).reason, "closed")
      assert.strictEqual((yield* Effect.flip(follower.last)).reason, "closed")
    })
  )

  it.live("fails for a missing file, and fails as corrupt for a truncated file", () =>
    Effect.scoped(
      Effect.gen(function* () {
        assert.strictEqual((yield* Effect.flip(makeFile(Entry, { path: fresh(), readOnly: true }))).reason, "io")
        const path = fresh()
        yield* Effect.scoped(Effect.flatMap(makeFile(Entry, { path }), (journal) => journal.appendAll([stat(1), stat(2)])))
        const follower = yield* makeFile(Entry, { path, readOnly: true })
        Fs.truncateSync(path, 100)
        assert.strictEqual((yield* Effect.flip(follower.last)).reason, "corrupt")
      })
    )
  )
})
