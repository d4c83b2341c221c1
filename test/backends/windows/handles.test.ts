/** Tests readers that are closed, or whose file is changed, between any two steps of a read. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import * as Scope from "effect/Scope"
import { bytes, p, write } from "../posixHost.ts"
import { host, root } from "./windowsHost.ts"

const content = "o".repeat(100)

const inSteps =
  (steps: number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(effect, Scheduler.MaxOpsBeforeYield, steps)

const turns = (count: number) => Effect.forEach(Array.from({ length: count }), () => Effect.yieldNow, { discard: true })

const rows = [
  ["is closed", false, true],
  ["has its file replaced", true, false],
  ["has its file replaced and is closed", true, true]
] as const

describe("a reader", () => {
  for (const [what, isReplaced, isClosed] of rows) {
    it.live(`that ${what} during a read returns the old content or reports that it is closed`, () =>
      Effect.gen(function* () {
        for (const steps of [3, 4, 5, 7]) {
          for (let later = 0; later < 12; later++) {
            const { disk, port } = yield* host()
            disk.put(`${root}\\f`, content)
            const scope = yield* Scope.make()
            const handle = yield* Scope.provide(port.open(p("f")), scope)
            const reading = yield* Effect.forkChild(Effect.result(inSteps(steps)(handle.read(0, content.length))))
            yield* turns(later)
            const change = isReplaced ? inSteps(steps)(write(port, "f", bytes("new"), "replace")) : Effect.void
            const changing = yield* Effect.forkChild(change)
            yield* turns(later)
            if (isClosed) yield* Scope.close(scope, Exit.void)
            const read = yield* Fiber.join(reading)
            const told = read._tag === "Success" ? new TextDecoder().decode(read.success) : read.failure["detail"]
            assert.strictEqual(told, isClosed && read._tag === "Failure" ? "the file has been closed" : content)
            yield* Fiber.join(changing)
            yield* Scope.close(scope, Exit.void)
            assert.strictEqual(disk.openDescriptors, 0)
            assert.deepStrictEqual(disk.names(root), ["f"])
          }
        }
      })
    )
  }
})

describe("readers of a replaced file", () => {
  const size = 1024 * 1024

  it.effect("keep at most 8 MiB in memory together, and all further content on the disk, until they are closed", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      const old = Uint8Array.from({ length: size }, (_, at) => at % 251)
      disk.put(`${root}\\f`, old)
      const scope = yield* Scope.make()
      const handles = yield* Effect.forEach(Array.from({ length: 10 }), () => Scope.provide(port.open(p("f")), scope))
      yield* write(port, "f", bytes("new"), "replace")
      assert.strictEqual(disk.names(root).filter((name) => name.startsWith(".~")).length, 2)
      for (const handle of handles) assert.isTrue(Buffer.from(yield* handle.read(0, size)).equals(old))
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(disk.names(root), ["f"])
      disk.put(`${root}\\f`, old)
      const again = yield* port.open(p("f"))
      yield* write(port, "f", bytes("new"), "replace")
      assert.deepStrictEqual(disk.names(root), ["f"])
      assert.strictEqual((yield* again.read(0, size)).length, size)
    })
  )
})
