/**
 * The interface by which a walk reads directories ahead, on backends where this is faster than one `list` after another.
 * Some backends can also search the files in the directories.
 */
import { unavailable } from "../model/Fault.ts"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { GrepMatch, Kind } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import { compare, fold, type FsPath } from "../model/FsPath.ts"
import type { Query, SkipReason } from "../model/search.ts"
import type { TreeReport, TreeSearch } from "../model/treeSearch.ts"
import type { Child } from "./Backend.ts"
import type { ListedDirectory } from "./history.ts"

// In walk order, entries are sorted by path, and a directory comes directly before its contents.

export const walkSortKey = (path: string, kind: Kind): string => (kind === "directory" ? `${path}/` : path)

/** The pattern of surrogates, which sort differently in UTF-16 and by code point. */
const surrogatePattern = /[\ud800-\udfff]/

export const inWalkOrder = <C extends Child>(children: ReadonlyArray<C>, caseSensitive: boolean): Array<C> => {
  if (children.length < 2) return children.slice()
  const keyed = children.map((child) => {
    const key = walkSortKey(child.name, child.kind)
    return { child, key: caseSensitive ? key : fold(key) }
  })
  if (keyed.some(({ key }) => surrogatePattern.test(key))) keyed.sort((a, b) => compare(a.key, b.key))
  else keyed.sort((a, b) => (a.key < b.key ? -1 : a.key === b.key ? 0 : 1))
  return keyed.map(({ child }) => child)
}

/** The fault for a directory that was moved or replaced after its parent was listed. A search skips the directory. */
export const changed: Fault = unavailable("another program moved or replaced this directory while it was read; try again")

export interface Visit {
  /** The parent directory; `undefined` for the base of the walk. */
  readonly above: Visit | undefined
  readonly segment: string
}

/** The entries of a directory in walk order, or the fault of the read. */
export interface DirectoryReading<V extends Visit> {
  readonly visit: V
  readonly children: ReadonlyArray<Child> | Fault
  /** The metadata of the directory. Absent if the explorer reads no stamps, or omitted an entry. */
  readonly self?: ListedDirectory | undefined
}

export interface DirectoryFiles<V extends Visit> {
  readonly visit: V
  readonly children: ReadonlyArray<Child>
}

export interface Searched {
  readonly found: ReadonlyArray<GrepMatch> | SkipReason
  /** The searched text, if the query has `includesText` and the file has a match. */
  readonly text?: string | undefined
}

/**
 * The results for all files in order. If a search failed, or exceeded the pattern's time budget, the result is only the
 * index of the file.
 */
export type BatchSearchResult =
  | ReadonlyArray<Searched>
  | { readonly _tag: "Overrun"; readonly index: number }
  | { readonly _tag: "Failed"; readonly index: number; readonly detail: string }

/** The report about `visits` and directories below them. `report` is `undefined` if no process could visit these directories. */
export interface TreeReading<V extends Visit> {
  readonly visits: ReadonlyArray<V>
  readonly report: TreeReport | undefined
}

/** The interface to processes that visit whole subtrees, match the names and search the files. */
export interface TreeSearcher<V extends Visit> {
  /** Tests whether the processes are already running, so that the first job does not wait for their start. */
  readonly isWarm: () => boolean
  /** Begins the search of a tree. Returns false if processes cannot search the tree. */
  readonly begin: (tree: TreeSearch, base: V) => boolean
  /** Returns the number of jobs that `send` accepts now. */
  readonly room: () => number
  /** Sends one job. `paths` are relative to the base. A job with a larger `budget` visits more directories below. */
  readonly send: (visits: ReadonlyArray<V>, paths: ReadonlyArray<string>, budget: number) => void
  /** Returns the reports that arrived since the last call. */
  readonly take: () => ReadonlyArray<TreeReading<V>>
}

/** A reader of the directories of one walk, valid for its scope. */
export interface Explorer<V extends Visit> {
  /** Returns the number of directories that `read` accepts now, in addition to all pending directories. */
  readonly availableReads: () => number
  /** Requests directories, the most urgent first. The parents of the directories have been read. */
  readonly read: (visits: ReadonlyArray<V>) => void
  /** Returns the readings that arrived since the last call. */
  readonly take: () => ReadonlyArray<DirectoryReading<V>>
  /** Waits until `take` has a reading to return. May run only while a request is pending. */
  readonly waitForReading: Effect.Effect<void>
  readonly trees?: TreeSearcher<V> | undefined
  /** Keeps a directory open until `release`, because its entries will be read. */
  readonly keepOpen: (visit: V) => void
  readonly release: (visit: V) => void
  /**
   * Lists a directory again. Fails with NotFound if the directory is open, and its name now belongs to another
   * directory.
   *
   * @default `list` of its path
   */
  readonly relist?: ((visit: V) => Effect.Effect<ReadonlyArray<Child>, Fault>) | undefined
  /**
   * Searches a batch of files. Several calls may run at the same time.
   *
   * `firstLine` is the first line to search in the first file. `pathOf` converts the index of a file to the path for
   * its matches.
   */
  readonly search?:
    | ((
        query: Query,
        files: ReadonlyArray<DirectoryFiles<V>>,
        firstLine: number,
        pathOf: (file: number) => FsPath
      ) => Effect.Effect<BatchSearchResult, Fault>)
    | undefined
  /**
   * Returns the contents of files, in order, so that the engine searches them without a copy. The bytes never change.
   *
   * Only a backend that keeps contents in memory has `lend`. The contents may have any size.
   *
   * @default the engine opens each file by its path
   */
  readonly lend?:
    | ((files: ReadonlyArray<DirectoryFiles<V>>) => Effect.Effect<ReadonlyArray<Uint8Array | SkipReason>, Fault>)
    | undefined
}

/**
 * A function that starts a walk. `pathOf` returns the path of a directory that is no longer open. `willSearch` is true
 * if the walk also searches files.
 */
export interface Explore {
  <V extends Visit>(pathOf: (visit: V) => FsPath, willSearch: boolean): Effect.Effect<Explorer<V>, never, Scope.Scope>
}
