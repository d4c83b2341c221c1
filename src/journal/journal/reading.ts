import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import * as Eager from "../../engine/eager.ts"
import type { Recorded, Scrivener, Store } from "../Journal.ts"
import { hold, holdAll, lend } from "./holding.ts"

const pageSize = 512

const fromStart = (after: number): number => Math.max(0, after)

const nextOf = (entries: ReadonlyArray<Recorded<unknown>>, after: number): number => entries.at(-1)?.position ?? after

export const make = <E>(store: Store<E>): Scrivener<E> => {
  const page = (after: number) => Effect.map(store.read(after, pageSize), lend)
  const livePage = (after: number): ReturnType<typeof page> =>
    // A reader at the end waits first. So it sends no read to a store that cannot answer for a while.
    Effect.flatMap(store.changed(after), () =>
      Effect.flatMap(page(after), (entries) => (entries.length > 0 ? Effect.succeed(entries) : livePage(after)))
    )
  const waitFor: Scrivener<E>["waitFor"] = <B extends E>(after: number, is: (entry: E) => entry is B) =>
    Effect.flatMap(livePage(fromStart(after)), (entries) => {
      const found = entries.find((recorded): recorded is Recorded<E> & Recorded<B> => is(recorded.entry))
      return found === undefined ? waitFor(nextOf(entries, after), is) : Effect.succeed<Recorded<B>>(found)
    })
  const pages = (from: number, read: (at: number) => ReturnType<typeof page>) =>
    Stream.paginate(from, (at) =>
      Effect.map(
        read(at),
        (entries) => [entries, entries.length === 0 ? Option.none<number>() : Option.some(nextOf(entries, at))] as const
      )
    )
  return {
    append: (entry) =>
      Effect.withFiber((fiber) =>
        Eager.flatMap(hold(store.contents, entry), (held) =>
          store.append([held], fiber.getRef(Clock.Clock).currentTimeMillisUnsafe())
        )
      ),
    appendAll: (entries) =>
      Effect.withFiber((fiber) =>
        entries.length === 0
          ? store.last
          : Eager.flatMap(holdAll(store.contents, entries), (held) =>
              store.append(held, fiber.getRef(Clock.Clock).currentTimeMillisUnsafe())
            )
      ),
    tail: (after = 0) => pages(fromStart(after), livePage),
    stored: (after = 0) => pages(fromStart(after), page),
    readBackward: (before = Number.MAX_SAFE_INTEGER) =>
      pages(before, (at) => Effect.map(store.readBackward(at, pageSize), lend)),
    waitFor,
    last: store.last,
    contents: store.contents,
    bytes: (content) => (isBytes(content) ? Effect.sync(() => new Uint8Array(content)) : store.contents.get(content))
  }
}
