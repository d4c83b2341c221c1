/** On a disk an operation on one file is atomic, an operation on a tree leaves complete files, and no descriptor stays open. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { before, changing, readings, watchingCase } from "./cases.ts"
import { descriptorsIn, type Moment, onDisk, plantOnDisk, temporary } from "./harness.ts"
import { type Bench, sweep } from "./sweep.ts"

const bench = (options: Partial<PosixHost.PosixHostOptions>) =>
  Effect.gen(function* () {
    const root = yield* temporary
    plantOnDisk(root, before)
    const port = yield* PosixHost.make({ root, ...options })
    return {
      port,
      look: Effect.sync(() => onDisk(root)),
      closed: (what) => assert.deepStrictEqual(descriptorsIn(root), [], what)
    } satisfies Bench
  })

const moments: ReadonlyArray<Moment> = ["call", "called", "before", "microtask", "immediate", "after", "step"]

const where = (moment: Moment): string =>
  moment === "step" ? "step" : moment.startsWith("call") ? `system call (${moment})` : `primitive (${moment})`

for (const moment of moments) {
  describe(`PosixHost, interrupted at every ${where(moment)}:`, () => {
    for (const self of [...changing, ...readings]) {
      it.live(self.name, () =>
        Effect.map(sweep(self, moment, bench({}), { dense: moment === "step" ? 15 : 30 }), (points) =>
          assert.isAbove(points, 0)
        )
      )
    }
    it.live(watchingCase.name, () => sweep(watchingCase, moment, bench({}), { dense: 10 }))
  })
}

describe("PosixHost with durability full, interrupted at every system call:", () => {
  for (const self of changing.filter(({ name }) => /^(write|sink|move|mkdir)/.test(name))) {
    it.live(self.name, () => sweep(self, "call", bench({ durability: "full" }), { dense: 40 }))
  }
})
