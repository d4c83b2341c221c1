/**
 * Runs calls to the operating system.
 *
 * Names and metadata are read synchronously: such a call takes 1 to 20 µs, while the thread pool and a promise would
 * take 50 to 150.
 *
 * A call in the thread pool is always awaited, even by an interrupted fiber. If its descriptor were closed during the
 * call, the call could reach another file with the same number.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Fault } from "../../model/FsError.ts"
import * as Host from "../../runtime/host.ts"
import { fromErrno, isExhausted, isTransient } from "./errno.ts"

export const isFault = (value: unknown): value is Fault => typeof value === "object" && value !== null && "_tag" in value

const outcomeOf = <A>(run: () => A | Fault): A | Fault => {
  try {
    return run()
  } catch (error) {
    return fromErrno(error)
  }
}

/** 2, 4, … 128 ms, each with 20 % jitter; a quarter of a second in all. */
const retrySchedule = Schedule.exponential("2 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 7 }))

const reserveReleasers = new Set<() => void>()

/** Registers a function that closes cached descriptors when the process has none left. Returns its removal. */
export const onExhausted = (releaseReserve: () => void): (() => void) => {
  reserveReleasers.add(releaseReserve)
  return () => void reserveReleasers.delete(releaseReserve)
}

export const releaseReserves = (): void => {
  for (const releaseReserve of reserveReleasers) releaseReserve()
}

const shouldRetry = (fault: Fault): boolean => {
  if (isExhausted(fault)) releaseReserves()
  return isTransient(fault)
}

export const retryTransient = <A, R>(effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, Fault, R> =>
  Effect.retry(effect, { schedule: retrySchedule, while: shouldRetry })

/** Runs synchronous system calls, and retries transient failures. A failed call must have changed nothing. */
export const attempt = <A>(run: () => A | Fault): Effect.Effect<A, Fault> => {
  const once = Effect.suspend(() => {
    const outcome = outcomeOf(run)
    return isFault(outcome) ? Effect.fail(outcome) : Effect.succeed(outcome)
  })
  return Effect.suspend((): Effect.Effect<A, Fault> => {
    const outcome = outcomeOf(run)
    if (!isFault(outcome)) return Effect.succeed(outcome)
    return shouldRetry(outcome) ? retryTransient(once) : Effect.fail(outcome)
  })
}

export const awaitCall = <A>(start: Host.Start<A>): Effect.Effect<A, Fault> => Host.awaited(start, fromErrno)
