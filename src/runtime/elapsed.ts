import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** The time in milliseconds since an arbitrary start. A machine whose wall clock is set does not change it. */
export const elapsedMillis: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))
