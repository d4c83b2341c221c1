/** Participants of a session that fail at each of their steps, and interruptions at each step of the session. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { root } from "../../src/model/FsPath.ts"
import { SessionError } from "../../src/model/sessionError.ts"
import * as Slice from "../../src/model/Slice.ts"
import type { Participant } from "../../src/port/slices.ts"
import * as Locks from "../../src/runtime/locks.ts"
import * as Session from "../../src/workspace/Session.ts"
import { Trigger, victimOf } from "../interruption/harness.ts"
import { isSoak } from "../runs.ts"

const Notes = Slice.make("Notes", Schema.String)

const outside = (detail: string): SessionError => new SessionError({ operation: "fake", reason: "outside", detail })

type Fault = "fails" | "dies" | "hangs"

/** A participant with a value outside of the slices, which counts its captures and its prepared changes. */
class Fake {
  readonly name: string
  value = "first"
  /** The number of captures that are not released, and of prepared changes that are neither committed nor discarded. */
  kept = 0
  prepared = 0
  holds = 0
  readonly log: Array<string> = []
  readonly locks = Locks.make()
  readonly faults = new Map<string, Fault>()
  readonly reached = Deferred.makeUnsafe<void>()

  constructor(name: string) {
    this.name = name
  }

  step(name: string): Effect.Effect<void, SessionError> {
    return Effect.gen({ self: this }, function* () {
      this.log.push(name)
      yield* Effect.yieldNow
      switch (this.faults.get(name)) {
        case "fails":
          return yield* Effect.fail(outside(`${this.name} ${name}`))
        case "dies":
          return yield* Effect.die(new Error(`${this.name} ${name}`))
        case "hangs":
          yield* Deferred.succeed(this.reached, undefined)
          return yield* Effect.interruptible(Effect.never)
      }
    })
  }

  get participant(): Participant {
    return {
      name: this.name,
      exclusively: (effect) =>
        this.locks.alone(
          [root],
          Effect.suspend(() => {
            this.holds++
            return effect
          })
        ),
      capture: Effect.gen({ self: this }, function* () {
        assert.isAbove(this.holds, 0, "captured without its lock")
        yield* this.step("capture")
        const { value } = this
        this.kept++
        return {
          prepare: Effect.gen({ self: this }, function* () {
            yield* this.step("prepare")
            this.prepared++
            return {
              commit: Effect.gen({ self: this }, function* () {
                yield* Effect.yieldNow
                this.prepared--
                this.value = value
                yield* Effect.orDie(this.step("commit"))
              }),
              discard: Effect.sync(() => void this.prepared--)
            }
          }),
          release: Effect.gen({ self: this }, function* () {
            yield* Effect.yieldNow
            this.kept--
            yield* Effect.orDie(this.step("release"))
          })
        }
      }),
      reset: Effect.gen({ self: this }, function* () {
        yield* Effect.yieldNow
        this.value = "first"
        yield* Effect.orDie(this.step("reset"))
      })
    }
  }
}

/** A session with three participants and a snapshot "s", changed since. */
const ground = Effect.gen(function* () {
  const session = yield* Session.make({ slices: [Notes] })
  const fakes = ["a", "b", "c"].map((name) => new Fake(name))
  for (const fake of fakes) yield* session.addParticipant(fake.participant)
  yield* session.set(Notes, "then")
  for (const fake of fakes) fake.value = "then"
  yield* session.snapshot("s")
  yield* session.set(Notes, "now")
  for (const fake of fakes) fake.value = "now"
  const seen = Effect.map(session.all(Notes), (notes) => [...notes, ...fakes.map(({ value }) => value)])
  return { session, fakes, seen }
})

const all = (text: string) => [text, text, text, text]

const [then, now] = [all("then"), all("now")]
/** The slice is empty at first. */
const first = ["first", "first", "first"]

describe("a participant of a session", () => {
  it.effect("is captured and restored with the session, and its capture is released with the snapshot", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { fakes, seen, session } = yield* ground
        yield* session.rollback("s")
        assert.deepStrictEqual(yield* seen, then)
        yield* session.set(Notes, "now")
        for (const fake of fakes) fake.value = "now"
        yield* session.rollback("s")
        assert.deepStrictEqual(yield* seen, then)
        yield* session.snapshot("s")
        for (const { kept, prepared } of fakes) assert.deepStrictEqual([kept, prepared], [1, 0])
        yield* session.forget("s")
        for (const { kept } of fakes) assert.strictEqual(kept, 0)
      })
    )
  )

  it.effect("is reset after the slices are reset", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { fakes, session } = yield* ground
        const seen: Array<ReadonlyArray<string>> = []
        yield* session.addParticipant({
          name: "last",
          reset: Effect.flatMap(session.all(Notes), (notes) => Effect.sync(() => void seen.push(notes)))
        })
        yield* session.reset
        assert.deepStrictEqual(seen, [[]])
        assert.deepStrictEqual(
          fakes.map(({ value }) => value),
          ["first", "first", "first"]
        )
      })
    )
  )

  for (const fault of ["fails", "dies"] as const) {
    for (const at of [0, 1, 2]) {
      it.effect(`leaves session and participants unchanged if participant ${at} ${fault} while a rollback is prepared`, () =>
        Effect.scoped(
          Effect.gen(function* () {
            const { fakes, seen, session } = yield* ground
            fakes[at]!.faults.set("prepare", fault)
            const exit = yield* Effect.exit(session.rollback("s"))
            assert.strictEqual(fault === "dies", Exit.hasDies(exit))
            assert.isTrue(Exit.isFailure(exit))
            assert.deepStrictEqual(yield* seen, now)
            for (const { kept, prepared } of fakes) assert.deepStrictEqual([kept, prepared], [1, 0])
            fakes[at]!.faults.clear()
            yield* session.rollback("s")
            assert.deepStrictEqual(yield* seen, then)
          })
        )
      )

      it.effect(`leaves the old snapshot and no new capture if the capture of participant ${at} ${fault}`, () =>
        Effect.scoped(
          Effect.gen(function* () {
            const { fakes, seen, session } = yield* ground
            fakes[at]!.faults.set("capture", fault)
            for (const id of ["s", "t"]) assert.isTrue(Exit.isFailure(yield* Effect.exit(session.snapshot(id))))
            for (const { kept } of fakes) assert.strictEqual(kept, 1)
            assert.deepStrictEqual(
              (yield* session.snapshots).map(({ snapshotId }) => snapshotId),
              ["s"]
            )
            yield* session.rollback("s")
            assert.deepStrictEqual(yield* seen, then)
          })
        )
      )
    }
  }

  for (const step of ["commit", "release", "reset"]) {
    it.effect(`that dies in ${step} does not stop the other participants, and makes the call die`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { fakes, seen, session } = yield* ground
          fakes[0]!.faults.set(step, "dies")
          const call = step === "commit" ? session.rollback("s") : step === "reset" ? session.reset : session.forget("s")
          assert.isTrue(Exit.hasDies(yield* Effect.exit<unknown, SessionError, never>(call)))
          if (step === "commit") assert.deepStrictEqual(yield* seen, then)
          if (step === "reset") assert.deepStrictEqual(yield* seen, first)
          if (step === "release") for (const { kept } of fakes) assert.strictEqual(kept, 0)
          for (const { prepared } of fakes) assert.strictEqual(prepared, 0)
        })
      )
    )
  }

  for (const step of ["capture", "prepare"]) {
    it.effect(`may be interrupted while it hangs in ${step}, and then nothing changes`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { fakes, seen, session } = yield* ground
          fakes[1]!.faults.set(step, "hangs")
          const call = step === "capture" ? Effect.asVoid(session.snapshot("t")) : session.rollback("s")
          const fiber = yield* Effect.forkScoped(call)
          yield* Deferred.await(fakes[1]!.reached)
          yield* Fiber.interrupt(fiber)
          assert.deepStrictEqual(yield* seen, now)
          for (const { kept, prepared } of fakes) assert.deepStrictEqual([kept, prepared], [1, 0])
          fakes[1]!.faults.clear()
          yield* session.rollback("s")
          assert.deepStrictEqual(yield* seen, then)
        })
      )
    )
  }

  it.effect("has a unique name, and is removed with its captures when its scope closes", () =>
    Effect.gen(function* () {
      const session = yield* Session.make({ slices: [Notes] })
      const [one, other] = [new Fake("one"), new Fake("other")]
      const scope = yield* Scope.make()
      yield* Scope.provide(session.addParticipant(one.participant), scope)
      const error = yield* Effect.flip(Effect.scoped(session.addParticipant(new Fake("one").participant)))
      assert.strictEqual(error.reason, "invalid")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* session.addParticipant(other.participant)
          yield* session.snapshot("s")
          yield* session.snapshot("t")
          yield* Scope.close(scope, Exit.void)
          assert.deepStrictEqual([one.kept, other.kept], [0, 2])
          one.value = "gone"
          other.value = "now"
          yield* session.rollback("s")
          assert.deepStrictEqual([one.value, other.value], ["gone", "first"])
        })
      )
      assert.strictEqual(other.kept, 0)
      yield* Effect.scoped(session.addParticipant(new Fake("one").participant))
    })
  )

  it.effect("is reset by a rollback to a snapshot from before it joined", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { session } = yield* ground
        const late = new Fake("late")
        const withoutPast: Array<string> = []
        yield* session.addParticipant(late.participant)
        yield* session.addParticipant({ name: "slices only", reset: Effect.sync(() => void withoutPast.push("reset")) })
        late.value = "now"
        yield* session.rollback("s")
        assert.strictEqual(late.value, "first")
        assert.deepStrictEqual(withoutPast, [])
      })
    )
  )

  it.effect("is locked by one fiber at a time, which may lock it again", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { fakes, seen, session } = yield* ground
        const inside = Deferred.makeUnsafe<void>()
        const gate = Deferred.makeUnsafe<void>()
        const order: Array<string> = []
        const first = yield* Effect.forkScoped(
          session.exclusively(
            Effect.gen(function* () {
              yield* Deferred.succeed(inside, undefined)
              yield* Deferred.await(gate)
              yield* session.exclusively(session.snapshot("inner"))
              yield* Effect.all([session.rollback("s"), session.snapshot("t"), session.reset], { concurrency: "unbounded" })
              yield* session.forget("t")
              order.push("first")
            })
          )
        )
        yield* Deferred.await(inside)
        const second = yield* Effect.forkScoped(
          Effect.andThen(
            session.rollback("s"),
            Effect.sync(() => void order.push("second"))
          ),
          { startImmediately: true }
        )
        yield* Effect.yieldNow
        assert.deepStrictEqual(yield* seen, now)
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(first)
        yield* Fiber.join(second)
        assert.deepStrictEqual(order, ["first", "second"])
        assert.deepStrictEqual(yield* seen, then)
        for (const { kept, prepared } of fakes) assert.deepStrictEqual([kept, prepared], [2, 0])
      })
    )
  )

  it.effect("is called by one fiber at a time, even if it has no lock", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make({ slices: [Notes] })
        let inside = 0
        const step = Effect.gen(function* () {
          assert.strictEqual(++inside, 1)
          yield* Effect.yieldNow
          inside--
        })
        const prepare = Effect.as(step, { commit: step, discard: step })
        yield* session.addParticipant({ name: "free", capture: Effect.as(step, { prepare, release: step }), reset: step })
        yield* session.snapshot("s")
        const calls = [session.rollback("s"), session.snapshot("s"), session.reset, session.forget("t"), session.snapshot("t")]
        yield* Effect.all(
          [...calls, ...calls].map((call) => Effect.asVoid<unknown, SessionError, never>(call)),
          {
            concurrency: "unbounded"
          }
        )
      })
    )
  )

  it.effect("does not deadlock if a fiber locks it and then calls the session while other fibers call the session", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { fakes, session } = yield* ground
        const locks = Locks.nestLocks(session.exclusively, fakes[0]!.locks)
        const own = Effect.andThen(Effect.yieldNow, session.snapshot("own"))
        yield* Effect.all(
          Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? Effect.asVoid(locks.alone([root], own)) : session.rollback("s"))),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          (yield* session.snapshots).map(({ snapshotId }) => snapshotId),
          ["s", "own"]
        )
      })
    )
  )

  it.effect("is locked even if it joins while a call waits for the lock of another participant", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { fakes, session } = yield* ground
        const inside = Deferred.makeUnsafe<void>()
        const gate = Deferred.makeUnsafe<void>()
        const working = Effect.andThen(Deferred.succeed(inside, undefined), Deferred.await(gate))
        yield* Effect.forkScoped(fakes[2]!.locks.alone([root], working))
        yield* Deferred.await(inside)
        const snapshot = yield* Effect.forkScoped(session.snapshot("t"), { startImmediately: true })
        yield* Effect.yieldNow
        const late = new Fake("late")
        yield* session.addParticipant(late.participant)
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(snapshot)
        // A fake participant fails if it is captured without its lock.
        assert.deepStrictEqual([late.holds, late.kept], [1, 1])
      })
    )
  )
})

describe("an interruption at any step", () => {
  const cases: ReadonlyArray<
    readonly [
      name: string,
      call: (session: Session.Operations) => Effect.Effect<unknown, SessionError>,
      outcomes: ReadonlyArray<ReadonlyArray<string>>
    ]
  > = [
    ["rollback", (session) => session.rollback("s"), [now, then]],
    ["snapshot", (session) => session.snapshot("t"), [now]],
    ["snapshot that replaces another", (session) => session.snapshot("s"), [now]],
    ["forget", (session) => session.forget("s"), [now]],
    ["reset", (session) => session.reset, [now, first]]
  ]
  for (const [name, call, outcomes] of cases) {
    it.live(`leaves each ${name} completed or without effect`, () =>
      Effect.gen(function* () {
        const seenOutcomes = new Set<string>()
        const every = isSoak ? 1 : 2
        for (let nth = 1, fired = true; fired; nth += every) {
          fired = yield* Effect.scoped(
            Effect.gen(function* () {
              const { fakes, seen, session } = yield* ground
              const trigger = new Trigger("step", nth)
              yield* victimOf(trigger, call(session))
              const outcome = JSON.stringify(yield* seen)
              assert.include(
                outcomes.map((one) => JSON.stringify(one)),
                outcome,
                `at step ${nth}`
              )
              seenOutcomes.add(outcome)
              const known = (yield* session.snapshots).length
              for (const { kept, prepared } of fakes) assert.deepStrictEqual([kept, prepared], [known, 0], `at step ${nth}`)
              // No lock is held any more.
              yield* session.exclusively(Effect.void)
              if (known > 0) yield* session.rollback((yield* session.snapshots)[0]!.snapshotId)
              return trigger.hasFired
            })
          )
        }
        assert.strictEqual(seenOutcomes.size, outcomes.length)
      })
    )
  }
})
