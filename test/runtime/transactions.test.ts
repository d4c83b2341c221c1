import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Transactions from "../../src/runtime/transactions.ts"
import { replacing } from "../backends/posixFailures.ts"

const somewhere: Transactions.Root = { path: "/nowhere", device: "0", inode: "0" }

const record = (state: Transactions.State) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const id = Transactions.makeId()
      Transactions.draft(id, Transactions.ownHeader("", [somewhere]), false)!.publish(state)
      return id
    }),
    (id) => Effect.sync(() => (["forward", "back"] as const).forEach((state) => Transactions.removeRecord(id, state)))
  )

describe("the records of transactions", () => {
  it.effect("include a record whose state changes while they are listed", () =>
    Effect.gen(function* () {
      const id = yield* record("forward")
      let isAdvanced = false
      yield* replacing("readdirSync", (original) => (...args) => {
        const names: unknown = original(...args)
        if (args[0] === Transactions.directory() && !isAdvanced) {
          isAdvanced = true
          Transactions.renameState(id, "forward", "back")
        }
        return names
      })
      const { entries } = yield* Transactions.list()
      assert.deepStrictEqual(
        entries.filter((entry) => entry.id === id).map(({ state }) => state),
        ["back"]
      )
    }).pipe(Effect.scoped)
  )
})
