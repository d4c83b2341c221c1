/** A program that collects the objects of a store once and then waits to be killed. */
import * as Effect from "effect/Effect"
import { collect } from "../../../src/history/git/collect.ts"
import { open } from "../../../src/history/git/store.ts"

const [, , directory = ""] = process.argv

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const store = yield* open(directory)
      process.stdout.write("begun\n")
      yield* collect(store, { maxPacks: 3, maxWaste: 0 })
      process.stdout.write("ended\n")
      yield* Effect.callback<never>(() => void setInterval(() => {}, 1000))
    })
  )
)
