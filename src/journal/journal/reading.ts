/** A journal out of a store: pages become streams, and who is at the end waits for the store to grow. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Recorded, Scrivener, Store } from "../Journal.ts"
import { hold } from "./holding.ts"

const pageSize = 512

export const make = <E>(store: Store<E>): Scrivener<E> => {
  const page = (after: number) => store.read(after, pageSize)
  const nextOf = (entries: ReadonlyArray<Recorded<E>>, after: number): number => entries.at(-1)?.position ?? after
  const livePage = (after: number): ReturnType<typeof page> =>
    Effect.flatMap(page(after), (entries) =>
      entries.length > 0 ? Effect.succeed(entries) : Effect.flatMap(store.changed(after), () => livePage(after))
    )
  const waitFor: Scrivener<E>["waitFor"] = <B extends E>(after: number, is: (entry: E) => entry is B) =>
    Effect.flatMap(livePage(after), (entries) => {
      const found = entries.find((recorded): recorded is Recorded<E> & Recorded<B> => is(recorded.entry))
      return found === undefined ? waitFor(nextOf(entries, after), is) : Effect.succeed<Recorded<B>>(found)
    })
  const appendAll: Scrivener<E>["appendAll"] = (entries) =>
    entries.length === 0
      ? store.last
      : Effect.flatMap(
          Effect.forEach(entries, (entry) => hold(store.contents, entry)),
          (held) => Effect.flatMap(Clock.currentTimeMillis, (at) => store.append(held, at))
        )
  return {
    append: (entry) => appendAll([entry]),
    appendAll,
    tail: (after = 0) =>
      Stream.paginate(after, (at) =>
        Effect.map(livePage(at), (entries) => [entries, Option.some(nextOf(entries, at))] as const)
      ),
    stored: (after = 0) =>
      Stream.paginate(after, (at) =>
        Effect.map(
          page(at),
          (entries) => [entries, entries.length === 0 ? Option.none() : Option.some(nextOf(entries, at))] as const
        )
      ),
    readBackward: (before = Number.MAX_SAFE_INTEGER) =>
      Stream.paginate(before, (at) =>
        Effect.map(
          store.readBackward(at, pageSize),
          (entries) => [entries, entries.length === 0 ? Option.none() : Option.some(nextOf(entries, at))] as const
        )
      ),
    waitFor,
    last: store.last,
    contents: store.contents,
    bytes: (content) => (content instanceof Uint8Array ? Effect.sync(() => content.slice()) : store.contents.get(content))
  }
}
