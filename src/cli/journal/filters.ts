import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { Entry, type Scrivener } from "../../journal/Journal.ts"
import { type Filter, select } from "../../journal/Replay.ts"
import { type Entries, entriesOf, readAfter } from "../../journal/replay/filter.ts"
import type { FsError } from "../../model/FsError.ts"
import { type Complaint, usage } from "../exit.ts"
import { parsePath } from "../paths.ts"
import type { Screen } from "../screen.ts"
import type { Settings } from "../settings.ts"

export { entriesOf, type Window } from "../../journal/replay/filter.ts"

const tags: ReadonlyArray<string> = Entry.members.map((entry) => entry.fields._tag.schema.literal)

/**
 * Returns the tag of a kind of entry, or `undefined` for an unknown kind. `FileWrite`, `filewrite` and `write` name the same
 * kind.
 */
const kindOf = (text: string): string | undefined => {
  const wanted = text.trim().toLowerCase()
  return tags.find((tag) => tag.toLowerCase() === wanted || tag.toLowerCase() === `file${wanted}`)
}

const kindsOf = (text: string | undefined): Effect.Effect<ReadonlyArray<string> | undefined, Complaint> => {
  if (text === undefined) return Effect.succeed(undefined)
  const given = text.split(",")
  const wrong = given.find((kind) => kindOf(kind) === undefined)
  return wrong !== undefined
    ? Effect.fail(
        usage(`"${wrong.trim()}" is not a kind of entry`, `--kind takes these, separated by commas: ${tags.join(", ")}.`)
      )
    : Effect.succeed(given.map((kind) => kindOf(kind)!))
}

export interface FilterOptions {
  readonly paths: ReadonlyArray<string>
  readonly kinds: string | undefined
  readonly correlations: ReadonlyArray<string>
}

const given = <A>(list: ReadonlyArray<A>): ReadonlyArray<A> | undefined => (list.length === 0 ? undefined : list)

/** Returns the parsed paths, or `undefined` for an empty list, which selects all paths. */
export const pathsOf = (paths: ReadonlyArray<string>) => Effect.map(Effect.forEach(paths, parsePath), given)

export const filterOf = Effect.fnUntraced(function* ({
  correlations,
  kinds,
  paths
}: FilterOptions): Effect.fn.Return<Filter, FsError | Complaint, Screen | Settings> {
  return {
    paths: yield* pathsOf(paths),
    kinds: yield* kindsOf(kinds),
    correlationIds: given(correlations)
  }
})

export const streamAfter = (journal: Scrivener<Entry>, filter: Filter, after: number): Entries =>
  journal.tail(readAfter(filter, after)).pipe(
    select(filter),
    Stream.filter(({ position }) => position > after)
  )

export const positionBeforeLatest = Effect.fnUntraced(function* (journal: Scrivener<Entry>, filter: Filter, max: number) {
  const last = yield* journal.last
  if (Object.values(filter).every((wanted) => wanted === undefined)) return Math.max(0, last - max)
  const window = { after: undefined, before: last + 1, max, reverse: true }
  const first = yield* Stream.runLast(entriesOf(journal, filter, window))
  return Option.match(first, { onNone: () => last, onSome: ({ position }) => position - 1 })
})
