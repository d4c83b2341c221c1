import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import * as Eager from "../../engine/eager.ts"
import type { Recorded, Scrivener, Store } from "../Journal.ts"
import { copyForStore, copyAllForStore, pageForReaders } from "./holding.ts"

const pageSize = 512

const clampToStart = (after: number): number => Math.max(0, after)

const lastPositionOf = (entries: ReadonlyArray<Recorded<unknown>>, after: number): number => entries.at(-1)?.position ?? after

export const make = <E>(store: Store<E>): Scrivener<E> => {
  const page = (after: number) => Effect.map(store.read(after, pageSize), pageForReaders)
  const waitForPage = (after: number): ReturnType<typeof page> =>
    // A reader at the end waits first. So it sends no read to a store that cannot answer for a while.
    Effect.flatMap(store.changed(after), () =>
      Effect.flatMap(page(after), (entries) => (entries.length > 0 ? Effect.succeed(entries) : waitForPage(after)))
    )
  const waitFor: Scrivener<E>["waitFor"] = <B extends E>(after: number, is: (entry: E) => entry is B) =>
    Effect.flatMap(waitForPage(clampToStart(after)), (entries) => {
      const found = entries.find((recorded): recorded is Recorded<E> & Recorded<B> => is(recorded.entry))
      return found === undefined ? waitFor(lastPositionOf(entries, after), is) : Effect.succeed<Recorded<B>>(found)
    })
  const pages = (from: number, read: (at: number) => ReturnType<typeof page>) =>
    Stream.paginate(from, (at) =>
      Effect.map(
        read(at),
        (entries) => [entries, entries.length === 0 ? Option.none<number>() : Option.some(lastPositionOf(entries, at))] as const
      )
    )
  return {
    append: (entry) =>
      Effect.withFiber((fiber) =>
        Eager.flatMap(copyForStore(store.contents, entry), (copied) =>
          store.append([copied], fiber.getRef(Clock.Clock).currentTimeMillisUnsafe())
        )
      ),
    appendAll: (entries) =>
      Effect.withFiber((fiber) =>
        entries.length === 0
          ? store.last
          : Eager.flatMap(copyAllForStore(store.contents, entries), (copied) =>
              store.append(copied, fiber.getRef(Clock.Clock).currentTimeMillisUnsafe())
            )
      ),
    tail: (after = 0) => pages(clampToStart(after), waitForPage),
    stored: (after = 0) => pages(clampToStart(after), page),
    readBackward: (before = Number.MAX_SAFE_INTEGER) =>
      pages(before, (at) => Effect.map(store.readBackward(at, pageSize), pageForReaders)),
    waitFor,
    last: store.last,
    contents: store.contents,
    bytes: (content) => (isBytes(content) ? Effect.sync(() => new Uint8Array(content)) : store.contents.get(content))
  }
}
