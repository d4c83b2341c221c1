/** Small writes from many fibers, which a workspace of Repository commits in groups. */
import * as Effect from "effect/Effect"
import type { Algebra } from "../src/filesystem/Filesystem.ts"

export const fibers = 50

/** The constant end of each written content. */
export const content = "a".repeat(240)

/** Writes from many fibers, each over a file of its own. */
export const writes = (fs: Algebra) => {
  let serial = 0
  return (count: number) =>
    Effect.runPromise(
      Effect.forEach(
        Array.from({ length: fibers }, (_, fiber) => fiber),
        (fiber) =>
          Effect.gen(function* () {
            for (let i = 0; i < count / fibers; i++) yield* fs.write(`f${fiber}.txt`, `${serial++} ${content}`)
          }),
        { concurrency: "unbounded", discard: true }
      )
    )
}
