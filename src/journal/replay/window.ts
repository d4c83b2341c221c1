import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { JournalError } from "../errors.ts"
import type { Entry, Recorded, Scrivener } from "../Journal.ts"
import { type Filter, select } from "./filter.ts"

export interface Window {
  readonly after: number | undefined
  readonly before: number | undefined
  readonly max: number | undefined
  readonly reverse: boolean
}

export type Entries = Stream.Stream<Recorded<Entry>, JournalError>

/** Returns the position to read from. A filter by path needs the requests of all answers, including requests before `after`. */
export const readAfter = (filter: Filter, after: number): number => (filter.paths === undefined ? after : 0)

const readForward = (journal: Scrivener<Entry>, filter: Filter, { after = 0, before = Infinity }: Window): Entries =>
  journal.stored(readAfter(filter, after)).pipe(
    Stream.takeWhile(({ position }) => position < before),
    select(filter),
    Stream.filter(({ position }) => position > after)
  )

const readBackward = (journal: Scrivener<Entry>, filter: Filter, { after = 0, before }: Window): Entries =>
  journal.readBackward(before).pipe(
    Stream.takeWhile(({ position }) => position > after),
    select(filter)
  )

/** Returns the last `max` entries, the latest first. */
const latest = (entries: Entries, max: number): Entries =>
  Stream.unwrap(Effect.map(Stream.runCollect(Stream.takeRight(entries, max)), (all) => Stream.fromIterable(all.toReversed())))

export const entriesOf = (journal: Scrivener<Entry>, filter: Filter, window: Window): Entries => {
  const { max = Number.MAX_SAFE_INTEGER, reverse } = window
  if (!reverse) return Stream.take(readForward(journal, filter, window), max)
  return filter.paths === undefined
    ? Stream.take(readBackward(journal, filter, window), max)
    : latest(readForward(journal, filter, window), max)
}
