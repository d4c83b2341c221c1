import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { type Entry, Journal, layerMemory, make, makeMemory } from "../../src/journal/Journal.ts"
import * as MemoryStore from "../../src/journal/store/memoryStore.ts"
import * as Signal from "../../src/runtime/signal.ts"
import { journalLaws, stat } from "./journalLaws.ts"

journalLaws("memory", makeMemory<Entry>(), { entries: 100_000, readers: 50 })

describe("a journal", () => {
  it.effect("stores the time from the Clock of the caller", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      yield* TestClock.adjust(1_234)
      yield* journal.append(stat(1))
      yield* TestClock.adjust(1_000)
      yield* journal.appendAll([stat(2), stat(3)])
      const read = yield* Stream.runCollect(journal.stored())
      assert.deepStrictEqual(
        read.map(({ at }) => at),
        [1_234, 2_234, 2_234]
      )
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("contains frozen copies of entries of any type", () =>
    Effect.gen(function* () {
      const journal = yield* makeMemory<number | ReadonlyArray<number> | { readonly inner: ReadonlyArray<object> }>()
      const inner = { a: 1 }
      yield* journal.appendAll([1, [2, 3], { inner: [inner] }])
      inner.a = 2
      const read = yield* Stream.runCollect(journal.stored())
      assert.deepStrictEqual(
        read.map(({ entry }) => entry),
        [1, [2, 3], { inner: [{ a: 1 }] }]
      )
      assert.isTrue(Object.isFrozen((read[2]!.entry as { inner: ReadonlyArray<object> }).inner[0]))
    })
  )

  it.effect("keeps a field called __proto__ as an own field", () =>
    Effect.gen(function* () {
      const journal = yield* makeMemory<{ readonly input: unknown }>()
      const said = '{"__proto__":{"path":"secret"},"constructor":1}'
      yield* journal.append({ input: JSON.parse(said) })
      const [read] = yield* Stream.runCollect(journal.stored())
      const input = read!.entry.input as { readonly path?: unknown }
      assert.strictEqual(JSON.stringify(input), said)
      assert.isUndefined(input.path)
    })
  )

  it.effect("reads its store only if there are new entries, and reads several at a time", () =>
    Effect.gen(function* () {
      const store = MemoryStore.make<Entry>()
      let reads = 0
      const journal = make<Entry>({
        ...store,
        read: (after, limit) => Effect.suspend(() => (reads++, store.read(after, limit)))
      })
      const tail = yield* Effect.forkChild(Stream.runCollect(Stream.take(journal.tail(), 1_000)), { startImmediately: true })
      yield* Effect.yieldNow
      assert.strictEqual(reads, 0)
      for (let n = 0; n < 1_000; n++) yield* journal.append(stat(n))
      assert.strictEqual((yield* Fiber.join(tail)).length, 1_000)
      // The store is not asked once per entry.
      assert.isBelow(reads, 50)
    })
  )
})

describe("a signal between fibers", () => {
  it.effect("wakes all waiting fibers once, and no fiber that starts to wait later", () =>
    Effect.gen(function* () {
      const signal = Signal.make()
      const first = yield* Effect.forEach([1, 2, 3], () =>
        Effect.forkChild(
          signal.wait(() => false),
          { startImmediately: true }
        )
      )
      assert.strictEqual(signal.waiting(), 3)
      signal.wake()
      const late = yield* Effect.forkChild(
        signal.wait(() => false),
        { startImmediately: true }
      )
      yield* Effect.forEach(first, Fiber.join)
      yield* Effect.yieldNow
      assert.isUndefined(late.pollUnsafe())
      signal.wake()
      yield* Fiber.join(late)
      assert.strictEqual(signal.waiting(), 0)
    })
  )

  it.effect("does not wait if the condition already holds", () =>
    Effect.gen(function* () {
      const signal = Signal.make()
      yield* signal.wait(() => true)
      assert.strictEqual(signal.waiting(), 0)
    })
  )

  it.effect("forgets interrupted fibers", () =>
    Effect.gen(function* () {
      const signal = Signal.make()
      const waiting = yield* Effect.forEach(Array.from({ length: 1_000 }), () =>
        Effect.forkChild(
          signal.wait(() => false),
          { startImmediately: true }
        )
      )
      yield* Fiber.interruptAll(waiting)
      assert.strictEqual(signal.waiting(), 0)
    })
  )

  it.effect("does not run a waiting fiber within the call of `wake`", () =>
    Effect.gen(function* () {
      const signal = Signal.make()
      let ran = false
      const waiting = yield* Effect.forkChild(
        Effect.map(
          signal.wait(() => false),
          () => (ran = true)
        ),
        { startImmediately: true }
      )
      signal.wake()
      assert.isFalse(ran)
      yield* Fiber.join(waiting)
      assert.isTrue(ran)
    })
  )
})
