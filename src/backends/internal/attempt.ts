/**
 * How a host is asked. Names and metadata synchronously: such a call takes 1 to 20 µs, of which the round trip through the thread
 * pool and a promise would make 50 to 150. Data by callbacks, beyond the little that costs less than the round trip. Whatever has
 * been handed to the thread pool is waited for, also by a fiber that is being interrupted, since closing a descriptor under a
 * call in flight sends the call to whatever file gets the number next.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Fault } from "../../model/FsError.ts"
import { fromErrno, isExhausted, isTransient } from "./errno.ts"

export const isFault = (value: unknown): value is Fault => typeof value === "object" && value !== null && "_tag" in value

const outcomeOf = <A>(run: () => A | Fault): A | Fault => {
  try {
    return run()
  } catch (error) {
    return fromErrno(error)
  }
}

/** 2, 4, … 128 ms, each 20 % more or less: a quarter of a second in all. */
const patience = Schedule.exponential("2 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 7 }))

const reserves = new Set<() => void>()

/** `give` is called when the process has no descriptors left, to close those that are only kept for speed; until it is taken back. */
export const whenExhausted = (give: () => void): (() => void) => {
  reserves.add(give)
  return () => void reserves.delete(give)
}

export const giveReserves = (): void => {
  for (const give of reserves) give()
}

const isWorthwhile = (fault: Fault): boolean => {
  if (isExhausted(fault)) giveReserves()
  return isTransient(fault)
}

/** Again, and again later, while the system only lacks a descriptor or somebody else is at it. */
export const patiently = <A, R>(effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, Fault, R> =>
  Effect.retry(effect, { schedule: patience, while: isWorthwhile })

/** Runs what calls the system synchronously, and answers or throws. It must have changed nothing when it fails. */
export const attempt = <A>(run: () => A | Fault): Effect.Effect<A, Fault> => {
  const once = Effect.suspend(() => {
    const outcome = outcomeOf(run)
    return isFault(outcome) ? Effect.fail(outcome) : Effect.succeed(outcome)
  })
  return Effect.suspend((): Effect.Effect<A, Fault> => {
    const outcome = outcomeOf(run)
    if (!isFault(outcome)) return Effect.succeed(outcome)
    return isWorthwhile(outcome) ? patiently(once) : Effect.fail(outcome)
  })
}

/** Starts a call of the thread pool and waits for its end, come what may. */
export const awaited = <A>(start: (done: (error: Error | null, value: A) => void) => void): Effect.Effect<A, Fault> =>
  Effect.uninterruptible(
    Effect.callback<A, Fault>((resume) =>
      start((error, value) => resume(error === null ? Effect.succeed(value) : Effect.fail(fromErrno(error))))
    )
  )
