/**
 * Interrupts operations in memory. At a step of a fiber every operation is atomic. Between the primitive calls of an operation
 * on a tree, the operation may be partly done.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import { plant } from "../../src/testing/Files.ts"
import { before, changing, readings, searching, watchingCase } from "./cases.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { guard, type Moment, throughIt } from "./harness.ts"
import { type Bench, sweep } from "./sweep.ts"

const bench = Effect.gen(function* () {
  const port = yield* InMemory.make()
  yield* plant(port, before)
  return { port, look: throughIt(port) } satisfies Bench
})

const moments: ReadonlyArray<Moment> = ["step", "before", "microtask", "immediate", "after"]

for (const moment of moments) {
  describe(`InMemory, interrupted at every ${moment === "step" ? "step" : `primitive (${moment})`}:`, () => {
    for (const self of [...changing, ...readings]) {
      it.live(self.name, () =>
        Effect.map(sweep(self, moment, bench, { isAtomic: moment === "step", dense: moment === "step" ? 300 : 60 }), (points) =>
          assert.isAbove(points, 0)
        )
      )
    }
  })
}

describe("an interrupted search in a worker frees its place in the pool", () => {
  const limits = ["before", "microtask", "immediate", "after", "step"] as const
  for (const moment of limits) {
    it.live(`after an interruption at every ${moment === "step" ? "step" : `primitive (${moment})`}`, () =>
      Effect.gen(function* () {
        yield* sweep(searching, moment, bench, { dense: 300 })
        const fs = make((yield* bench).port)
        const found = yield* guard(
          "all places in the pool are lost",
          Effect.all(
            [1, 2, 3].map(() => fs.grep("(n|e)+dle")),
            { concurrency: 3 }
          )
        )
        for (const { matches } of found) assert.strictEqual(matches.length, 2)
      })
    )
  }
})

it.live("an interrupted watch of InMemory leaves the tree unchanged", () =>
  Effect.asVoid(sweep(watchingCase, "step", bench, { dense: 100 }))
)
