/**
 * Deadlines of equal duration. They expire in the order in which they were set, so one sleeping fiber serves all of them. Setting or
 * dropping a deadline costs one change of a map.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"

const nanos = 1_000_000

export interface Deadlines<Key> {
  readonly renew: (key: Key) => void
  readonly drop: (key: Key) => void
  readonly has: (key: Key) => boolean
  /** Runs the handler for each key whose deadline passes, and forgets the key. Never ends. */
  readonly run: Effect.Effect<never>
}

export const make = <Key>(clock: Clock.Clock, millis: number, expired: (key: Key) => Effect.Effect<void>): Deadlines<Key> => {
  const due = new Map<Key, number>()
  const some = Latch.makeUnsafe(false)
  // The monotonic clock, because a wall clock that is set back would postpone all deadlines.
  const now = (): number => Number(clock.monotonicTimeNanosUnsafe())

  const step: Effect.Effect<void> = Effect.suspend(() => {
    const next = due.entries().next().value
    if (next === undefined) {
      some.closeUnsafe()
      return some.await
    }
    const [key, at] = next
    const left = at - now()
    if (left > 0) return Effect.sleep(Math.ceil(left / nanos))
    due.delete(key)
    return expired(key)
  })

  return {
    renew: (key) => {
      due.delete(key)
      due.set(key, now() + millis * nanos)
      if (due.size === 1) some.openUnsafe()
    },
    drop: (key) => void due.delete(key),
    has: (key) => due.has(key),
    run: Effect.forever(step)
  }
}
