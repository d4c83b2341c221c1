/**
 * Runs calls to a Windows disk.
 *
 * A file that another program has open (a virus scanner, an indexer, an editor) is refused, usually for a short time.
 * So reads and writes are retried. Deletions fail at once.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Fault } from "../../../model/FsError.ts"
import * as Host from "../../../runtime/host.ts"
import { isFault } from "../attempt.ts"
import { isExhausted } from "../errno.ts"
import { fromWindows, isBusy } from "./errors.ts"

/** 50, 100, … 800 ms, each with 20 % jitter; 1.5 seconds in all. */
const retrySchedule = Schedule.exponential("50 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 5 }))

export const isInUse = (fault: Fault): boolean => isBusy(fault["cause"])

const isPassing = (fault: Fault): boolean => isInUse(fault) || isExhausted(fault)

/**
 * Changes a denied access to `busy` if another handle is the cause. Windows reports the replacement of an open file as
 * a lack of permission; other causes were excluded before.
 */
const withBusy = (fault: Fault): Fault => (fault._tag === "AccessDenied" && isInUse(fault) ? { ...fault, why: "busy" } : fault)

const runOnce = <A>(run: () => A | Fault): Effect.Effect<A, Fault> =>
  Effect.suspend(() => {
    let outcome: A | Fault
    try {
      outcome = run()
    } catch (error) {
      outcome = fromWindows(error)
    }
    return isFault(outcome) ? Effect.fail(withBusy(outcome)) : Effect.succeed(outcome)
  })

export const retryTransient = <A, R>(effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, Fault, R> =>
  Effect.retry(effect, { schedule: retrySchedule, while: isPassing })

/** Runs synchronous system calls, and retries transient failures. A failed call must have changed nothing. */
export const attempt = <A>(run: () => A | Fault): Effect.Effect<A, Fault> => retryTransient(runOnce(run))

export const attemptOnce = runOnce

export const awaitCall = <A>(start: Host.Start<A>): Effect.Effect<A, Fault> =>
  Host.awaited(start, (error) => withBusy(fromWindows(error)))
