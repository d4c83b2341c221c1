/** Entries in an array, for as long as it is referred to. One signal wakes all who wait. */
import * as Effect from "effect/Effect"
import * as ContentStore from "../ContentStore.ts"
import type { Recorded, Store } from "../Journal.ts"

export const make = <E>(): Store<E> => {
  const entries: Array<Recorded<E>> = []
  let waiting: Array<() => void> = []
  return {
    append: (added, at) =>
      Effect.sync(() => {
        for (const entry of added) entries.push({ position: entries.length + 1, at, entry })
        const awake = waiting
        waiting = []
        for (const resume of awake) resume()
        return entries.length
      }),
    read: (after, limit) => Effect.sync(() => entries.slice(after, after + limit)),
    readBackward: (before, limit) =>
      Effect.sync(() => {
        const end = Math.min(entries.length, Math.max(0, before - 1))
        return entries.slice(Math.max(0, end - limit), end).reverse()
      }),
    last: Effect.sync(() => entries.length),
    changed: (after) =>
      Effect.callback<void>((resume) => {
        if (entries.length > after) return resume(Effect.void)
        const wake = (): void => resume(Effect.void)
        waiting.push(wake)
        return Effect.sync(() => {
          waiting = waiting.filter((other) => other !== wake)
        })
      }),
    contents: ContentStore.makeMemory()
  }
}
