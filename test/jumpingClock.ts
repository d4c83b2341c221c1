import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Returns a clock whose wall time jumps by a number of milliseconds, as when a machine is set. Its monotonic time goes on. */
export const jumpingClock = Effect.map(Clock.Clock, (real) => {
  let ahead = 0
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: () => real.currentTimeMillisUnsafe() + ahead,
    currentTimeMillis: Effect.sync(() => real.currentTimeMillisUnsafe() + ahead),
    currentTimeNanosUnsafe: () => real.currentTimeNanosUnsafe() + BigInt(ahead) * 1_000_000n,
    currentTimeNanos: Effect.sync(() => real.currentTimeNanosUnsafe() + BigInt(ahead) * 1_000_000n),
    monotonicTimeNanosUnsafe: () => real.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: real.monotonicTimeNanos,
    sleep: (duration) => real.sleep(duration)
  }
  return { clock, jump: (millis: number) => void (ahead += millis) }
})
