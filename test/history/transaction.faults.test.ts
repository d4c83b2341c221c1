import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { runTransaction } from "../../src/history/transaction.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { faulty, type Planned, renameless, type Step } from "../../src/testing/Faults.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { allKinds, goalOf, look, lookIn, plant, plantIn, type Tree, unlike } from "./transactionTrees.ts"

const every: ReadonlyArray<Step> = [
  "Stat",
  "List",
  "Open",
  "Read",
  "Write",
  "MakeDirectory",
  "Remove",
  "Rename",
  "ReadLink",
  "MakeLink",
  "SetAttributes"
]

// The large trees matter only on a host; in memory they would only take time.
const onDisk = allKinds()
const inMemory = allKinds(100)

interface Ground {
  readonly before: Tree
  readonly after: Tree
  readonly port: Backend
  /** Reads every entry, hidden or not. */
  readonly look: Effect.Effect<Tree>
}

type Make = Effect.Effect<Ground, never, Scope.Scope>

const memory: Make = Effect.gen(function* () {
  const port = yield* InMemory.make()
  yield* Effect.orDie(plantIn(port, inMemory.before))
  return { ...inMemory, port, look: Effect.orDie(lookIn(port)) }
})

/** A filesystem in memory in which every rename fails with EXDEV, so that entries are copied. */
const copied: Make = Effect.map(memory, (ground) => ({ ...ground, port: renameless(make(ground.port)).port }))

const host: Make = Effect.gen(function* () {
  const root = join(yield* fastDirectory, "root")
  plant(root, onDisk.before)
  const port = yield* Effect.orDie(PosixHost.make({ root }))
  return { ...onDisk, port, look: Effect.sync(() => look(root)) }
})

const count = (ground: Make): Effect.Effect<number> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { after, before, port } = yield* ground
      const { happened, port: counted } = faulty([])(make(port))
      yield* Effect.orDie(runTransaction(counted, goalOf(before, after)) as Effect.Effect<void, never>)
      return happened.length
    })
  )

const broken = (
  ground: Make,
  planned: Planned
): Effect.Effect<{ readonly isNew: boolean; readonly wrong: ReadonlyArray<string> }> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { after, before, look, port } = yield* ground
      const { hung, port: broken } = faulty([planned])(make(port))
      const fiber = yield* Effect.forkChild(runTransaction(broken, goalOf(before, after)))
      if (planned.fault === "hang") {
        yield* Effect.race(hung, Effect.asVoid(Fiber.await(fiber)))
        yield* Fiber.interrupt(fiber)
      }
      const exit = yield* Fiber.await(fiber)
      const tree = yield* look
      // A transaction may be complete when the interruption arrives, and still ends as interrupted.
      const isNew = Exit.isSuccess(exit) || (planned.fault === "hang" && unlike(tree, after).length === 0)
      return { isNew, wrong: unlike(tree, isNew ? after : before) }
    })
  )

const ways: ReadonlyArray<readonly [claim: string, planned: Pick<Planned, "fault" | "when">]> = [
  ["fails", { fault: { _tag: "IoError", code: "EIO", detail: "planned" } }],
  ["reports a failure after it has succeeded", { fault: { _tag: "IoError", code: "EIO", detail: "planned" }, when: "after" }],
  ["is denied", { fault: { _tag: "AccessDenied", why: "permission" } }],
  ["fails with DiskFull", { fault: { _tag: "DiskFull" } }],
  ["dies", { fault: "die" }],
  ["is interrupted", { fault: "hang" }],
  ["is interrupted after it has succeeded", { fault: "hang", when: "after" }]
]

for (const [name, ground, stride] of [
  ["in memory", memory, 1],
  ["in memory without a rename", copied, process.env["FS_ALGEBRA_SOAK"] === undefined ? 3 : 1],
  ["on a host", host, process.env["FS_ALGEBRA_SOAK"] === undefined ? 5 : 1]
] as const) {
  describe(`a change of many files ${name}, when one step`, () => {
    for (const [claim, planned] of ways) {
      it.live(
        `${claim}, leaves exactly the old tree or the new one, and no hidden names`,
        () =>
          Effect.gen(function* () {
            const steps = yield* count(ground)
            let taken = 0
            const complaints: Array<string> = []
            for (let nth = 1; nth <= steps; nth += stride) {
              const { isNew, wrong } = yield* broken(ground, { operation: every, nth, ...planned })
              if (!isNew) taken++
              if (wrong.length > 0) complaints.push(`step ${nth} of ${steps}, ${isNew ? "done" : "failed"}: ${wrong.join()}`)
            }
            assert.deepStrictEqual(complaints, [])
            assert.isAbove(taken, steps / stride / 3)
          }),
        120_000
      )
    }
  })
}
