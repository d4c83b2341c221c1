import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { directory, serve } from "../cli/served.ts"
import { runs } from "../runs.ts"
import { cases } from "./operations.ts"
import { remote } from "./transports.ts"

/** The server is killed after a random number of acknowledged writes, so that it has always done a part of the work. */
const maxWrites = 40

describe("a server process that is killed", () => {
  it.live(
    "leaves every file old or new, and loses no change that it has confirmed",
    () =>
      Effect.gen(function* () {
        const outcomes = { old: 0, new: 0, between: 0, acknowledged: 0 }
        for (let round = 0; round < runs(10); round++) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const cwd = yield* directory({ "files/r.txt": "" })
              const args = ["--root", "files", "--listen", "unix:a.sock"]
              const server = yield* serve(args, { cwd })
              const scope = yield* Scope.make()
              const fs = yield* Scope.provide(remote(server.url), scope)
              yield* Effect.forEach(Object.values(cases), ({ prepare }) => prepare(fs), { discard: true })
              const written: Array<number> = []
              const count = Math.floor(Math.random() * maxWrites)
              const reached = yield* Deferred.make<void>()
              const acknowledge = (index: number) =>
                Effect.sync(() => {
                  if (written.push(index) >= count) Deferred.doneUnsafe(reached, Effect.void)
                })
              const writer = yield* Effect.forkChild(
                Effect.exit(
                  Effect.forEach(
                    Array.from({ length: 10_000 }, (_, index) => index),
                    (index) => Effect.tap(fs.write(`log/${index}`, String(index)), () => acknowledge(index))
                  )
                )
              )
              const changing = yield* Effect.forkChild(
                Effect.forEach(Object.values(cases), ({ change }) => Effect.exit(change(fs)), { concurrency: "unbounded" })
              )
              // Some servers are killed before they have done anything.
              if (round % 5 > 0) yield* Deferred.await(reached)
              server.child.kill("SIGKILL")
              yield* Effect.promise(() => server.ended)
              const exits = yield* Fiber.join(changing)
              yield* Fiber.join(writer)
              yield* Scope.close(scope, Exit.void)

              const again = yield* remote((yield* serve(args, { cwd })).url)
              for (const [index, [name, { after, before, isGradual, state }]] of Object.entries(cases).entries()) {
                const found = yield* state(again)
                const is = (expected: unknown) => JSON.stringify(found) === JSON.stringify(expected)
                const exit = exits[index]!
                if (Exit.isSuccess(exit)) {
                  outcomes.acknowledged++
                  assert.isTrue(is(after), `${name} was acknowledged`)
                } else if (is(before)) outcomes.old++
                else if (is(after)) outcomes.new++
                else {
                  outcomes.between++
                  assert.isTrue(isGradual === true, `${name} is neither old nor new: ${JSON.stringify(found).slice(0, 200)}`)
                }
              }
              for (const index of written) assert.strictEqual(yield* again.readString(`log/${index}`), String(index))
            })
          )
        }
        assert.isAbove(outcomes.old + outcomes.new + outcomes.between, 0)
        assert.isAbove(outcomes.acknowledged, 0)
      }),
    600_000
  )
})
