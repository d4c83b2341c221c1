/**
 * Wakes all who wait for something to have come. A waiter looks once more after it has enrolled, so nothing that comes in between is
 * lost; and it goes on in a turn of its own, so that whoever wakes runs nobody else's program, and a waiter meets all that has come
 * until then at once.
 */
import * as Effect from "effect/Effect"

export interface Signal {
  /** Ends at the next `wake`, at once where it is over already. An end by a wake does not say that it is over. */
  readonly wait: (isOver: () => boolean) => Effect.Effect<void>
  readonly wake: () => void
  /** How many wait. */
  readonly waiting: () => number
}

export const make = (): Signal => {
  let waiting = new Set<() => void>()
  return {
    wait: (isOver) =>
      Effect.callback<void>((resume) => {
        if (isOver()) return resume(Effect.void)
        const waiter = (): void => resume(Effect.yieldNow)
        waiting.add(waiter)
        return Effect.sync(() => void waiting.delete(waiter))
      }),
    wake: () => {
      if (waiting.size === 0) return
      const awake = waiting
      waiting = new Set()
      for (const resume of awake) resume()
    },
    waiting: () => waiting.size
  }
}
