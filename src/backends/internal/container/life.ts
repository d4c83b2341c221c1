/**
 * One container at a time, started when it is first wanted and replaced when it has died. Its first process holds nothing but our
 * input: when that ends, because we close it or because this process is gone however it went, the container ends, and the engine
 * removes it with its volumes.
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
  /** Whether it, or the client through which it is held, has ended. */
  readonly isEnded: () => boolean
  readonly ended: Effect.Effect<void>
  /**
   * Kills what carries the mark, and what carries none and is younger than `since`, as a command tells it of itself; answers how many
   * they were.
   */
  readonly kill: (mark: string, since: string) => Effect.Effect<number, Fault>
  /** Returns whether the process still runs, which is given as a command tells it of itself. */
  readonly isRunning: (since: string) => Effect.Effect<boolean, Fault>
  /** How often the container was refused a process, as far as its last answer says. */
  readonly refused: () => number
  /** Ends it with all that runs in it. */
  readonly end: Effect.Effect<void>
}

export interface Life {
  /** The one that runs; where there is none, it is started, and the first caller waits for it with all others. */
  readonly running: Effect.Effect<Container, Fault>
  /** The one that was started last, which may have ended. */
  readonly latest: () => Container | undefined
}

export const gone: Fault = unavailable("the container has ended")

const closed: Fault = unavailable("this filesystem has been closed")

export const random = (): string => randomBytes(12).toString("hex")

const newName = (): string => `fs-algebra-${random()}`

const encoder = new TextEncoder()

/** How long what is asked to end may take before it is made to. */
const grace = "3 seconds"

/**
 * Removes the container. An engine that finds the container in another state than it thought (podman, of one that was paused) fails
 * and has it still, so this tries again. It does not where the service of the engine is not there.
 */
const remove = (engine: Engine, name: string, times = 50): Effect.Effect<void> => {
  const gone = Effect.map(
    engine.run(CommandLine.remove(name)),
    ({ code, stderr }) => code === 0 || /no such container/i.test(stderr) || isUnreachable(stderr)
  )
  const again = Effect.repeat(gone, { until: (isGone) => isGone, schedule: Schedule.spaced("100 millis"), times })
  return inRealTime(Effect.ignore(Effect.timeoutOption(again, "30 seconds")))
}

/** The lines of its first process: that it is ready, then answers. */
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

/** Nobody waits for a line that never ends, and none of ours is longer. */
const longestLine = 256

/** Whoever is inside may write to the same stream. */
const inLines = (take: (line: string) => void): ((chunk: Uint8Array) => void) => {
  let rest = ""
  return (chunk) => {
    const lines = (rest + Buffer.from(chunk).toString("latin1")).split("\n")
    rest = lines.pop()!.slice(-longestLine)
    for (const line of lines) take(line)
  }
}

/** Of the child of the first process. */
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
  /** Whether what the engine is to be given is still what it was when it was judged; asked right before each start. */
  readonly check?: Effect.Effect<void, Fault> | undefined
  /** What the engine is told. */
  readonly argsOf: (name: string) => ReadonlyArray<string>
  /** Before the container counts as ready. */
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
  // The engine removes what has ended by itself, but may be still at it when its client has gone; this waits for that, and sees to all else.
  // A client that has refused leaves nothing, so there one look is enough.
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

/** What of a container remains to be cleared away is cleared before the next one starts, and with the scope. */
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
