/** Tests changes that arrive at several owners. Each owner is a separate runner over the same stores. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { sentHeader } from "../../src/repository/cluster/entity.ts"
import * as Answers from "../../src/repository/format/answers.ts"
import { type Answer, type KeptAnswers, noAnswers } from "../../src/repository/format/nodes.ts"
import * as Objects from "../../src/repository/format/objects.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Workspaces from "../../src/repository/Workspaces.ts"
import { makeBlobs } from "./stores.ts"
import { memory, stored, type StoreServices, type Tap, tapped } from "./tapped.ts"
import { runner } from "./workspaces.ts"

/** Starts a runner over stores, and returns the calls of its entity for one workspace. */
const owner = (stores: StoreServices) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.fresh(runner({}, {}, Layer.succeedContext(stores))))
    const entity = yield* Effect.provideContext(Effect.flatten(Effect.map(Workspaces.entity, ({ client }) => client)), context)
    return entity("w")
  })

const append = (id: string, content: string) => ({ id, path: "log.txt", content, options: { mode: "append" as const } })

const sequenceOf = (stores: StoreServices) => Effect.map(Context.get(stores, HeadStore).get("w"), (head) => head?.sequence ?? 0)

describe("a change of a workspace in a cluster", () => {
  it.live("that is sent again to the next owner gets its first answer, and is not made again", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* owner(stores)
      const first = yield* one.write(append("a", "line\n"))
      const edit = { id: "b", path: "log.txt", edits: [{ oldText: "line", newText: "edited" }] }
      const edited = yield* one.edit(edit)
      const made = yield* one["port.makeDirectory"]({ id: "c", path: "d" })
      const sequence = yield* sequenceOf(stores)
      const two = yield* owner(stores)
      assert.deepStrictEqual(yield* two.write(append("a", "line\n")), first)
      assert.deepStrictEqual(yield* two.edit(edit), edited)
      assert.deepStrictEqual(yield* two["port.makeDirectory"]({ id: "c", path: "d" }), made)
      assert.deepStrictEqual(yield* stored(stores), { "log.txt": "edited\n", d: "/" })
      assert.strictEqual(yield* sequenceOf(stores), sequence)
    })
  )

  it.live("whose owner disappears between the commit and the answer is made once", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const committed = yield* Deferred.make<void>()
      let count = 0
      const die: Tap = (step, call) =>
        step !== "compareAndSet" || ++count < 2
          ? call
          : Effect.andThen(call, Effect.andThen(Deferred.succeed(committed, undefined), Effect.never))
      const doomed = yield* owner(tapped(stores, die))
      const lost = yield* Effect.forkScoped(doomed.write(append("a", "line\n")))
      yield* Deferred.await(committed)
      const next = yield* owner(stores)
      const answer = yield* next.write(append("a", "line\n"))
      assert.strictEqual(answer.bytesWritten, 5)
      assert.deepStrictEqual(yield* stored(stores), { "log.txt": "line\n" })
      yield* Fiber.interrupt(lost)
    })
  )

  it.live("whose owner is paused before the commit and continues later is made once", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const [stopped, continued] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let count = 0
      const stop: Tap = (step, call) =>
        step !== "compareAndSet" || ++count !== 2
          ? call
          : Effect.andThen(Effect.andThen(Deferred.succeed(stopped, undefined), Deferred.await(continued)), call)
      const paused = yield* owner(tapped(stores, stop))
      const late = yield* Effect.forkScoped(paused.write(append("a", "line\n")))
      yield* Deferred.await(stopped)
      const next = yield* owner(stores)
      const answer = yield* next.write(append("a", "line\n"))
      yield* next.write(append("b", "next\n"))
      yield* Deferred.succeed(continued, undefined)
      assert.deepStrictEqual(yield* Fiber.join(late), answer)
      assert.deepStrictEqual(yield* stored(stores), { "log.txt": "line\nnext\n" })
    })
  )

  it.live("that reaches many owners at the same time is made once, even if other changes of the file run", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const owners = [yield* owner(stores), yield* owner(stores), yield* owner(stores)]
      const ids = Array.from({ length: 12 }, (_, i) => `${i}`)
      yield* Effect.forEach(
        ids.flatMap((id) => owners.map((to) => to.write(append(id, `${id}\n`)))),
        (call) => call,
        { concurrency: "unbounded" }
      )
      const lines = (yield* stored(stores))["log.txt"]!.trimEnd().split("\n")
      assert.deepStrictEqual(lines.sort(), [...ids].sort())
      yield* Effect.provide(Repository.verify("w"), stores)
    })
  )

  it.live("is refused at the next owner if its id belongs to another request", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* (yield* owner(stores)).write(append("a", "line\n"))
      const error = yield* Effect.flip((yield* owner(stores)).write(append("a", "other\n")))
      assert.strictEqual(error._tag, "InvalidArgument")
      assert.deepStrictEqual(yield* stored(stores), { "log.txt": "line\n" })
    })
  )

  it.live("keeps its answer through garbage collections", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* owner(stores)
      const first = yield* one.write(append("a", "line\n"))
      for (let i = 0; i < 9; i++) yield* one.write(append(`${i}`, "x"))
      yield* Effect.sleep("2 millis")
      assert.isAbove((yield* Effect.provide(Repository.collect({ grace: 0 }), stores)).deleted, 0)
      assert.deepStrictEqual(yield* (yield* owner(stores)).write(append("a", "line\n")), first)
      yield* Effect.provide(Repository.verify("w"), stores)
    })
  )

  it.live("that failed changes nothing, and may succeed when it is repeated", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const remove = { id: "a", path: "log.txt" }
      const one = yield* owner(stores)
      assert.strictEqual((yield* Effect.flip(one.delete(remove)))._tag, "NotFound")
      yield* one.write(append("b", "line\n"))
      yield* (yield* owner(stores)).delete(remove)
      assert.deepStrictEqual(yield* stored(stores), {})
    })
  )

  it.live("of several files is one commit", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* owner(stores)
      yield* one.mkdir({ id: "1", path: "from/a/b", parents: true })
      for (const name of ["1", "2", "3"]) {
        yield* one.write({ id: `w${name}`, path: `from/${name}`, content: name })
      }
      const before = yield* sequenceOf(stores)
      yield* one.copy({ id: "2", from: "from", to: "copy" })
      assert.strictEqual(yield* sequenceOf(stores), before + 1)
      assert.strictEqual((yield* stored(stores))["copy/3"], "3")
    })
  )

  it.live("with a long answer is not made again, although the answer is not kept", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* owner(stores)
      const old = Array.from({ length: 3000 }, (_, i) => `line ${i}`).join("\n")
      yield* one.write({ id: "a", path: "f", content: old })
      const edit = { id: "b", path: "f", edits: [{ oldText: old, newText: old.replaceAll("line", "row") }] }
      yield* one.edit(edit)
      const error = yield* Effect.flip((yield* owner(stores)).edit(edit))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "was made")
      assert.strictEqual((yield* stored(stores))["f"], old.replaceAll("line", "row"))
    })
  )

  it.live("that arrives when its answer may already be forgotten is refused", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const real = yield* Clock.Clock
      let hours = 0
      const now = () => real.currentTimeMillisUnsafe() + hours * 3_600_000
      const clock: Clock.Clock = {
        sleep: (duration) => real.sleep(duration),
        currentTimeMillisUnsafe: now,
        currentTimeMillis: Effect.sync(now),
        currentTimeNanosUnsafe: () => real.currentTimeNanosUnsafe(),
        currentTimeNanos: real.currentTimeNanos,
        monotonicTimeNanosUnsafe: () => real.monotonicTimeNanosUnsafe(),
        monotonicTimeNanos: real.monotonicTimeNanos
      }
      yield* Effect.gen(function* () {
        const sent = { headers: { [sentHeader]: String(now() - 1) } }
        const one = yield* owner(stores)
        const lines = "line\n".repeat(200)
        yield* one.write(append("a", lines), sent)
        // The answer has a long diff. So both answers are in a large list, with which no small one is merged.
        yield* one.edit({ id: "b", path: "log.txt", edits: [{ oldText: "line", newText: "row", match: "all" }] })
        hours++
        yield* one.write(append("c", "next\n"))
        const before = yield* stored(stores)
        const error = yield* Effect.flip((yield* owner(stores)).write(append("a", lines), sent))
        assert.strictEqual(error._tag, "Unavailable")
        assert.deepStrictEqual(yield* stored(stores), before)
      }).pipe(Effect.provideService(Clock.Clock, clock))
    })
  )
})

describe("the answers that a workspace keeps", () => {
  const answer = (i: number, size: number): Answer => ({
    id: i.toString(16).padStart(32, "0"),
    request: "0".repeat(32),
    at: i,
    text: "x".repeat(size)
  })

  it.effect("are found by id, and are rewritten only a few times", () =>
    Effect.gen(function* () {
      const blobs = makeBlobs()
      const objects = Objects.make(blobs, { cacheBytes: 1024 * 1024 })
      let kept: KeptAnswers = noAnswers
      for (let i = 0; i < 1000; i++) kept = yield* Answers.add(objects, kept, [answer(i, 50)], i)
      for (const i of [0, 1, 500, 999]) {
        assert.strictEqual((yield* Answers.find(objects, kept, [], answer(i, 0).id))?.at, i)
      }
      assert.isUndefined(yield* Answers.find(objects, kept, [], answer(1000, 0).id))
      assert.isAtMost(kept.lists.length, 16)
      // 1,000 answers of about 100 bytes.
      assert.isBelow(blobs.counts.bytes, 1000 * 100 * 20)
    })
  )

  it.effect("are limited in bytes: an answer that is not found is older than the time up to which answers are forgotten", () =>
    Effect.gen(function* () {
      const objects = Objects.make(makeBlobs(), { cacheBytes: 1024 * 1024 })
      let kept: KeptAnswers = noAnswers
      for (let i = 1; i <= 300; i++) {
        kept = yield* Answers.add(objects, kept, [answer(i, Answers.maxTextBytes)], i)
        assert.isAtMost(
          kept.lists.reduce((sum, { size }) => sum + size, 0),
          Answers.maxBytes
        )
      }
      assert.isAbove(kept.forgottenUntil, 0)
      for (let i = 1; i <= 300; i++) {
        const found = yield* Answers.find(objects, kept, [], answer(i, 0).id)
        assert.isTrue(found !== undefined || i <= kept.forgottenUntil, String(i))
      }
      assert.isDefined(yield* Answers.find(objects, kept, [], answer(300, 0).id))
    })
  )

  it.effect("of one large commit are stored in several nodes", () =>
    Effect.gen(function* () {
      const objects = Objects.make(makeBlobs(), { cacheBytes: 1024 * 1024 })
      const fresh = Array.from({ length: 20 }, (_, i) => answer(20 - i, 10_000))
      const kept = yield* Answers.add(objects, noAnswers, fresh, 20)
      assert.isAbove(kept.lists.length, 1)
      for (const { at, id } of fresh) assert.strictEqual((yield* Answers.find(objects, kept, [], id))?.at, at)
    })
  )

  it.effect("are removed when they are older than the maximum age", () =>
    Effect.gen(function* () {
      const objects = Objects.make(makeBlobs(), { cacheBytes: 1024 * 1024 })
      // The second list is too large to be merged with the first.
      const first = yield* Answers.add(objects, noAnswers, [answer(1, 10_000)], 1)
      const second = yield* Answers.add(objects, first, [answer(2, 10)], 2)
      const later = yield* Answers.add(objects, second, [answer(Answers.maxAge + 2, 1)], Answers.maxAge + 2)
      assert.isUndefined(yield* Answers.find(objects, later, [], answer(1, 0).id))
      assert.strictEqual(later.forgottenUntil, 1)
    })
  )

  it.effect("count as forgotten up to the latest time of a removed answer, even if the clocks of runners differ", () =>
    Effect.gen(function* () {
      const objects = Objects.make(makeBlobs(), { cacheBytes: 1024 * 1024 })
      const minute = 60_000
      const first = yield* Answers.add(objects, noAnswers, [answer(7 * minute, 10_000)], 7 * minute)
      // The clock of this runner is behind.
      const second = yield* Answers.add(objects, first, [answer(5 * minute, 10_000)], 5 * minute)
      const third = yield* Answers.add(objects, second, [answer(6 * minute, 10)], 6 * minute)
      const now = 8 * minute + Answers.maxAge
      const later = yield* Answers.add(objects, third, [answer(now, 1)], now)
      assert.isUndefined(yield* Answers.find(objects, later, [], answer(7 * minute, 0).id))
      assert.strictEqual(later.forgottenUntil, 7 * minute)
    })
  )

  it.effect("of a runner whose clock is a year ahead block later changes for some minutes at most", () =>
    Effect.gen(function* () {
      const objects = Objects.make(makeBlobs(), { cacheBytes: 1024 * 1024 })
      const year = 365 * 24 * 60 * 60 * 1000
      let kept = yield* Answers.add(objects, noAnswers, [answer(year, Answers.maxTextBytes)], year)
      for (let i = 1; i <= 100; i++) kept = yield* Answers.add(objects, kept, [answer(i, Answers.maxTextBytes)], i)
      assert.isUndefined(yield* Answers.find(objects, kept, [], answer(year, 0).id))
      assert.isAtMost(kept.forgottenUntil, 100 + Answers.maxAge)
    })
  )
})
