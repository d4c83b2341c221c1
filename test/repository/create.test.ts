import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { create } from "../../src/repository/create.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Stores from "../../src/repository/Stores.ts"
import { faultyStores } from "../../src/testing/index.ts"

describe("creating a workspace", () => {
  it.live("succeeds for exactly one of many concurrent programs", () =>
    Effect.gen(function* () {
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => n),
        (n) => Effect.result(create("team", `author ${n}`)),
        { concurrency: "unbounded" }
      )
      const made = results.flatMap((result) => (result._tag === "Success" ? [result.success] : []))
      assert.strictEqual(made.length, 1)
      assert.deepStrictEqual(yield* HeadStore.use((heads) => heads.get("team")), made[0])
      for (const result of results) if (result._tag === "Failure") assert.strictEqual(result.failure._tag, "AlreadyExists")
    }).pipe(Effect.provide(Stores.layerMemory))
  )

  it.live("succeeds if the answer of the store is lost", () =>
    Effect.gen(function* () {
      const faulty = faultyStores([{ step: "compareAndSet", nth: 1, fault: "lost answer" }])
      const [head, stored] = yield* Effect.all([create("team", "ann"), HeadStore.use((heads) => heads.get("team"))]).pipe(
        Effect.provide(faulty.wrap(Stores.layerMemory))
      )
      assert.deepStrictEqual(stored, head)
    })
  )
})
