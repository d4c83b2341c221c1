/**
 * How a walk reads directories where a backend can do better than one `list` after another: several at a time, each by way of the one
 * that it is in, and with what is in their files at hand.
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { GrepMatch } from "../model/Entry.ts"
import type { Query, Unsearched } from "../model/search.ts"
import type { Child } from "./Backend.ts"

/** The failure of a read that did not find what it had listed, though it was not removed. A search skips the directory. */
export const changed: Fault = {
  _tag: "Unavailable",
  detail: "another program moved or replaced this directory while it was read; try again"
}

/** A directory of a walk. */
export interface Visit {
  /** The one that it is in; `undefined` where the walk starts. */
  readonly above: Visit | undefined
  /** By which that knows it. */
  readonly segment: string
}

/** What was in a directory, in the order of a walk, or why that cannot be told. */
export interface Reading<V extends Visit> {
  readonly visit: V
  readonly children: ReadonlyArray<Child> | Fault
}

/** Files of one directory, by the segments that it knows them by. */
export interface Files<V extends Visit> {
  readonly visit: V
  readonly segments: ReadonlyArray<string>
}

/** What one file of a search holds. */
export interface Searched {
  readonly found: ReadonlyArray<GrepMatch> | Unsearched
  /** What was searched, where the query wants it and something was found. */
  readonly text?: string | undefined
}

/** The answer for each file in order; or which of them the pattern worked on for too long, or what broke at it. */
export type Findings =
  | ReadonlyArray<Searched>
  | { readonly _tag: "Overrun"; readonly index: number }
  | { readonly _tag: "Failed"; readonly index: number; readonly detail: string }

/** Reads the directories of one walk, until its scope ends. */
export interface Explorer<V extends Visit> {
  /** How many more directories it can be asked for now. */
  readonly room: () => number
  /** Asks for these, the most wanted first. The one above each has been read. */
  readonly read: (visits: ReadonlyArray<V>) => void
  /** What has been read since this was called last. */
  readonly take: () => ReadonlyArray<Reading<V>>
  /** Until there is something to take. Only while something is asked for. */
  readonly wait: Effect.Effect<void>
  /** What is in this one will be asked for, so it is kept at hand; until `leave`. */
  readonly hold: (visit: V) => void
  readonly leave: (visit: V) => void
  /**
   * Lists a directory once more. One that is held is the one that was read: fails with NotFound where another has taken its name.
   * @default `list` of its path
   */
  readonly again?: ((visit: V) => Effect.Effect<ReadonlyArray<Child>, Fault>) | undefined
  /**
   * Searches files, in batches that are worked on side by side: the answers of a call do not depend on those of another.
   * `from` is the line of the first file to start at. Matches carry the path that `pathOf` gives for the place of their file.
   */
  readonly search?:
    | ((
        query: Query,
        files: ReadonlyArray<Files<V>>,
        from: number,
        pathOf: (file: number) => FsPath
      ) => Effect.Effect<Findings, Fault>)
    | undefined
}

/** `pathOf`: where a directory is, for when it is no longer at hand; `searches`: whether its files will be searched. */
export interface Explore {
  <V extends Visit>(pathOf: (visit: V) => FsPath, searches: boolean): Effect.Effect<Explorer<V>, never, Scope.Scope>
}
