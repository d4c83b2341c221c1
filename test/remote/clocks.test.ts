/** Tests Remote with clocks that differ and jump. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { around } from "../../src/port/Backend.ts"
import { isMutation } from "../../src/port/Operation.ts"
import * as Remote from "../../src/remote/Remote.ts"
import { jumpingClock } from "../jumpingClock.ts"
import { cases } from "./operations.ts"
import { pathOf, relay } from "./relay.ts"
import { unixAddress } from "./transports.ts"

const hour = 3_600_000

/** A server and a client with a clock each. `onChange` runs after each primitive change, before the client hears of it. */
const parties = (timeout: "1 second" | "20 seconds") =>
  Effect.gen(function* () {
    const [server, client] = [yield* jumpingClock, yield* jumpingClock]
    const hooks = { onChange: Effect.void as Effect.Effect<unknown> }
    const backend = yield* InMemory.make()
    const local = make(
      around(backend, (operation, next) => (isMutation(operation) ? Effect.tap(next, () => hooks.onChange) : next))
    )
    const [address, between] = [yield* unixAddress, yield* unixAddress]
    const serving = Remote.listen(address).pipe(Effect.provideService(Filesystem, local))
    yield* Effect.provideService(serving, Clock.Clock, server.clock)
    const { cut, refuse } = yield* relay(pathOf(address), pathOf(between))
    const connecting = Effect.flatMap(Layer.build(Remote.layerUrl(between, { timeout })), (context) =>
      Effect.provideContext(Filesystem, context)
    )
    const atClient = Effect.provideService(Clock.Clock, client.clock)
    const fs = yield* atClient(connecting)
    return { atClient, client, cut, fs, hooks, local, refuse, server }
  })

interface Skew {
  readonly name: string
  /** The client's and the server's jumps before the change begins. */
  readonly before?: readonly [client: number, server: number]
  /** The jumps after the change was made and before its answer arrives. */
  readonly within?: readonly [client: number, server: number]
}

const skews: ReadonlyArray<Skew> = [
  { name: "the client's clock is hours behind", before: [-5 * hour, 0] },
  { name: "the client's clock is hours ahead", before: [5 * hour, 0] },
  { name: "the server's clock jumps forward", within: [0, hour] },
  { name: "the server's clock jumps back", within: [0, -hour] },
  { name: "the client's clock jumps forward", within: [hour, 0] },
  { name: "the client's clock jumps back", within: [-hour, 0] }
]

describe("a change whose answer is lost", () => {
  for (const { before = [0, 0], name, within = [0, 0] } of skews) {
    it.live(`is made once and gets its answer, for every operation, if ${name}`, () =>
      Effect.forEach(
        Object.entries(cases),
        ([operation, { after, change, prepare, state }]) =>
          Effect.gen(function* () {
            const { atClient, client, cut, fs, hooks, local, refuse, server } = yield* parties("20 seconds")
            yield* prepare(local)
            client.jump(before[0])
            server.jump(before[1])
            let isLost = false
            hooks.onChange = Effect.suspend(() => {
              if (isLost) return Effect.void
              isLost = true
              server.jump(within[1])
              // The second attempt is lost too.
              return Effect.andThen(
                refuse(1, () => client.jump(within[0])),
                cut
              )
            })
            const result = yield* Effect.result(atClient(change(fs)))
            assert.strictEqual(result._tag, "Success", `${operation}: ${JSON.stringify(result).slice(0, 300)}`)
            assert.isTrue(isLost, operation)
            assert.deepStrictEqual(yield* state(local), after, operation)
          }),
        { concurrency: "unbounded", discard: true }
      )
    )
  }
})

describe("a client", () => {
  it.live("stops sending a change again after the timeout, although its clock was set back", () =>
    Effect.gen(function* () {
      const { atClient, client, cut, fs, hooks, local, refuse } = yield* parties("1 second")
      const setBack = () => client.jump(-5 * hour)
      hooks.onChange = Effect.andThen(refuse(Number.POSITIVE_INFINITY, setBack), cut)
      const error = yield* atClient(Effect.flip(fs.write("a.txt", "once\n", { mode: "append" })))
      assert.strictEqual(error._tag, "Unavailable")
      assert.strictEqual(yield* local.readString("a.txt"), "once\n")
    })
  )
})
