/**
 * Manages one container at a time, started on demand and replaced after its death.
 *
 * Its first process only holds our input. When that input ends, because we close it or this process is gone, the
 * container ends. The engine then removes it with its volumes.
 */
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { randomBytes } from "../../../runtime/node.ts"
import type { Fault } from "../../../model/FsError.ts"
import * as CommandLine from "./commandLine.ts"
import { collecting } from "./collecting.ts"
import { codeOf, type Engine, failed, inRealTime, isUnreachable, unavailable } from "./engine.ts"

export interface Container {
  readonly name: string
  readonly isEnded: () => boolean
  readonly ended: Effect.Effect<void>
  /**
   * Kills the processes with the mark, and those without any mark that started at `since` or later. Returns their
   * number.
   *
   * A command reports `since` about itself.
   */
  readonly kill: (mark: string, since: string) => Effect.Effect<number, Fault>
  readonly isRunning: (since: string) => Effect.Effect<boolean, Fault>
  readonly refused: () => number
  readonly end: Effect.Effect<void>
}

export interface Life {
  readonly running: Effect.Effect<Container, Fault>
  readonly latest: () => Container | undefined
}

export const gone: Fault = unavailable("the container has ended")

const closed: Fault = unavailable("this filesystem has been closed")

export const random = (): string => randomBytes(12).toString("hex")

const newName = (): string => `fs-algebra-${random()}`

const encoder = new TextEncoder()

const grace = "3 seconds"

/**
 * Removes the container.
 *
 * An engine that finds the container in an unexpected state (podman, for a paused one) fails and keeps it, so the
 * removal is retried. There is no retry if the engine's service does not respond.
 */
const remove = (engine: Engine, name: string, times = 50): Effect.Effect<void> => {
  const gone = Effect.map(
    engine.run(CommandLine.remove(name)),
    ({ code, stderr }) => code === 0 || /no such container/i.test(stderr) || isUnreachable(stderr)
  )
  const again = Effect.repeat(gone, { until: (isGone) => isGone, schedule: Schedule.spaced("100 millis"), times })
  return inRealTime(Effect.ignore(Effect.timeoutOption(again, "30 seconds")))
}

interface Talk {
  readonly ready: Effect.Effect<void>
  readonly take: (line: string) => void
  readonly answer: (nonce: string) => Effect.Effect<number>
  readonly forget: (nonce: string) => void
  readonly refused: () => number
}

const isCount = (text: string): boolean => /^[0-9]{1,9}$/.test(text)

const makeTalk = (): Talk => {
  const ready = Deferred.makeUnsafe<void>()
  const waiting = new Map<string, Deferred.Deferred<number>>()
  let refused = 0
  return {
    ready: Deferred.await(ready),
    take: (line) => {
      if (line === "ready") return void Deferred.doneUnsafe(ready, Exit.void)
      const [nonce = "", count = "", times = "0"] = line.split(" ")
      const asked = waiting.get(nonce)
      if (asked === undefined || !isCount(count) || !isCount(times)) return
      refused = Number(times)
      Deferred.doneUnsafe(asked, Exit.succeed(Number(count)))
    },
    answer: (nonce) => {
      const asked = Deferred.makeUnsafe<number>()
      waiting.set(nonce, asked)
      return Deferred.await(asked)
    },
    forget: (nonce) => void waiting.delete(nonce),
    refused: () => refused
  }
}

/** A longer incomplete line is cut. Our lines are shorter, and others are irrelevant. */
const longestLine = 256

const inLines = (take: (line: string) => void): ((chunk: Uint8Array) => void) => {
  let rest = ""
  return (chunk) => {
    const lines = (rest + Buffer.from(chunk).toString("latin1")).split("\n")
    rest = lines.pop()!.slice(-longestLine)
    for (const line of lines) take(line)
  }
}

const ask = (
  talk: Talk,
  orders: Queue.Queue<Uint8Array, Cause.Done>,
  ended: Effect.Effect<void>,
  request: string
): Effect.Effect<number, Fault> =>
  Effect.suspend(() => {
    const nonce = random()
    const answer = talk.answer(nonce)
    Queue.offerUnsafe(orders, encoder.encode(`${nonce} ${request}\n`))
    return Effect.raceFirst(answer, Effect.andThen(ended, Effect.fail(gone))).pipe(
      Effect.ensuring(Effect.sync(() => talk.forget(nonce)))
    )
  })

export interface How {
  /** Runs directly before each start, to check that the validated host paths are unchanged. */
  readonly check?: Effect.Effect<void, Fault> | undefined
  readonly argsOf: (name: string) => ReadonlyArray<string>
  readonly settle: (name: string) => Effect.Effect<void, Fault>
}

const start = Effect.fnUntraced(function* (
  engine: Engine,
  { argsOf, check = Effect.void, settle }: How
): Effect.fn.Return<Container, Fault, Scope.Scope> {
  yield* check
  const name = newName()
  let code: number | undefined
  let isRefused = false
  // The engine removes an ended container by itself, possibly after its client has ended. Wait for that, and remove any
  // other container. After a refusal one attempt suffices.
  yield* Effect.addFinalizer(() => remove(engine, name, isRefused ? 0 : 50))
  const client = yield* engine.start(argsOf(name), "held")
  const orders = yield* Queue.unbounded<Uint8Array, Cause.Done>()
  yield* Effect.forkScoped(Effect.ignore(Stream.run(Stream.fromQueue(orders), client.stdin)))
  const talk = makeTalk()
  const take = inLines(talk.take)
  yield* Effect.forkScoped(Effect.ignore(Stream.runForEach(client.stdout, (chunk) => Effect.sync(() => take(chunk)))))
  const said = collecting(2 ** 16)
  const hearing = yield* Effect.forkScoped(said.from(client.stderr))
  const end = Deferred.makeUnsafe<void>()
  yield* Effect.forkScoped(
    Effect.flatMap(codeOf(client), (value) => {
      code = value
      return Deferred.succeed(end, undefined)
    })
  )
  const ended = Deferred.await(end)
  yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(orders), inRealTime(Effect.timeoutOption(ended, grace))))

  const refused = Effect.gen(function* () {
    yield* ended
    isRefused = true
    yield* inRealTime(Effect.timeoutOption(Fiber.await(hearing), grace))
    return yield* Effect.fail(failed(engine.program, "did not start a container", { code, stderr: said.bytes().toString() }))
  })
  yield* Effect.raceFirst(talk.ready, refused)
  yield* settle(name)
  return {
    name,
    isEnded: () => Deferred.isDoneUnsafe(end),
    ended,
    kill: (mark, since) => ask(talk, orders, ended, `${mark} ${since}`),
    isRunning: (since) => Effect.map(ask(talk, orders, ended, `alive ${since}`), (count) => count === 1),
    refused: talk.refused,
    end: Effect.andThen(remove(engine, name), inRealTime(Effect.timeoutOption(ended, grace)))
  }
})

/** Creates the manager. Removes the remains of a container before the next one starts, and when the scope closes. */
export const make = (engine: Engine, how: How): Effect.Effect<Life, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const one = Semaphore.makeUnsafe(1)
    let latest: Container | undefined
    let own: Scope.Closeable | undefined

    const clear = Effect.suspend(() => {
      const last = own
      own = undefined
      return last === undefined ? Effect.void : Scope.close(last, Exit.void)
    })

    const next = Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        yield* clear
        const fresh = yield* Scope.fork(scope)
        const container = yield* restore(Scope.provide(start(engine, how), fresh)).pipe(
          Effect.onError((cause) => Scope.close(fresh, Exit.failCause(cause)))
        )
        own = fresh
        latest = container
        return container
      })
    )

    const living = (): Container | undefined => (latest === undefined || latest.isEnded() ? undefined : latest)

    return {
      running: Effect.suspend(() => {
        const now = living()
        if (now !== undefined) return Effect.succeed(now)
        return one.withPermit(
          Effect.suspend(() => {
            const meanwhile = living()
            if (meanwhile !== undefined) return Effect.succeed(meanwhile)
            return scope.state._tag === "Closed" ? Effect.fail(closed) : next
          })
        )
      }),
      latest: () => latest
    }
  })
