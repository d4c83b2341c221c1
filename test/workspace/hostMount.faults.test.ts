/** Mounts with a fault or an interruption at one step of the target or source. Each mount is complete or changes nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { isDeepStrictEqual } from "node:util"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { faulty, type Planned } from "../../src/testing/Faults.ts"
import { type Files, picture } from "../../src/testing/Files.ts"
import * as HostMount from "../../src/workspace/HostMount.ts"
import { any, every, type Ground, host, interruptible, memory } from "../agent/changing.ts"
import { machine, pictureOf, through } from "./mounting.ts"

const big = "b".repeat(300_000)
const source = { "one/a": "new a", "one/deep/b": "b", "two/a": "newer a", "two/c": big }
const mounts: ReadonlyArray<HostMount.HostMount> = [
  { hostPath: "one", mountPath: "m" },
  { hostPath: "two", mountPath: "m" }
]

const before: Files = { "m/a": "old a", "m/kept": "kept", other: "other" }
const after: Files = { ...before, "m/a": "newer a", "m/deep/b": "b", "m/c": big }

interface Outcome {
  readonly isDone: boolean
  readonly isWhole: boolean
}

/** Runs the mount and compares the resulting tree with the tree before the mount and with the expected tree. */
const outcome = Effect.fnUntraced(function* (
  sound: Algebra,
  hung: Effect.Effect<void> | undefined,
  hydrate: Effect.Effect<unknown, unknown>
): Effect.fn.Return<Outcome> {
  const fiber = yield* Effect.forkChild(hydrate)
  if (hung !== undefined) {
    yield* Effect.race(hung, Effect.asVoid(Fiber.await(fiber)))
    yield* Fiber.interrupt(fiber)
  }
  const exit = yield* Fiber.await(fiber)
  const found = yield* pictureOf(sound)
  // An interruption that arrives after the last step still interrupts the caller.
  const isDone = Exit.isSuccess(exit) || (hung !== undefined && isDeepStrictEqual(found, picture(after)))
  return { isDone, isWhole: isDeepStrictEqual(found, picture(isDone ? after : before)) }
})

const ofTarget = (ground: Ground, root: string, planned: ReadonlyArray<Planned>) =>
  Effect.gen(function* () {
    const sound = yield* ground(before)
    const fs = faulty(planned)(sound)
    const hung = planned[0]?.fault === "hang" ? fs.hung : undefined
    const made = yield* outcome(sound, hung, HostMount.hydrate(fs, mounts, { allowedRoots: [root] }))
    return { ...made, happened: fs.happened }
  }).pipe(Effect.scoped)

const ofSource = (ground: Ground, root: string, planned: ReadonlyArray<Planned>) =>
  Effect.gen(function* () {
    const sound = yield* ground(before)
    let opened = faulty(planned)(sound)
    const hydrate = HostMount.hydrate(sound, mounts, { allowedRoots: [root] }).pipe(
      through((port): Backend => (opened = faulty(planned)(make(port))).port)
    )
    const hung = planned[0]?.fault === "hang" ? Effect.suspend(() => opened.hung) : undefined
    // The source must be opened before it can hang.
    const made = yield* outcome(
      sound,
      hung &&
        Effect.andThen(
          Effect.promise(() => settled(() => opened.happened)),
          hung
        ),
      hydrate
    )
    return { ...made, happened: opened.happened }
  }).pipe(Effect.scoped)

const settled = async (happened: () => ReadonlyArray<unknown>): Promise<void> => {
  while (happened().length === 0) await new Promise((resolve) => setImmediate(resolve))
}

const ways: ReadonlyArray<readonly [claim: string, planned: Pick<Planned, "fault" | "when">]> = [
  ["fails", { fault: { _tag: "IoError", code: "EIO", detail: "planned" } }],
  ["succeeds but reports IoError", { fault: { _tag: "IoError", code: "EIO", detail: "planned" }, when: "after" }],
  ["fails with DiskFull", { fault: { _tag: "DiskFull" } }],
  ["is interrupted", { fault: "hang" }],
  ["succeeds and is then interrupted", { fault: "hang", when: "after" }]
]

const soak = process.env["FS_ALGEBRA_SOAK"] === "1"

for (const [place, ground, side, stride] of [
  ["of the target in memory", memory, ofTarget, 1],
  ["of a target on a host", host, ofTarget, soak ? 1 : 5],
  ["of the source", memory, ofSource, 1]
] as const) {
  describe("a mount", () => {
    for (const [claim, planned] of ways) {
      it.live(`is done completely or not at all, without leftovers, if one step ${place} ${claim}`, () =>
        Effect.gen(function* () {
          const root = yield* machine(source)
          const path = planned.fault === "hang" ? interruptible : any
          const sound = yield* side(ground, root, [])
          assert.deepInclude(sound, { isDone: true, isWhole: true })
          const steps = sound.happened.filter((step) => path.test(step.path)).length
          assert.isAbove(steps, 10)
          const complaints: Array<string> = []
          let taken = 0
          for (let nth = 1; nth <= steps; nth += stride) {
            const one = yield* side(ground, root, [{ operation: every, path, nth, ...planned }])
            if (!one.isDone) taken++
            if (!one.isWhole) complaints.push(`step ${nth} of ${steps}, ${one.isDone ? "done" : "failed"}`)
          }
          assert.deepStrictEqual(complaints, [])
          assert.isAbove(taken, steps / stride / 3)
        })
      )
    }
  })
}
