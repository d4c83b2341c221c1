import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as FsPath from "../../model/FsPath.ts"
import * as FileSystemEntry from "../FileSystemEntry.ts"
import type { Entry, Recorded, Scrivener } from "../model.ts"
import type { JournalError } from "../errors.ts"
import { normalizePath } from "./paths.ts"
import type { Change } from "./values.ts"

/**
 * A filter of entries. All given conditions must hold; an omitted condition always holds.
 *
 * @since 0.1.0
 */
export interface Filter {
  /** The paths relative to the branch's root, each with everything below it. A leading "/" also means the branch's root. */
  readonly paths?: ReadonlyArray<string> | undefined
  /** The tags of requests, such as "FileWrite", which includes FileWriteChunk. `select` also accepts tags of answers. */
  readonly kinds?: ReadonlyArray<string> | undefined
  readonly correlationIds?: ReadonlyArray<string> | undefined
}

const hasMatch = <A>(wanted: ReadonlyArray<A> | undefined, is: (value: A) => boolean): boolean =>
  wanted === undefined || wanted.some(is)

export const kindOf = (entry: Entry): Entry["_tag"] => (entry._tag === "FileWriteChunk" ? "FileWrite" : entry._tag)

export const hasPath = (filter: Filter | undefined, paths: ReadonlyArray<FsPath.FsPath>): boolean =>
  hasMatch(filter?.paths, (wanted) => paths.some((path) => FsPath.isWithin(normalizePath(wanted), path)))

const hasKind = (filter: Filter | undefined, entry: Entry): boolean =>
  hasMatch(filter?.kinds, (kind) => kind === kindOf(entry) || kind === entry._tag)

export const isSelected = (
  filter: Filter | undefined,
  asked: FileSystemEntry.Efferent,
  paths: ReadonlyArray<FsPath.FsPath>
): boolean =>
  hasPath(filter, paths) && hasKind(filter, asked) && hasMatch(filter?.correlationIds, (id) => id === asked.correlationId)

export const isChangeSelected = (filter: Filter | undefined, { correlationId, kind, path, to }: Change): boolean =>
  hasPath(filter, to === undefined ? [path] : [path, to]) &&
  hasMatch(filter?.kinds, (wanted) => wanted === kind) &&
  hasMatch(filter?.correlationIds, (id) => id === correlationId)

const pathsOf = (entry: Entry): ReadonlyArray<FsPath.FsPath> => [
  ...("path" in entry && entry.path !== undefined ? [normalizePath(entry.path)] : []),
  ...("to" in entry ? [normalizePath(entry.to)] : [])
]

/** Tests whether the entry cancels a chunked write. A cancelled write gets no answer. */
const isDiscard = (entry: Entry): boolean => entry._tag === "FileWriteChunk" && entry.discard === true

/**
 * Returns the entries of a stream that pass the filter. Remembers for each open request whether its path passes,
 * because not every answer has a path.
 */
export const select =
  (filter: Filter) =>
  <E, R>(self: Stream.Stream<Recorded<Entry>, E, R>): Stream.Stream<Recorded<Entry>, E, R> =>
    Stream.suspend(() => {
      const open = new Map<string, boolean>()
      return Stream.filter(self, ({ entry }) => {
        if (!("correlationId" in entry)) {
          return filter.paths === undefined && filter.correlationIds === undefined && hasKind(filter, entry)
        }
        const { correlationId } = entry
        const paths = pathsOf(entry)
        const isPathSelected = open.get(correlationId) ?? hasPath(filter, paths)
        if (FileSystemEntry.isTerminal(entry) || isDiscard(entry)) open.delete(correlationId)
        else if (FileSystemEntry.isEfferent(entry)) open.set(correlationId, isPathSelected)
        return isPathSelected && hasKind(filter, entry) && hasMatch(filter.correlationIds, (id) => id === correlationId)
      })
    })

export interface Window {
  readonly after: number | undefined
  readonly before: number | undefined
  readonly max: number | undefined
  readonly reverse: boolean
}

export type Entries = Stream.Stream<Recorded<Entry>, JournalError>

/**
 * Returns the position after which to read. With a filter by path, reads from the start, because the request of a later answer
 * may come before `after`.
 */
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

const latest = (entries: Entries, max: number): Entries =>
  Stream.unwrap(Effect.map(Stream.runCollect(Stream.takeRight(entries, max)), (all) => Stream.fromIterable(all.toReversed())))

export const entriesOf = (journal: Scrivener<Entry>, filter: Filter, window: Window): Entries => {
  const { max = Number.MAX_SAFE_INTEGER, reverse } = window
  if (!reverse) return Stream.take(readForward(journal, filter, window), max)
  return filter.paths === undefined
    ? Stream.take(readBackward(journal, filter, window), max)
    : latest(readForward(journal, filter, window), max)
}
