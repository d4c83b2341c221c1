/**
 * Functions on a recorded journal. The functions build the tree at any position, rerun the session on another backend, answer
 * calls from the recording, find drift, and undo changes. All functions read the journal as a stream and keep contents by
 * reference. Only `rerun` executes recorded requests, on the given filesystem.
 *
 * A change counts as made at the position of its answer. A journal of requests and answers does not show partial
 * changes of a failed call. `Journal.record` records each step, so its journal contains all changes.
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
import type { Entry, Scrivener } from "./model.ts"
import * as Changes from "./replay/changes.ts"
import type { ContentError } from "./replay/contents.ts"
import * as RecordedBackend from "./replay/recordedBackend.ts"
import * as Drifting from "./replay/drift.ts"
import { type Change, type Difference, type Drift, NotRecorded } from "./replay/values.ts"
import type { Filter } from "./replay/filter.ts"
import * as Rerun from "./replay/rerun.ts"
import * as Tree from "./replay/tree.ts"
import * as Undo from "./replay/undo.ts"

export { NotRecorded } from "./replay/values.ts"
export {
  /** @since 0.1.0 */
  type Filter,
  /** @since 0.1.0 */
  select
} from "./replay/filter.ts"
export type { Change, Difference, Drift, State } from "./replay/values.ts"

type Files = Scrivener<Entry>

/** Converts faults to errors, because the content is read outside the operations of a filesystem. */
const promoteFaults = <A>(
  operation: string,
  effect: Effect.Effect<A, ContentError>
): Effect.Effect<A, JournalError | NotRecorded | FsError> =>
  Effect.mapError(effect, (error) =>
    error instanceof JournalError || error instanceof NotRecorded ? error : promote(error, operation, FsPath.root)
  )

/**
 * The options of `tree`.
 *
 * @since 0.1.0
 */
export interface TreeOptions {
  /** The position of the last change to apply. 0 means the tree before the first entry. @default the end */
  readonly until?: number | undefined
  /**
   * The tree before the first entry of the journal. The base is only read, and must not change while the result is in use.
   *
   * @default the state that the entries reveal (`previous`, `removed`)
   */
  readonly base?: Algebra | undefined
  /** True if names that differ only in case are the same. Applies only without a base. @default false */
  readonly caseInsensitive?: boolean | undefined
}

/**
 * Returns the tree at a position as a new filesystem in memory. The tree has kinds, contents, link targets and the permissions
 * that the journal records, but no times. Fails with NotRecorded if a content depends on data that is in neither an entry nor
 * the base.
 *
 * @example
 * ```ts
 * const past = Effect.gen(function* () {
 *   const journal = yield* Journal.Journal
 *   yield* (yield* Journal.record()(fs)).write("a.txt", "one")
 *   return yield* (yield* Replay.tree(journal)).readString("a.txt")
 * })
 * yield* Effect.provide(past, Journal.layerMemory) // => "one"
 * ```
 * @category replaying
 * @since 0.1.0
 */
export const tree: (journal: Files, options?: TreeOptions) => Effect.Effect<Algebra, JournalError | NotRecorded | FsError> = (
  journal,
  options
) => promoteFaults("tree", Tree.tree(journal, options))

/**
 * The options of `rerun`.
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
 * Carries out the recorded requests on the given filesystem, including reads, one at a time in the order of their answers.
 * Returns the results that differ from the recorded results. Differences in times and permissions are ignored. Skips
 * requests without an answer. Skips chunked writes without their last chunk, because their content is unknown.
 *
 * @category replaying
 * @since 0.1.0
 */
export const rerun: (
  journal: Files,
  against: Algebra,
  options?: RerunOptions
) => Effect.Effect<ReadonlyArray<Difference>, JournalError> = Rerun.rerun

/**
 * The properties of the recorded filesystem, for `double`.
 *
 * @since 0.1.0
 */
export interface DoubleOptions {
  /** @default false */
  readonly caseInsensitive?: boolean | undefined
  /** The rules of the layer on which the journal was recorded. @default none */
  readonly rules?: Rules | undefined
}

/**
 * Returns a filesystem that answers from a journal of `Journal.record({ reads: true })`. The filesystem accesses no other
 * data. Each call gets its recorded answer. Repeated calls get their answers in the recorded order. A call that was not
 * recorded fails with Unavailable, and the error describes the call.
 *
 * @category replaying
 * @since 0.1.0
 */
export const double: (journal: Files, options?: DoubleOptions) => Effect.Effect<Algebra, JournalError> = (journal, options) =>
  Effect.map(RecordedBackend.makeRecordedBackend(journal, options), make)

/**
 * The options of `drift`.
 *
 * @since 0.1.0
 */
export interface DriftOptions {
  /** @default the end */
  readonly until?: number | undefined
  /** The paths to compare, each with everything below it. @default all */
  readonly paths?: ReadonlyArray<string> | undefined
  /**
   * True to also report entries that are not in the journal. If the journal knows the whole directory, the expected state of
   * such an entry is `nothing`. Otherwise the expected state is `unknown`, because the entry may be older than the journal.
   * @default false
   */
  readonly all?: boolean | undefined
}

/**
 * Returns the paths whose state differs from the last state in the journal, in path order. Compares the kind, the content, the
 * link target, and the permission bits that the journal knows. For a request without an answer, the old and the new state are
 * accepted.
 *
 * @category replaying
 * @since 0.1.0
 */
export const drift: (
  journal: Files,
  actual: Algebra,
  options?: DriftOptions
) => Effect.Effect<ReadonlyArray<Drift>, JournalError | NotRecorded | FsError> = (journal, actual, options) =>
  promoteFaults("drift", Drifting.drift(journal, actual, options))

/**
 * The options of `undo`.
 *
 * @since 0.1.0
 */
export interface UndoOptions {
  /** The position to return to. Later changes are undone. 0 undoes all changes. */
  readonly to: number
  /** The paths to restore, each with everything below it. @default all */
  readonly paths?: ReadonlyArray<string> | undefined
  /** True to return the changes without making them. @default false */
  readonly dryRun?: boolean | undefined
}

/**
 * Undoes the changes after the position `to`: each changed path gets the state that it had at this position. The state
 * is the kind, the content and the link target. Also restores changed permission bits and times if the journal knows
 * their former values. Undoes all changes or none, even after a failure or an interruption. Returns the changes in path
 * order.
 *
 * Fails with Conflict before any change if a content or permission bits differ from the result of the last entry, or if the
 * undo would remove an unrecorded entry. Fails with NotRecorded if no entry has the former state. Also fails with the errors of
 * writing and deleting.
 *
 * @category replaying
 * @since 0.1.0
 */
export const undo: (
  journal: Files,
  fs: Algebra,
  options: UndoOptions
) => Effect.Effect<ReadonlyArray<TreeChange>, JournalError | NotRecorded | FsError> = (journal, fs, options) =>
  promoteFaults("undo", Undo.undo(journal, fs, options))

/**
 * Emits the requested changes in the order of their answers, and then the requests without an answer. An undo or a restore of
 * several files stages its changes under hidden names. Such a change is reported by its effect on visible names.
 *
 * @category replaying
 * @since 0.1.0
 */
export const changes: (journal: Files, filter?: Filter) => Stream.Stream<Change, JournalError> = Changes.changes
