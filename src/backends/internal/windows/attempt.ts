/**
 * How a Windows disk is asked: as `attempt.ts` says, and with more patience. A file that another program has open (a virus scanner, an
 * indexer, an editor) is refused for as long as that takes, which is rarely long, so what reads and writes tries again; what deletes
 * answers at once.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Fault } from "../../../model/FsError.ts"
import { isFault } from "../attempt.ts"
import { isExhausted } from "../errno.ts"
import { fromWindows, isBusy } from "./errors.ts"

/** 50, 100, … 800 ms, each 20 % more or less: one and a half seconds in all. */
const patience = Schedule.exponential("50 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 5 }))

/** Whether another handle on the file was in the way, or may have been. */
export const isInUse = (fault: Fault): boolean => isBusy(fault["cause"])

const isPassing = (fault: Fault): boolean => isInUse(fault) || isExhausted(fault)

/** Windows says of an open file that it may not be replaced; what else could be the reason has been looked for before. */
const named = (fault: Fault): Fault => (fault._tag === "AccessDenied" && isInUse(fault) ? { ...fault, why: "busy" } : fault)

const ask = <A>(run: () => A | Fault): Effect.Effect<A, Fault> =>
  Effect.suspend(() => {
    let outcome: A | Fault
    try {
      outcome = run()
    } catch (error) {
      outcome = fromWindows(error)
    }
    return isFault(outcome) ? Effect.fail(named(outcome)) : Effect.succeed(outcome)
  })

/** Again, and again later, while somebody else has the file. */
export const patiently = <A, R>(effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, Fault, R> =>
  Effect.retry(effect, { schedule: patience, while: isPassing })

/** Runs what calls the system synchronously, and answers or throws. It must have changed nothing when it fails. */
export const attempt = <A>(run: () => A | Fault): Effect.Effect<A, Fault> => patiently(ask(run))

/** The same, once. */
export const atOnce = ask

/** Starts a call of the thread pool and waits for its end, come what may: it must not outlive the descriptor that it works on. */
export const awaited = <A>(start: (done: (error: Error | null, value: A) => void) => void): Effect.Effect<A, Fault> =>
  Effect.uninterruptible(
    Effect.callback<A, Fault>((resume) =>
      start((error, value) => resume(error === null ? Effect.succeed(value) : Effect.fail(named(fromWindows(error)))))
    )
  )
