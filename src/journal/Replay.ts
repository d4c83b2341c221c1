/**
 * What a journal is good for afterwards: the tree as it was at any position, the same session on another backend, a double that answers
 * from the recording, what has been changed behind the journal's back, and the way back. All read the journal as a stream and hold
 * contents by reference; none executes again what has been answered, but `rerun`, which is told where.
 *
 * A change is what was answered, and happened when it was answered. What a failed call has done is not in the journal of those who only
 * ask and answer; `Journal.record` writes down each step, so that its journal has all of it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import { type Algebra, make } from "../filesystem/Filesystem.ts"
import type { Change as TreeChange } from "../history/tree.ts"
import { type FsError, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Rules } from "../port/Backend.ts"
import { JournalError } from "./errors.ts"
import type { Entry, Scrivener } from "./Journal.ts"
import * as Changes from "./replay/changes.ts"
import type { ContentError } from "./replay/contents.ts"
import * as Double from "./replay/double.ts"
import * as Drifting from "./replay/drift.ts"
import { NotRecorded } from "./replay/errors.ts"
import type { Filter } from "./replay/filter.ts"
import * as Rerun from "./replay/rerun.ts"
import * as Tree from "./replay/tree.ts"
import * as Undo from "./replay/undo.ts"
import type { Change, Difference, Drift } from "./replay/values.ts"

export {
  /** @since 0.1.0 */
  NotRecorded
} from "./replay/errors.ts"
export {
  type Filter,
  /**
   * Keeps the entries of a stream (`stored`, `tail`) that are meant; an answer is meant where what it answers is.
   *
   * @since 0.1.0
   */
  select
} from "./replay/filter.ts"
export type {
  /** @since 0.1.0 */
  Change,
  /** @since 0.1.0 */
  Difference,
  /** @since 0.1.0 */
  Drift,
  /** @since 0.1.0 */
  State
} from "./replay/values.ts"

type Files = Scrivener<Entry>

/** Of which there are no operations of a service, so that faults become errors here. */
const promoted = <A>(
  operation: string,
  effect: Effect.Effect<A, ContentError>
): Effect.Effect<A, JournalError | NotRecorded | FsError> =>
  Effect.mapError(effect, (error) =>
    error instanceof JournalError || error instanceof NotRecorded ? error : promote(error, operation, FsPath.root)
  )

/**
 * Up to where, and over what, a tree is made from a journal.
 *
 * @since 0.1.0
 */
export interface TreeOptions {
  /** The position up to which changes count; 0 is the beginning. @default the end */
  readonly until?: number | undefined
  /**
   * What was there when the journal began. It is read, never changed, and must not change while the tree is in use.
   * @default what the entries tell of it (`previous`, `removed`)
   */
  readonly base?: Algebra | undefined
  /** Where there is no base: names that differ only in case are the same. @default false */
  readonly caseInsensitive?: boolean | undefined
}

/**
 * The tree as it was at a position, as a filesystem in memory of its own: kinds, contents, targets and such permissions as the journal
 * tells; not times. Fails with NotRecorded where a content depends on what no entry tells and no base has.
 *
 * @since 0.1.0
 */
export const tree: (journal: Files, options?: TreeOptions) => Effect.Effect<Algebra, JournalError | NotRecorded | FsError> = (
  journal,
  options
) => promoted("tree", Tree.tree(journal, options))

/**
 * Up to where, and which entries, are done again.
 *
 * @since 0.1.0
 */
export interface RerunOptions {
  /** @default the end */
  readonly until?: number | undefined
  /** @default all */
  readonly filter?: Filter | undefined
}

/**
 * Carries out what was asked, reads too, on another filesystem, one after another as it was answered, and answers what comes out
 * otherwise than was recorded, times and permissions aside. What was never answered is left out.
 *
 * @since 0.1.0
 */
export const rerun: (
  journal: Files,
  against: Algebra,
  options?: RerunOptions
) => Effect.Effect<ReadonlyArray<Difference>, JournalError> = Rerun.rerun

/**
 * What the filesystem was like that was recorded.
 *
 * @since 0.1.0
 */
export interface DoubleOptions {
  /** @default false */
  readonly caseInsensitive?: boolean | undefined
  /** What the layer's options said of calls when it was recorded. @default none */
  readonly rules?: Rules | undefined
}

/**
 * A filesystem that answers from what `Journal.record({ reads: true })` has recorded, and touches nothing: the same calls get the same
 * answers, in their order where one was made several times. What was never recorded fails with Unavailable, which says what it was.
 *
 * @since 0.1.0
 */
export const double: (journal: Files, options?: DoubleOptions) => Effect.Effect<Algebra, JournalError> = (journal, options) =>
  Effect.map(Double.double(journal, options), make)

/**
 * Which paths are compared, and up to where the journal counts.
 *
 * @since 0.1.0
 */
export interface DriftOptions {
  /** @default the end */
  readonly until?: number | undefined
  /** At one of these, or below. @default all */
  readonly paths?: ReadonlyArray<string> | undefined
  /**
   * Tell of entries too that the journal has never touched. Nothing is expected where the journal knows all of the directory; elsewhere
   * `unknown` is, since the entry may have been there before the journal began. @default false
   */
  readonly all?: boolean | undefined
}

/**
 * Paths that the journal has touched where something else is now than it left, in path order: kind, content, target, and permission bits
 * that the journal knows. What was asked and never answered, as where a process was killed, may have been done or not.
 *
 * @since 0.1.0
 */
export const drift: (
  journal: Files,
  actual: Algebra,
  options?: DriftOptions
) => Effect.Effect<ReadonlyArray<Drift>, JournalError | NotRecorded | FsError> = (journal, actual, options) =>
  promoted("drift", Drifting.drift(journal, actual, options))

/**
 * What is taken back, and from where on.
 *
 * @since 0.1.0
 */
export interface UndoOptions {
  /** What has changed after this position is taken back; 0 is everything. */
  readonly to: number
  /** At one of these, or below. @default all */
  readonly paths?: ReadonlyArray<string> | undefined
  /** Answer what would change, and change nothing. @default false */
  readonly dryRun?: boolean | undefined
}

/**
 * Gives every path touched after the position what it was then: kind, content, target, and permission bits and times that were set, where
 * the journal tells the former ones. All or nothing, whatever fails and whoever interrupts. Answers what has changed, in path order.
 *
 * Fails with Conflict, before anything is changed, where content or permission bits are no longer what the last entry left; with
 * NotRecorded where no entry tells what was there; and as writing and deleting do.
 *
 * @since 0.1.0
 */
export const undo: (
  journal: Files,
  fs: Algebra,
  options: UndoOptions
) => Effect.Effect<ReadonlyArray<TreeChange>, JournalError | NotRecorded | FsError> = (journal, fs, options) =>
  promoted("undo", Undo.undo(journal, fs, options))

/**
 * Tells every change that was asked for, when it was answered, and at the end those that never were. A change that was prepared in hidden
 * names, as an undo or a restore prepares several files, is told as what it did to the names that listings show.
 *
 * @since 0.1.0
 */
export const changes: (journal: Files, filter?: Filter) => Stream.Stream<Change, JournalError> = Changes.changes
