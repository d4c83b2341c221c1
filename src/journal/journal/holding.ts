/** What is over 4 KiB leaves an entry before it is stored, and its hash takes its place. */
import * as Effect from "effect/Effect"
import type { ContentStore } from "../ContentStore.ts"
import type { JournalError } from "../errors.ts"
import type { Content } from "../FileSystemEntry.ts"

/** Bytes. */
export const largest = 4_096

const fields = ["content", "data", "previous"] as const

export const hold = <E>(contents: ContentStore, entry: E): Effect.Effect<E, JournalError> => {
  let held: Effect.Effect<E, JournalError> | undefined
  for (const field of fields) {
    const value: unknown = (entry as Record<string, unknown>)[field]
    if (!(value instanceof Uint8Array)) continue
    const kept: Effect.Effect<Content, JournalError> =
      value.length > largest ? contents.put(value) : Effect.sync(() => value.slice())
    held = Effect.flatMap(held ?? Effect.succeed(entry), (entry) =>
      Effect.map(
        kept,
        (content) => Object.assign(Object.create(Object.getPrototypeOf(entry) as object), entry, { [field]: content }) as E
      )
    )
  }
  return held ?? Effect.succeed(entry)
}
