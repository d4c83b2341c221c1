import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Eager from "../../engine/eager.ts"
import { isBytes } from "../../model/realms.ts"
import * as ContentStore from "../ContentStore.ts"
import type { Recorded, Scrivener, Store } from "../model.ts"
import { copyAllForStore, copyForStore, pageForReaders } from "./entryCopies.ts"
import * as Signal from "../../runtime/signal.ts"

/**
 * The functions that append to a memory store in the call itself, by the `append` of the store. A store with another `append`
 * has no such function.
 */
const immediateAppends = new WeakMap<object, unknown>()

export const make = <E>(): Store<E> => {
  // Two lists instead of a record for each entry, because garbage collections take long with many small objects.
  const entries: Array<E> = []
  const times: Array<number> = []
  const signal = Signal.make()
  const recordedFrom = (start: number, end: number): Array<Recorded<E>> =>
    entries.slice(start, end).map((entry, i) => Object.freeze({ position: start + i + 1, at: times[start + i]!, entry }))
  const appendNow: Store<E>["append"] = (added, at) => {
    for (const entry of added) {
      entries.push(entry)
      times.push(at)
    }
    signal.wake()
    return Effect.succeed(entries.length)
  }
  const append: Store<E>["append"] = (added, at) => Effect.suspend(() => appendNow(added, at))
  immediateAppends.set(append, appendNow)
  return {
    append,
    read: (after, limit) => Effect.sync(() => recordedFrom(after, after + limit)),
    readBackward: (before, limit) =>
      Effect.sync(() => {
        const end = Math.min(entries.length, Math.max(0, before - 1))
        return recordedFrom(Math.max(0, end - limit), end).reverse()
      }),
    last: Effect.sync(() => entries.length),
    changed: (after) => (entries.length > after ? Effect.void : signal.wait(() => entries.length > after)),
    contents: ContentStore.makeMemory()
  }
}

const pageSize = 512

type Append<E> = Scrivener<E>["append"]

const ownAppends = new WeakMap<object, { readonly append: unknown; readonly ownAppend: unknown }>()

/**
 * Returns an `append` that stores an entry without a copy. No other code may use the entry or its bytes, which must be at most
 * 4 KiB. If `append` of the journal has been replaced, calls the replacement.
 *
 * A journal in memory appends in this call, before the returned effect runs. So call this function only in a running effect, at
 * the moment of the append.
 */
export const ownAppendOf = <E>(journal: Scrivener<E>): Append<E> => {
  const original = ownAppends.get(journal)
  return (entry) => (original?.append === journal.append ? (original.ownAppend as Append<E>)(entry) : journal.append(entry))
}

const clampToStart = (after: number): number => Math.max(0, after)

const lastPositionOf = (entries: ReadonlyArray<Recorded<unknown>>, after: number): number => entries.at(-1)?.position ?? after

export const makeReading = <E>(store: Store<E>): Scrivener<E> => {
  const page = (after: number) => Effect.map(store.read(after, pageSize), pageForReaders)
  const waitForPage = (after: number): ReturnType<typeof page> =>
    // Wait for an entry before the read, so that a reader at the end does not send useless reads to the store.
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
  const self: Scrivener<E> = {
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
  const appendNow = (immediateAppends.get(store.append) ?? store.append) as Store<E>["append"]
  const ownAppend: Append<E> = (entry) => appendNow([entry], Fiber.getCurrent()!.getRef(Clock.Clock).currentTimeMillisUnsafe())
  ownAppends.set(self, { append: self.append, ownAppend })
  return self
}
