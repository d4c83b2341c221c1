import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as JetStream from "../../src/journal/JetStream.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { vi } from "vitest"

vi.mock("@nats-io/jetstream", () => {
  throw new Error("Cannot find package")
})

it.live("a journal on JetStream names the packages to install if one is missing", () =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(JetStream.make(Journal.Entry, { servers: "127.0.0.1:1", name: "a" }))
    assert.strictEqual(error.reason, "unavailable")
    for (const name of ["@nats-io/transport-node", "@nats-io/jetstream"]) assert.include(error.message, name)
  }).pipe(Effect.scoped)
)
