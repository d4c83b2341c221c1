/** Which entries are meant, and the stream of those that are. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { JournalError } from "../../journal/errors.ts"
import { Entry, type Recorded, type Scrivener } from "../../journal/Journal.ts"
import { type Filter, select } from "../../journal/Replay.ts"
import * as FsError from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Complaint } from "../exit.ts"
import { usage } from "./file.ts"

const tags: ReadonlyArray<string> = Entry.members.map((entry) => entry.fields._tag.schema.literal)

/** `FileWrite`, `filewrite` and `write` are one. */
const kindOf = (text: string): string | undefined => {
  const wanted = text.trim().toLowerCase()
  return tags.find((tag) => tag.toLowerCase() === wanted || tag.toLowerCase() === `file${wanted}`)
}

const kindsOf = (text: string | undefined): Effect.Effect<ReadonlyArray<string> | undefined, Complaint> => {
  if (text === undefined) return Effect.succeed(undefined)
  const given = text.split(",")
  const wrong = given.find((kind) => kindOf(kind) === undefined)
  return wrong !== undefined
    ? Effect.fail(usage(`"${wrong.trim()}" is no kind of entry`, `--kind takes, with commas: ${tags.join(", ")}.`))
    : Effect.succeed(given.map((kind) => kindOf(kind)!))
}

export interface Chosen {
  readonly paths: ReadonlyArray<string>
  readonly kinds: string | undefined
  readonly correlations: ReadonlyArray<string>
}

const given = <A>(list: ReadonlyArray<A>): ReadonlyArray<A> | undefined => (list.length === 0 ? undefined : list)

/** A path that can be nowhere is a slip. */
export const pathsOf = (paths: ReadonlyArray<string>, command: string) =>
  Effect.map(
    Effect.forEach(paths, (text) => {
      const path = FsPath.parse(text)
      return typeof path === "string" ? Effect.succeed(path) : Effect.fail(FsError.promote(path, command, text))
    }),
    given
  )

export const filterOf = Effect.fnUntraced(function* (
  { correlations, kinds, paths }: Chosen,
  command: string
): Effect.fn.Return<Filter, FsError.FsError | Complaint> {
  return {
    paths: yield* pathsOf(paths, command),
    kinds: yield* kindsOf(kinds),
    correlationIds: given(correlations)
  }
})

export interface Window {
  readonly after: number | undefined
  readonly before: number | undefined
  readonly max: number | undefined
  readonly reverse: boolean
}

type Entries = Stream.Stream<Recorded<Entry>, JournalError>

/** An answer is meant where what it answers is, so that what was asked has to be seen first: also what stands before `after`. */
const seenFrom = (filter: Filter, after: number): number => (filter.paths === undefined ? after : 0)

/** In order. */
const forward = (journal: Scrivener<Entry>, filter: Filter, { after = 0, before = Infinity }: Window): Entries =>
  journal.stored(seenFrom(filter, after)).pipe(
    Stream.takeWhile(({ position }) => position < before),
    select(filter),
    Stream.filter(({ position }) => position > after)
  )

const backward = (journal: Scrivener<Entry>, filter: Filter, { after = 0, before }: Window): Entries =>
  journal.readBackward(before).pipe(
    Stream.takeWhile(({ position }) => position > after),
    select(filter)
  )

/** The last of them, the latest first. */
const latest = (entries: Entries, max: number): Entries =>
  Stream.unwrap(Effect.map(Stream.runCollect(Stream.takeRight(entries, max)), (all) => Stream.fromIterable(all.toReversed())))

export const entriesOf = (journal: Scrivener<Entry>, filter: Filter, window: Window): Entries => {
  const { max = Number.MAX_SAFE_INTEGER, reverse } = window
  if (!reverse) return Stream.take(forward(journal, filter, window), max)
  return filter.paths === undefined
    ? Stream.take(backward(journal, filter, window), max)
    : latest(forward(journal, filter, window), max)
}

/** Those that come after the position, for ever. */
export const following = (journal: Scrivener<Entry>, filter: Filter, after: number): Entries =>
  journal.tail(seenFrom(filter, after)).pipe(
    select(filter),
    Stream.filter(({ position }) => position > after)
  )

/** The position after which the last so many stand. */
export const beforeLatest = Effect.fnUntraced(function* (journal: Scrivener<Entry>, filter: Filter, max: number) {
  const last = yield* journal.last
  if (Object.values(filter).every((wanted) => wanted === undefined)) return Math.max(0, last - max)
  const window = { after: undefined, before: last + 1, max, reverse: true }
  const first = yield* Stream.runLast(entriesOf(journal, filter, window))
  return Option.match(first, { onNone: () => last, onSome: ({ position }) => position - 1 })
})
