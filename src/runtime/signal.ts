/**
 * Wakes all fibers that wait for an event. Each waiter resumes only after the caller of `wake` yields. So `wake` runs no code
 * of a waiter, and a waiter sees all events up to its resumption.
 */
import * as Effect from "effect/Effect"

export interface Signal {
  /** Waits for the next `wake`. Ends immediately if `isDone` returns true. After a `wake`, `isDone` may still return false. */
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
