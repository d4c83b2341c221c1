/**
 * Deadlines of equal duration. They expire in the order in which they were set, so one sleeping fiber serves all of them. Setting or
 * dropping a deadline costs one change of a map.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"

const nanosPerMilli = 1_000_000

export interface Deadlines<Key> {
  readonly renew: (key: Key) => void
  readonly drop: (key: Key) => void
  readonly has: (key: Key) => boolean
  /** Runs the handler for each key whose deadline passes, and forgets the key. Never ends. */
  readonly run: Effect.Effect<never>
}

export const make = <Key>(
  clock: Clock.Clock,
  durationMillis: number,
  onExpired: (key: Key) => Effect.Effect<void>
): Deadlines<Key> => {
  const dueTimes = new Map<Key, number>()
  const nonEmptyLatch = Latch.makeUnsafe(false)
  // The monotonic clock, because a wall clock that is set back would postpone all deadlines.
  const now = (): number => Number(clock.monotonicTimeNanosUnsafe())

  const waitForNext: Effect.Effect<void> = Effect.suspend(() => {
    const next = dueTimes.entries().next().value
    if (next === undefined) {
      nonEmptyLatch.closeUnsafe()
      return nonEmptyLatch.await
    }
    const [key, at] = next
    const remainingNanos = at - now()
    if (remainingNanos > 0) return Effect.sleep(Math.ceil(remainingNanos / nanosPerMilli))
    dueTimes.delete(key)
    return onExpired(key)
  })

  return {
    renew: (key) => {
      dueTimes.delete(key)
      dueTimes.set(key, now() + durationMillis * nanosPerMilli)
      if (dueTimes.size === 1) nonEmptyLatch.openUnsafe()
    },
    drop: (key) => void dueTimes.delete(key),
    has: (key) => dueTimes.has(key),
    run: Effect.forever(waitForNext)
  }
}
