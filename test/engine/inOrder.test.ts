import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { runInOrder } from "../../src/engine/inOrder.ts"

/** Returns a source of the numbers from 0 to below `end`, which counts the numbers taken. */
const counting = (end: number) => {
  const state = { brought: 0 }
  return { state, next: Effect.sync(() => (state.brought < end ? state.brought++ : undefined)) }
}

describe("runInOrder", () => {
  it.effect("returns results in order and runs a limited number at a time", () =>
    Effect.gen(function* () {
      const gates = yield* Effect.forEach(Array.from({ length: 6 }), () => Deferred.make<void>())
      const { next, state } = counting(6)
      let running = 0
      let most = 0
      const run = (value: number) =>
        Effect.gen(function* () {
          most = Math.max(most, ++running)
          // The last running task unblocks the others.
          if (value % 3 === 2) yield* Effect.forEach(gates.slice(0, value), (gate) => Deferred.succeed(gate, undefined))
          else yield* Deferred.await(gates[value]!)
          running--
          return value
        })
      const answer = yield* runInOrder(next, run, 3)
      const answers: Array<number | undefined> = []
      for (let i = 0; i < 7; i++) answers.push(yield* answer)
      assert.deepStrictEqual(answers, [0, 1, 2, 3, 4, 5, undefined])
      assert.strictEqual(most, 3)
      assert.strictEqual(state.brought, 6)
    }).pipe(Effect.scoped)
  )

  it.effect("takes only one task from the source if its result is available at once", () =>
    Effect.gen(function* () {
      const { next, state } = counting(100)
      const answer = yield* runInOrder(next, Effect.succeed, 8)
      assert.strictEqual(yield* answer, 0)
      assert.strictEqual(state.brought, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("fails at the position of the failed task", () =>
    Effect.gen(function* () {
      const { next } = counting(9)
      const answer = yield* runInOrder(next, (value) => (value === 2 ? Effect.fail("two") : Effect.succeed(value)), 4)
      assert.deepStrictEqual([yield* answer, yield* answer], [0, 1])
      assert.strictEqual(yield* Effect.flip(answer), "two")
    }).pipe(Effect.scoped)
  )

  it.effect("returns the results of started tasks before a failure of the source", () =>
    Effect.gen(function* () {
      const { next } = counting(3)
      const failing = Effect.flatMap(next, (value) => (value === 2 ? Effect.fail("no more") : Effect.succeed(value)))
      const answer = yield* runInOrder(failing, (value) => Effect.as(Effect.yieldNow, value), 4)
      assert.deepStrictEqual([yield* answer, yield* answer], [0, 1])
      assert.strictEqual(yield* Effect.flip(answer), "no more")
    }).pipe(Effect.scoped)
  )

  it.effect("waits for all started tasks when it is interrupted", () =>
    Effect.gen(function* () {
      const { next } = counting(9)
      const gate = yield* Deferred.make<void>()
      const ended: Array<number> = []
      const run = (value: number) =>
        Effect.ensuring(
          Effect.uninterruptible(Deferred.await(gate)),
          Effect.sync(() => ended.push(value))
        )
      const waiting = yield* Effect.forkChild(Effect.scoped(Effect.flatten(runInOrder(next, run, 3))), {
        startImmediately: true
      })
      const stopping = yield* Effect.forkChild(Fiber.interrupt(waiting), { startImmediately: true })
      for (let turn = 0; turn < 20; turn++) yield* Effect.yieldNow
      assert.isUndefined(stopping.pollUnsafe())
      assert.deepStrictEqual(ended, [])
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(ended.sort(), [0, 1, 2])
    })
  )
})
