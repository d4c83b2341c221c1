/** Tests the clients of a cluster whose clocks differ from those of the runners. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Sharding from "effect/cluster/Sharding"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import * as Workspaces from "../../src/repository/Workspaces.ts"
import { jumpingClock } from "../jumpingClock.ts"
import { memory, stored, type StoreServices } from "./tapped.ts"
import { runner } from "./workspaces.ts"

const hour = 3_600_000

type Calls = Record<string, (payload: object, ...rest: Array<unknown>) => Effect.Effect<unknown, unknown>>

/**
 * Runners over stores, with one clock. `onChange` runs after each change. After `move`, the next runner has the workspace.
 */
const cluster = (stores: StoreServices) =>
  Effect.gen(function* () {
    const { clock, jump } = yield* jumpingClock
    const start = Effect.provideService(
      Layer.build(Layer.fresh(runner({}, {}, Layer.succeedContext(stores)))),
      Clock.Clock,
      clock
    )
    const runners = [Context.get(yield* start, Sharding.Sharding), Context.get(yield* start, Sharding.Sharding)]
    const hooks = { onChange: Effect.void as Effect.Effect<unknown, unknown> }
    let at = 0
    const makeClient = (entity: never) =>
      Effect.map(Effect.all(runners.map((runner) => runner.makeClient(entity))), (clients) => (id: string) => {
        const calls = clients.map((of) => of(id) as unknown as Calls)
        return new Proxy(calls[0]!, {
          get:
            (_, tag) =>
            (payload: object, ...rest: Array<unknown>) =>
              // Within one process, a request would take the clock of its client to the runner.
              Effect.suspend(() =>
                Effect.tap(Effect.provideService(calls[at]![tag as string]!(payload, ...rest), Clock.Clock, clock), () =>
                  "id" in payload ? hooks.onChange : Effect.void
                )
              )
        })
      })
    const sharding = { ...runners[0]!, makeClient } as unknown as Sharding.Sharding["Service"]
    const client = Effect.provideService(Workspaces.client("w"), Sharding.Sharding, sharding)
    return { client, hooks, jump, move: () => void at++ }
  })

const lines = "line\n".repeat(200)

/** Makes changes whose answers the workspace forgets with the first change that is an hour later. */
const longAnswers = (fs: Algebra) =>
  Effect.gen(function* () {
    yield* fs.write("old.txt", lines, { mode: "append" })
    // The answer has a long diff. So the answers are in a large list, with which no small one is merged.
    yield* fs.edit("old.txt", { oldText: "line", newText: "row", match: "all" })
  })

describe("a client of a cluster", () => {
  for (const hours of [-5, 5]) {
    it.live(`whose clock is ${Math.abs(hours)} hours ${hours < 0 ? "behind" : "ahead"} can make changes`, () =>
      Effect.gen(function* () {
        const stores = yield* memory
        const { client, jump } = yield* cluster(stores)
        const own = yield* jumpingClock
        own.jump(hours * hour)
        yield* Effect.gen(function* () {
          const fs = yield* client
          yield* longAnswers(fs)
          jump(hour)
          // The workspace forgets answers here, so it refuses changes that may be older.
          const other = yield* client
          yield* other.write("a.txt", "1\n", { mode: "append" })
          yield* other.write("a.txt", "2\n", { mode: "append" })
          own.jump(-2 * hours * hour)
          yield* other.write("a.txt", "3\n", { mode: "append" })
          assert.strictEqual(yield* other.readString("a.txt"), "1\n2\n3\n")
        }).pipe(Effect.provideService(Clock.Clock, own.clock))
      })
    )

    it.live(`whose clock is ${Math.abs(hours)} hours ${hours < 0 ? "behind" : "ahead"} makes no change twice`, () =>
      Effect.gen(function* () {
        const stores = yield* memory
        const { client, hooks, jump, move } = yield* cluster(stores)
        const own = yield* jumpingClock
        own.jump(hours * hour)
        yield* Effect.gen(function* () {
          const other = yield* client
          const fs = yield* client
          hooks.onChange = Effect.gen(function* () {
            hooks.onChange = Effect.void
            yield* longAnswers(other)
            jump(hour)
            yield* other.write("old.txt", "next\n")
            // The owner ends, and its answer is lost.
            move()
            return yield* Effect.interrupt
          })
          const error = yield* Effect.flip(fs.write("a.txt", "once\n", { mode: "append" }))
          assert.strictEqual(error._tag, "Unavailable")
          assert.deepStrictEqual(yield* stored(stores), { "a.txt": "once\n", "old.txt": "next\n" })
        }).pipe(Effect.provideService(Clock.Clock, own.clock))
      })
    )
  }
})
