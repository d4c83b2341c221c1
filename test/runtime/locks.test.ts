import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { type FsPath, isWithin } from "../../src/model/FsPath.ts"
import { make } from "../../src/runtime/locks.ts"

const path = (text: string) => text as FsPath

describe("locks", () => {
  it.effect("are granted in order of arrival to requests for the same path", () =>
    Effect.gen(function* () {
      const locks = make()
      const order: Array<number> = []
      const fibers = []
      for (let i = 0; i < 20; i++) {
        const step = Effect.gen(function* () {
          yield* Effect.yieldNow
          order.push(i)
        })
        fibers.push(yield* Effect.forkChild(locks.exclusive([path("a/b")], step), { startImmediately: true }))
      }
      yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(order, [...Array(20).keys()])
    })
  )

  it.effect("do not block other paths", () =>
    Effect.gen(function* () {
      const locks = make()
      const gate = yield* Deferred.make<void>()
      const held = yield* Effect.forkChild(locks.exclusive([path("a/b")], Deferred.await(gate)), { startImmediately: true })
      assert.strictEqual(yield* locks.exclusive([path("a/c")], Effect.succeed("went")), "went")
      assert.strictEqual(yield* locks.exclusive([path("b")], Effect.succeed("went")), "went")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(held)
    })
  )

  it.effect("make the lock of a directory wait for writers below it, and the lock of the root for all writers", () =>
    Effect.gen(function* () {
      for (const above of ["a", "."]) {
        const locks = make()
        const gate = yield* Deferred.make<void>()
        const log: Array<string> = []
        const writer = yield* Effect.forkChild(
          locks.exclusive(
            [path("a/b")],
            Effect.andThen(
              Deferred.await(gate),
              Effect.sync(() => log.push("writer"))
            )
          ),
          { startImmediately: true }
        )
        const remover = yield* Effect.forkChild(
          locks.exclusive(
            [path(above)],
            Effect.sync(() => log.push("remover"))
          ),
          {
            startImmediately: true
          }
        )
        const late = yield* Effect.forkChild(
          locks.exclusive(
            [path("a/c")],
            Effect.sync(() => log.push("late"))
          ),
          {
            startImmediately: true
          }
        )
        yield* Effect.yieldNow
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.joinAll([writer, remover, late])
        assert.deepStrictEqual(log, ["writer", "remover", "late"])
      }
    })
  )

  it.effect("release a path after failure and defect", () =>
    Effect.gen(function* () {
      const locks = make()
      assert.isTrue(Exit.isFailure(yield* Effect.exit(locks.exclusive([path("a")], Effect.fail("no")))))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(locks.exclusive([path("a")], Effect.die("no")))))
      assert.strictEqual(yield* locks.exclusive([path("a")], Effect.succeed(1)), 1)
    })
  )

  it.effect("release a path after an interruption of a holder or a waiter", () =>
    Effect.gen(function* () {
      const locks = make()
      for (let round = 0; round < 200; round++) {
        const gate = yield* Deferred.make<void>()
        const holder = yield* Effect.forkChild(locks.exclusive([path("a")], Deferred.await(gate)), { startImmediately: true })
        const waiters = []
        for (let i = 0; i < 5; i++) {
          waiters.push(
            yield* Effect.forkChild(locks.exclusive([path("a")], Effect.andThen(Effect.yieldNow, Effect.yieldNow)), {
              startImmediately: true
            })
          )
        }
        const victim = waiters[round % 5]!
        if (round % 3 === 0) yield* Fiber.interrupt(victim)
        yield* Deferred.succeed(gate, undefined)
        if (round % 3 === 1) yield* Effect.forkChild(Fiber.interrupt(victim), { startImmediately: true })
        if (round % 3 === 2) yield* Effect.andThen(Effect.yieldNow, Fiber.interrupt(victim))
        yield* Fiber.join(holder)
        yield* Fiber.awaitAll(waiters)
        assert.strictEqual(yield* locks.exclusive([path(".")], Effect.succeed("free")), "free")
      }
    })
  )

  it.effect("treat names that differ only in case as equal if the filesystem is case-insensitive", () =>
    Effect.gen(function* () {
      const locks = make({ caseSensitive: false })
      const gate = yield* Deferred.make<void>()
      const log: Array<string> = []
      const first = yield* Effect.forkChild(
        locks.exclusive(
          [path("A/x")],
          Effect.andThen(
            Deferred.await(gate),
            Effect.sync(() => log.push("first"))
          )
        ),
        { startImmediately: true }
      )
      const second = yield* Effect.forkChild(
        locks.exclusive(
          [path("a/X")],
          Effect.sync(() => log.push("second"))
        ),
        {
          startImmediately: true
        }
      )
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.joinAll([first, second])
      assert.deepStrictEqual(log, ["first", "second"])
    })
  )

  const Name = Schema.Literals([".", "a", "a/b", "a/b/c", "a/c", "d", "d/e"])
  const requests = Arbitrary.schema(
    Schema.Array(Schema.Array(Name).check(Schema.isMinLength(1), Schema.isMaxLength(2))).check(Schema.isMaxLength(12))
  )
  it.effect.prop(
    "are never held by two requests with overlapping paths, and are granted to every request in the end",
    [requests],
    ([all]) =>
      Effect.gen(function* () {
        const locks = make()
        const inside: Array<ReadonlyArray<FsPath>> = []
        const fibers = []
        for (const paths of all as ReadonlyArray<ReadonlyArray<FsPath>>) {
          const body = Effect.gen(function* () {
            for (const other of inside) {
              for (const mine of paths) {
                for (const theirs of other) assert.isFalse(isWithin(mine, theirs) || isWithin(theirs, mine))
              }
            }
            inside.push(paths)
            yield* Effect.yieldNow
            yield* Effect.yieldNow
            inside.splice(inside.indexOf(paths), 1)
          })
          fibers.push(yield* Effect.forkChild(locks.exclusive(paths, body), { startImmediately: true }))
        }
        yield* Fiber.joinAll(fibers)
      })
  )

  it.effect("let calls within `alone` run in order, while other calls wait", () =>
    Effect.gen(function* () {
      const locks = make()
      const log: Array<string> = []
      const note = (text: string) => Effect.sync(() => void log.push(text))
      const started = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const own = (name: string) =>
        locks.exclusive([path("a")], Effect.andThen(note(`${name} in`), Effect.andThen(Effect.yieldNow, note(`${name} out`))))
      const alone = yield* Effect.forkChild(
        locks.alone(
          [path(".")],
          Effect.gen(function* () {
            yield* Deferred.succeed(started, undefined)
            yield* Effect.all([own("first"), own("second"), locks.alone([path(".")], own("third"))], {
              concurrency: "unbounded"
            })
            yield* Deferred.await(gate)
            yield* note("over")
          })
        ),
        { startImmediately: true }
      )
      yield* Deferred.await(started)
      const other = yield* Effect.forkChild(locks.exclusive([path("b")], note("other")), { startImmediately: true })
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(alone)
      yield* Fiber.join(other)
      assert.deepStrictEqual(log, [
        "first in",
        "first out",
        "second in",
        "second out",
        "third in",
        "third out",
        "over",
        "other"
      ])
    })
  )

  it.effect("let an inner `alone` lock a path that only the outer `alone` holds", () =>
    Effect.gen(function* () {
      const locks = make()
      const inner = locks.alone([path("a")], locks.exclusive([path("b"), path("a/c")], Effect.succeed("went")))
      const run = yield* Effect.forkChild(locks.alone([path(".")], inner))
      for (let i = 0; i < 100 && run.pollUnsafe() === undefined; i++) yield* Effect.yieldNow
      assert.deepStrictEqual(run.pollUnsafe(), Exit.succeed("went"))
      assert.strictEqual(yield* locks.exclusive([path(".")], Effect.succeed("free again")), "free again")
    })
  )

  it.effect("make a fiber wait for its lock after the `alone` call that started the fiber has ended", () =>
    Effect.gen(function* () {
      const locks = make()
      const log: Array<string> = []
      const late = yield* Deferred.make<void>()
      const outliving = yield* locks.alone(
        [path(".")],
        Effect.forkDetach(
          Effect.andThen(
            Deferred.await(late),
            locks.exclusive(
              [path("a")],
              Effect.sync(() => void log.push("late"))
            )
          )
        )
      )
      const gate = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(
        locks.exclusive(
          [path("a")],
          Effect.andThen(
            Deferred.await(gate),
            Effect.sync(() => void log.push("holder"))
          )
        ),
        { startImmediately: true }
      )
      yield* Deferred.succeed(late, undefined)
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(holder)
      yield* Fiber.join(outliving)
      assert.deepStrictEqual(log, ["holder", "late"])
    })
  )
})
