import * as Effect from "effect/Effect"
import * as ContentStore from "../ContentStore.ts"
import type { Recorded, Store } from "../Journal.ts"
import * as Signal from "./signal.ts"

export const make = <E>(): Store<E> => {
  const entries: Array<Recorded<E>> = []
  const signal = Signal.make()
  return {
    append: (added, at) =>
      Effect.sync(() => {
        for (const entry of added) entries.push(Object.freeze({ position: entries.length + 1, at, entry }))
        signal.wake()
        return entries.length
      }),
    read: (after, limit) => Effect.sync(() => entries.slice(after, after + limit)),
    readBackward: (before, limit) =>
      Effect.sync(() => {
        const end = Math.min(entries.length, Math.max(0, before - 1))
        return entries.slice(Math.max(0, end - limit), end).reverse()
      }),
    last: Effect.sync(() => entries.length),
    changed: (after) => (entries.length > after ? Effect.void : signal.wait(() => entries.length > after)),
    contents: ContentStore.makeMemory()
  }
}
