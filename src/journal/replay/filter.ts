/** Which entries are meant: by path, kind and correlation id. An answer is meant where what it answers is. */
import * as Stream from "effect/Stream"
import * as FsPath from "../../model/FsPath.ts"
import * as FileSystemEntry from "../FileSystemEntry.ts"
import type { Entry, Recorded } from "../Journal.ts"
import { toPath } from "./paths.ts"
import type { Change } from "./values.ts"

/**
 * All that is given must hold; what is left out holds of everything.
 *
 * @since 0.1.0
 */
export interface Filter {
  /** At one of these, or below. From the branch's root; a leading "/" is that root too. */
  readonly paths?: ReadonlyArray<string> | undefined
  /** Tags of what was asked, such as "FileWrite", which stands for FileWriteChunk too; `select` takes those of answers as well. */
  readonly kinds?: ReadonlyArray<string> | undefined
  /** One of these. */
  readonly correlationIds?: ReadonlyArray<string> | undefined
}

const isAny = <A>(wanted: ReadonlyArray<A> | undefined, is: (value: A) => boolean): boolean =>
  wanted === undefined || wanted.some(is)

/** A chunk is a part of a write. */
export const kindOf = (entry: Entry): Entry["_tag"] => (entry._tag === "FileWriteChunk" ? "FileWrite" : entry._tag)

export const hasPath = (filter: Filter | undefined, paths: ReadonlyArray<FsPath.FsPath>): boolean =>
  isAny(filter?.paths, (wanted) => paths.some((path) => FsPath.isWithin(toPath(wanted), path)))

const hasKind = (filter: Filter | undefined, entry: Entry): boolean =>
  isAny(filter?.kinds, (kind) => kind === kindOf(entry) || kind === entry._tag)

/** What is asked, as a whole. */
export const isMeant = (
  filter: Filter | undefined,
  asked: FileSystemEntry.Efferent,
  paths: ReadonlyArray<FsPath.FsPath>
): boolean =>
  hasPath(filter, paths) && hasKind(filter, asked) && isAny(filter?.correlationIds, (id) => id === asked.correlationId)

export const isChangeMeant = (filter: Filter | undefined, { correlationId, kind, path, to }: Change): boolean =>
  hasPath(filter, to === undefined ? [path] : [path, to]) &&
  isAny(filter?.kinds, (wanted) => wanted === kind) &&
  isAny(filter?.correlationIds, (id) => id === correlationId)

const pathsOf = (entry: Entry): ReadonlyArray<FsPath.FsPath> => [
  ...("path" in entry && entry.path !== undefined ? [toPath(entry.path)] : []),
  ...("to" in entry ? [toPath(entry.to)] : [])
]

/** Keeps the entries that are meant, for as long as the stream goes on; what is asked and not answered yet is remembered. */
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
        const isThere = open.get(correlationId) ?? hasPath(filter, paths)
        if (FileSystemEntry.isTerminal(entry)) open.delete(correlationId)
        else if (FileSystemEntry.isEfferent(entry)) open.set(correlationId, isThere)
        return isThere && hasKind(filter, entry) && isAny(filter.correlationIds, (id) => id === correlationId)
      })
    })
