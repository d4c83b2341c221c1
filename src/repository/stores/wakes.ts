/** Wakes the readers of changes. A reader that is busy gets one wake for all changes meanwhile. */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

export interface Wakes {
  /** Emits once at its start, and then after each wake for the key. */
  readonly stream: (key: string) => Stream.Stream<void>
  readonly wake: (key: string) => void
  readonly wakeAll: () => void
}

/**
 * Makes a `Wakes`. Calls `start` when the first reader begins, and the function that `start` returned when the last reader
 * ends.
 */
export const make = (start: () => (() => void) | undefined = () => undefined): Wakes => {
  const readers = new Map<string, Set<() => void>>()
  let stop: (() => void) | undefined
  const add = (key: string, wake: () => void): void => {
    if (readers.size === 0) stop = start()
    readers.set(key, (readers.get(key) ?? new Set()).add(wake))
    wake()
  }
  const remove = (key: string, wake: () => void): void => {
    const waiting = readers.get(key)
    waiting?.delete(wake)
    if (waiting?.size !== 0) return
    readers.delete(key)
    if (readers.size === 0) stop?.()
  }
  const wake = (key: string): void => readers.get(key)?.forEach((one) => one())
  return {
    stream: (key) =>
      Stream.callback<void>(
        (queue) => {
          const one = (): void => void Queue.offerUnsafe(queue, undefined)
          return Effect.acquireRelease(
            Effect.sync(() => add(key, one)),
            () => Effect.sync(() => remove(key, one))
          )
        },
        { bufferSize: 1, strategy: "sliding" }
      ),
    wake,
    wakeAll: () => [...readers.keys()].forEach(wake)
  }
}
