/** Tests Remote with clocks that differ and jump. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { RpcClientDefect, RpcClientError } from "effect/rpc/RpcClientError"
import * as TestClock from "effect/testing/TestClock"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { around } from "../../src/port/Backend.ts"
import { isMutation } from "../../src/port/Operation.ts"
import * as Connection from "../../src/remote/connection.ts"
import * as Remote from "../../src/remote/Remote.ts"
import { jumpingClock } from "../jumpingClock.ts"
import { eventually } from "./eventually.ts"
import { cases } from "./operations.ts"
import { pathOf, relay } from "./relay.ts"
import { remote, unixAddress } from "./transports.ts"

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
    const atClient = Effect.provideService(Clock.Clock, client.clock)
    const fs = yield* atClient(remote(between, timeout))
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

/** A connection to a server with one instance. `makes` answers changes. While `isDown` is true, all answers are lost. */
const connectionTo = (isDown: () => boolean, makes: Effect.Effect<void, RpcClientError>, timeout: Duration.Input) =>
  Connection.over(
    ((tag: string) =>
      Effect.suspend(() =>
        isDown() ? Effect.fail(lost) : tag === "port.info" ? Effect.succeed({ instance: "one" }) : makes
      )) as unknown as Connection.Client,
    { timeout }
  )

const lost = new RpcClientError({ reason: new RpcClientDefect({ message: "lost", cause: undefined }) })

const changeOf = ({ change, send }: Connection.Connection) => change("a", (id) => send("port.makeDirectory", { id, path: "a" }))

describe("a client", () => {
  it.effect("does not repeat a change that the server may have forgotten, even before the timeout", () =>
    Effect.gen(function* () {
      let made = 0
      let isDown = false
      const makes = Effect.suspend(() => {
        if (made++ > 0) return Effect.void
        isDown = true
        return Effect.fail(lost)
      })
      const connection = yield* connectionTo(() => isDown, makes, "10 minutes")
      const error = yield* Effect.forkChild(Effect.flip(changeOf(connection)))
      yield* TestClock.adjust("6 minutes")
      isDown = false
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(error))._tag, "Unavailable")
      assert.strictEqual(made, 1)
    })
  )

  it.live("repeats a change that took an hour, if the server answered meanwhile", () =>
    Effect.gen(function* () {
      const real = yield* Clock.Clock
      let ahead = 0n
      let questions = 0
      let attempts = 0
      const makes = Effect.suspend(() => {
        if (attempts++ > 0) return Effect.void
        ahead = BigInt(hour) * 1_000_000n
        const before = questions
        return Effect.andThen(eventually(Effect.sync(() => questions > before + 1)), Effect.fail(lost))
      })
      const clock = Object.create(real, {
        monotonicTimeNanosUnsafe: { value: () => real.monotonicTimeNanosUnsafe() + ahead },
        monotonicTimeNanos: { value: Effect.sync(() => real.monotonicTimeNanosUnsafe() + ahead) }
      }) as Clock.Clock
      const isDown = () => {
        questions++
        return false
      }
      yield* Effect.flatMap(connectionTo(isDown, makes, "50 millis"), changeOf).pipe(Effect.provideService(Clock.Clock, clock))
      assert.strictEqual(attempts, 2)
    })
  )

  it.live("does not repeat a change after the timeout, even if its clock was set back", () =>
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
