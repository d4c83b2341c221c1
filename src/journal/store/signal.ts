/**
 * Wakes all fibers that wait for an event. A waiter checks its condition again after it has registered, so it misses no event.
 * Each waiter resumes in a later turn of the event loop. So the caller of `wake` runs no other code, and a waiter sees all
 * events up to then.
 */
import * as Effect from "effect/Effect"

export interface Signal {
  /** Waits for the next `wake`. Ends immediately if the condition is true. After a wake, the condition may still be false. */
  readonly wait: (isDone: () => boolean) => Effect.Effect<void>
  readonly wake: () => void
  readonly waiting: () => number
}

export const make = (): Signal => {
  let waiting = new Set<() => void>()
  return {
    wait: (isDone) =>
      Effect.callback<void>((resume) => {
        if (isDone()) return resume(Effect.void)
        const waiter = (): void => resume(Effect.yieldNow)
        waiting.add(waiter)
        return Effect.sync(() => void waiting.delete(waiter))
      }),
    wake: () => {
      if (waiting.size === 0) return
      const woken = waiting
      waiting = new Set()
      for (const resume of woken) resume()
    },
    waiting: () => waiting.size
  }
}
