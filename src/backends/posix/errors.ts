/**
 * Runs synchronous system calls, and retries them after transient failures.
 *
 * Names and metadata are read synchronously: such a call takes 1 to 20 µs, while the thread pool and a promise would
 * take 50 to 150 µs.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Fault } from "../../model/Fault.ts"
import { codeOf } from "../../model/realms.ts"
import * as Host from "../../runtime/host.ts"

const exhaustedCodes = new Set(["EMFILE", "ENFILE"])
const transientCodes = new Set(["EBUSY", "EAGAIN", ...exhaustedCodes])

export const isExhausted = (fault: Fault): boolean => exhaustedCodes.has(codeOf(fault["cause"]) ?? "")

export const isTransient = (fault: Fault): boolean => transientCodes.has(codeOf(fault["cause"]) ?? "")

/** The pauses before retries: 2, 4, … 128 ms, each with 20 % jitter, and a quarter of a second in total. */
const retrySchedule = Schedule.exponential("2 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 7 }))

const reserveReleasers = new Set<() => void>()

/**
 * Registers a function that closes cached descriptors when the process has no descriptors left. Returns a function that
 * removes the registration.
 */
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

/** Runs synchronous system calls, and retries transient failures. A failed call must not have changed anything. */
export const attempt = <A>(run: () => A | Fault): Effect.Effect<A, Fault> => {
  const once = Host.attempt(run)
  // Start the schedule only after a failure, because most calls succeed.
  return Effect.catch(once, (fault) => (shouldRetry(fault) ? retryTransient(once) : Effect.fail(fault)))
}
