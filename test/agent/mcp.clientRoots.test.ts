import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as ClientRoots from "../../src/agent/mcp/serve.ts"
import type { Line } from "../../src/agent/mcp/stdio.ts"

const message = (value: object): Extract<Line, { readonly _tag: "Message" }> => {
  const text = `${JSON.stringify(value)}\n`
  const method = "method" in value ? String(value.method) : undefined
  return { _tag: "Message", text, bytes: text.length, method, isRequest: method !== undefined && "id" in value, ids: [] }
}

describe("the list of roots from a client", () => {
  it.effect("is reported as late after ten seconds without an answer, and counts as a change when it arrives", () =>
    Effect.gen(function* () {
      const asked: Array<{ readonly id: string }> = []
      const roots = yield* ClientRoots.make((text) => Effect.sync(() => void asked.push(JSON.parse(text))))
      roots.takes(message({ id: 0, method: "initialize", params: { capabilities: { roots: {} } } }))
      roots.takes(message({ method: "notifications/initialized" }))
      const listing = yield* Effect.forkChild(roots.list)
      yield* TestClock.adjust("11 seconds")
      assert.strictEqual(yield* Fiber.join(listing), "late")
      const changed = yield* Effect.forkChild(roots.changed)
      assert.isTrue(roots.takes(message({ id: asked[0]!.id, result: { roots: [{ uri: "file:///projects/a" }] } })))
      yield* Fiber.join(changed)
      const again = yield* Effect.forkChild(roots.list)
      yield* TestClock.adjust("1 second")
      roots.takes(message({ id: asked[1]!.id, result: { roots: [{ uri: "file:///projects/a" }] } }))
      assert.deepStrictEqual(yield* Fiber.join(again), [{ uri: "file:///projects/a" }])
    })
  )

  it.effect("does not count as a change if it answers one of the oldest of 1,000 late requests", () =>
    Effect.gen(function* () {
      const asked: Array<{ readonly id: string }> = []
      const roots = yield* ClientRoots.make((text) => Effect.sync(() => void asked.push(JSON.parse(text))))
      roots.takes(message({ id: 0, method: "initialize", params: { capabilities: { roots: {} } } }))
      roots.takes(message({ method: "notifications/initialized" }))
      for (let request = 0; request < 1000; request++) {
        const listing = yield* Effect.forkChild(roots.list)
        yield* TestClock.adjust("11 seconds")
        assert.strictEqual(yield* Fiber.join(listing), "late")
      }
      const changed = yield* Effect.forkChild(roots.changed, { startImmediately: true })
      assert.isTrue(roots.takes(message({ id: asked[0]!.id, result: { roots: [] } })))
      yield* Effect.yieldNow
      assert.isUndefined(changed.pollUnsafe())
      assert.isTrue(roots.takes(message({ id: asked.at(-1)!.id, result: { roots: [] } })))
      yield* Fiber.join(changed)
    })
  )
})
