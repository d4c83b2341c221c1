/** Searches a tree with a pattern whose match on one of the files takes longer than any test. */
import * as Effect from "effect/Effect"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Limits, standard } from "../../src/model/Limits.ts"
import { make } from "../../src/filesystem/Filesystem.ts"

const root = process.argv[2]!

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const fs = make(yield* PosixHost.make({ root }))
      yield* fs.glob("**/*.ts")
      yield* Effect.sleep(500)
      yield* Effect.provideService(fs.grep(/^(a+)+$/), Limits, { ...standard, patternBudget: 600_000 })
    })
  )
)
