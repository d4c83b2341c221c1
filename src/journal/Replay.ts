/**
 * Uses a recorded journal: builds the tree at any position, runs the session again on another backend, answers calls from the recording,
 * finds drift, and undoes changes. All functions read the journal as a stream and hold contents by reference. Only `rerun` executes
 * recorded requests, on the filesystem it is given.
 *
 * A change counts once it is answered, and at the time of its answer. A journal of requests and answers does not tell what a failed call
 * did. `Journal.record` writes each step as an entry, so its journal is complete.
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

/** Turns faults into errors, because the content is read outside of any operation of a filesystem. */
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
  /** The position of the last change to apply; 0 is the beginning. @default the end */
  readonly until?: number | undefined
  /**
   * The tree before the first entry of the journal. It is only read, and must not change while the result is in use.
   * @default the state that the entries reveal (`previous`, `removed`)
   */
  readonly base?: Algebra | undefined
  /** True if names that differ only in case are the same, if there is no base. @default false */
  readonly caseInsensitive?: boolean | undefined
}

/**
 * Returns the tree at a position as a new filesystem in memory. It has kinds, contents, link targets and the permissions that the journal
 * records, but no times. Fails with NotRecorded if a content depends on data that neither an entry nor the base has.
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
 * Carries out the recorded requests, including reads, on another filesystem, one at a time in the order of their answers. Returns the
 * results that differ from the recorded ones, except for times and permissions. Skips requests without an answer, and chunked writes
 * without their last chunk, whose content is not known.
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
  /** The rules that the layer's options gave when the journal was recorded. @default none */
  readonly rules?: Rules | undefined
}

/**
 * Returns a filesystem that answers from a journal of `Journal.record({ reads: true })` and touches nothing else. The same calls get the
 * same answers; repeated calls get them in the recorded order. A call that was not recorded fails with Unavailable, which describes the
 * call.
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
   * True to report entries that the journal has never touched. Such an entry is expected to be absent if the journal knows the whole
   * directory. Otherwise its expected state is `unknown`, since it may be older than the journal. @default false
   */
  readonly all?: boolean | undefined
}

/**
 * Returns the paths whose state differs from the last state in the journal, in path order. Compares the kind, content, link target, and the
 * permission bits that the journal knows. A request without an answer, for example of a killed process, may have been done or not.
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
  /** The position to return to. Later changes are undone; 0 undoes everything. */
  readonly to: number
  /** The paths to restore, each with everything below it. @default all */
  readonly paths?: ReadonlyArray<string> | undefined
  /** True to return the changes without making them. @default false */
  readonly dryRun?: boolean | undefined
}

/**
 * Restores every path that changed after the position to its state at that position: kind, content, link target, and the permission bits
 * and times that were set, if the journal knows the former ones. Undoes all or nothing, even on failure or interruption. Returns the
 * changes in path order.
 *
 * Fails with Conflict, before any change, if a content or permission bits differ from what the last entry left. Fails with NotRecorded if
 * no entry has the former state. Also fails as writing and deleting do.
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
 * Emits each requested change when its answer arrives, and at the end the requests without an answer. A change that was staged under hidden
 * names, as undo and restore do for several files, is reported by its effect on visible names.
 *
 * @category replaying
 * @since 0.1.0
 */
export const changes: (journal: Files, filter?: Filter) => Stream.Stream<Change, JournalError> = Changes.changes
