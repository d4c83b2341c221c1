/**
 * Injects one fault at each step of a call. Afterwards the session and the files are either both unchanged, or both in
 * the state that the tool leaves.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { refused, type ToolFailure } from "../../src/agent/definition.ts"
import { ToolContext } from "../../src/agent/ToolContext.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { around } from "../../src/port/Backend.ts"
import { capture } from "../../src/testing/Files.ts"
import type * as Session from "../../src/workspace/Session.ts"
import { checkpointOf, done, makeSession, Notes, section, start, tool } from "./adapting.ts"
import { memory } from "./changing.ts"

type Kind = "a failure" | "a defect" | "an interruption"

/** Wraps the filesystem. After it is armed, the planned fault occurs at its nth step, counted from 1. */
const broken = (fs: Algebra, nth: number, kind: Kind | undefined, when: "before" | "after") => {
  const reached = Deferred.makeUnsafe<void>()
  const state = { isArmed: false, steps: 0 }
  // The test interrupts the call during this pause. A call that is restoring the files cannot be interrupted, and goes on after
  // the pause.
  const pause = Effect.interruptible(Effect.repeat(Effect.yieldNow, { times: 20 }))
  const met: Effect.Effect<void, Fault> =
    kind === "a failure"
      ? Effect.fail<Fault>({ _tag: "IoError", code: "EIO", detail: "planned" })
      : kind === "a defect"
        ? Effect.die("planned")
        : Effect.andThen(Deferred.succeed(reached, undefined), Effect.asVoid(pause))
  const port = around(fs.port, (_, step) =>
    Effect.suspend(() => {
      if (!state.isArmed || ++state.steps !== nth || kind === undefined) return step
      return when === "before" ? Effect.andThen(met, step) : Effect.tap(step, () => met)
    })
  )
  return { filesystem: make(port), reached: Deferred.await(reached), state }
}

const working = (then: Effect.Effect<typeof done, ToolFailure>) =>
  tool("work", ({ filesystem }) =>
    Effect.gen(function* () {
      const { session } = yield* ToolContext
      yield* Effect.orDie(session.dispatch(Notes, "begun"))
      yield* filesystem.write("a.txt", "changed")
      yield* filesystem.delete("d", { recursive: true })
      yield* filesystem.mkdir("new")
      yield* Effect.orDie(session.dispatch(Notes, "ended"))
      return yield* then
    })
  )

const pictureOf = (fs: Algebra, session: Session.Operations) =>
  Effect.gen(function* () {
    return { tree: yield* capture(fs.port), notes: yield* session.all(Notes) }
  })

const handlers = {
  "a tool that succeeds": working(Effect.succeed(done)),
  "a tool that fails at its end": working(Effect.fail(refused("It did not work.", "Try another.")))
}

/** Returns the state before and after the call, its exit, the ids of the checkpoints left, and the number of steps. */
const tried = Effect.fnUntraced(
  function* (
    handler: ReturnType<typeof working>,
    nth = 0,
    kind: Kind | undefined = undefined,
    when: "before" | "after" = "before"
  ) {
    const fs = yield* memory({ "a.txt": "one\n", "d/b.txt": "two\n", "d/e/c.txt": "three\n" })
    const session = yield* makeSession
    yield* session.dispatch(Notes, "before")
    const { filesystem, reached, state } = broken(fs, nth, kind, when)
    const { checkpoint } = yield* checkpointOf(session, filesystem)
    const { logged, run } = yield* start([section("files", { filesystem: Effect.succeed(filesystem), tools: [handler] })], {
      session,
      checkpoint
    })
    const before = yield* pictureOf(fs, session)
    state.isArmed = true
    const fiber = yield* Effect.forkChild(run.call("work", {}))
    yield* Effect.raceFirst(Fiber.await(fiber), Effect.andThen(reached, Fiber.interrupt(fiber)))
    const exit = yield* Fiber.await(fiber)
    state.isArmed = false
    const after = yield* pictureOf(fs, session)
    assert.strictEqual((yield* logged).length, 1)
    return { before, after, exit, steps: state.steps, ids: yield* checkpoint.list }
  },
  Effect.scoped,
  Effect.orDie
)

const stride = process.env["FS_ALGEBRA_SOAK"] === "1" ? 1 : 3

for (const [what, handler] of Object.entries(handlers)) {
  describe(what, () => {
    for (const kind of ["a failure", "a defect", "an interruption"] as const) {
      for (const when of ["before", "after"] as const) {
        it.live(`leaves the session and the files both unchanged or both changed after ${kind} ${when} one of its steps`, () =>
          Effect.gen(function* () {
            const { after: changed, before: unchanged } = yield* tried(handlers["a tool that succeeds"])
            assert.notDeepEqual(changed, unchanged)
            const { steps } = yield* tried(handler)
            // The checkpoint reads three files; the tool writes one, removes four entries and makes one directory, with
            // stats between.
            assert.isAbove(steps, 15)
            for (let nth = 1; nth <= steps; nth += stride) {
              const { after, before, exit, ids } = yield* tried(handler, nth, kind, when)
              const isOld = JSON.stringify(after.notes) === JSON.stringify(before.notes)
              assert.deepStrictEqual(after, isOld ? before : changed, `step ${nth}`)
              if (Exit.isSuccess(exit) && exit.value.success) assert.isFalse(isOld, `step ${nth}`)
              // If the rollback failed, the checkpoint still exists.
              else if (!isOld) assert.strictEqual(ids.length, 1, `step ${nth}`)
            }
          })
        )
      }
    }
  })
}
