import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Returns the time of a clock in milliseconds since an arbitrary start. Setting the wall clock does not change this time. */
export const elapsedOf = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)

/** The time of the current clock, as `elapsedOf` returns it. */
export const elapsedMillis: Effect.Effect<number> = Effect.map(Clock.Clock, elapsedOf)
