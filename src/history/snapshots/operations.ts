import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { SnapshotError, SnapshotRestoreError } from "../errors.ts"
import { Change } from "../tree.ts"
import type { MergeConflicts, MergeOptions, MergeResult } from "./fork.ts"
import type { Stats } from "./strategy.ts"
import { FilesystemSnapshot } from "./value.ts"

/**
 * The label and the limits of a snapshot.
 *
 * @since 0.1.0
 */
export interface SnapshotOptions {
  /** A one-line description for users. */
  readonly tag?: string | undefined
  /** The name of the tool whose call follows the snapshot. `callId` is the id of the call. */
  readonly tool?: string | undefined
  readonly callId?: string | undefined
  /**
   * The largest number of files. A larger tree fails with SnapshotError `budget`. Snapshots in memory have no such limit.
   *
   * @default the limit of the layer
   */
  readonly maxFiles?: number | undefined
  /**
   * The largest total size of all files in bytes. A larger tree fails with SnapshotError `budget`. Snapshots in memory have no
   * such limit.
   *
   * @default the limit of the layer
   */
  readonly maxBytes?: number | undefined
}

/** The options of a snapshot, with an internal option for transactions. */
export interface TransactionSnapshotOptions extends SnapshotOptions {
  /**
   * True if the snapshot belongs to a running transaction. `list` and retention ignore such a snapshot, and `forget` removes
   * it.
   *
   * @default false
   */
  readonly isPassing?: boolean | undefined
}

/**
 * The scope of a restore and its safety options.
 *
 * @since 0.1.0
 */
export interface RestoreOptions {
  /**
   * The paths to restore, with everything below them. Entries at these paths that the snapshot does not contain are removed.
   *
   * @default the whole tree
   */
  readonly paths?: ReadonlyArray<string> | undefined
  /** True to return the changes without making them. @default false */
  readonly dryRun?: boolean | undefined
  /**
   * True to take a snapshot of the current tree first. This snapshot stays if the restore fails, and is removed if the
   * restore changes nothing.
   *
   * @default false
   */
  readonly safety?: boolean | undefined
  /**
   * True to scan the tree again after the restore, and to fail if the tree differs from the snapshot. Ignored in memory.
   *
   * @default false
   */
  readonly verify?: boolean | undefined
}

/**
 * The result of a restore.
 *
 * @since 0.1.0
 */
export interface RestoreResult {
  /** The changes in path order, including changes of directories. */
  readonly changes: ReadonlyArray<Change>
  /** The snapshot of the tree before the restore. Present if `safety` was set and the restore changed something. */
  readonly safety?: FilesystemSnapshot
}

/** @since 0.1.0 */
export const RestoreResult = Schema.Struct({
  changes: Schema.Array(Change),
  safety: Schema.optionalKey(FilesystemSnapshot)
})

/**
 * The statistics of one snapshot.
 *
 * @since 0.1.0
 */
export interface Details {
  readonly snapshot: FilesystemSnapshot
  /** The number of files and symlinks. `bytes` is their total size in bytes. */
  readonly files: number
  readonly bytes: number
  /**
   * The number of files that changed since the previous snapshot. The first snapshot counts all its files. `undefined` if the
   * previous snapshot was forgotten.
   */
  readonly filesChanged?: number | undefined
  /**
   * The numbers of added and removed lines. `undefined` for the first snapshot, if `filesChanged` is `undefined`, or if
   * counting would take too long.
   */
  readonly linesAdded?: number | undefined
  readonly linesRemoved?: number | undefined
  readonly tool?: string | undefined
  readonly callId?: string | undefined
  /** The number of FIFOs, sockets and devices, which were not captured. Absent if there are none. */
  readonly skipped?: number | undefined
}

/**
 * The operations on snapshots.
 *
 * @since 0.1.0
 */
export interface Operations {
  /**
   * Takes a snapshot. Fails with SnapshotError `budget` for a tree that exceeds the limits, and with `refused` for a label
   * that is not one line of at most 1,000 characters.
   */
  readonly snapshot: (options?: SnapshotOptions) => Effect.Effect<FilesystemSnapshot, SnapshotError>
  /** Restores the whole tree, or only `paths`. After a failure nothing has changed, except when `verify` fails. */
  readonly restore: (
    snapshot: FilesystemSnapshot,
    options?: RestoreOptions
  ) => Effect.Effect<RestoreResult, SnapshotRestoreError>
  /** Returns the changes from one snapshot to another, in path order. @default to: the current files */
  readonly diff: (from: FilesystemSnapshot, to?: FilesystemSnapshot) => Effect.Effect<ReadonlyArray<Change>, SnapshotError>
  /** Returns the captured tree as a read-only Filesystem, for example to search or export it. */
  readonly view: (snapshot: FilesystemSnapshot) => Effect.Effect<Algebra, SnapshotError>
  /** The snapshots of this filesystem, in the order of creation. */
  readonly list: Effect.Effect<ReadonlyArray<FilesystemSnapshot>, SnapshotError>
  readonly forget: (snapshot: FilesystemSnapshot) => Effect.Effect<void, SnapshotError>
  /** Runs the effect inside `exclusively`. Restores the tree if the effect fails, dies or is interrupted. */
  readonly transaction: <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | SnapshotError | SnapshotRestoreError, R>
  /**
   * Runs the effect while no other caller can write. The effect itself may write. If the backend has no lock, only runs the
   * effect.
   *
   * @default no lock
   */
  readonly exclusively?: (<A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
  /**
   * Returns a writable filesystem that begins with the captured tree, and keeps changes in memory until they are merged or
   * discarded.
   */
  readonly fork: (snapshot: FilesystemSnapshot) => Effect.Effect<Algebra, SnapshotError>
  /**
   * Merges the changes of a fork into this filesystem: a three-way merge by lines that applies all changes or none.
   *
   * The fork must come from a snapshot of this service. By default, fails with MergeConflicts if both sides changed the same
   * entry, or the same or adjacent lines, differently.
   */
  readonly merge: (fork: Algebra, options?: MergeOptions) => Effect.Effect<MergeResult, SnapshotError | MergeConflicts>
  readonly details: (snapshot: FilesystemSnapshot) => Effect.Effect<Details, SnapshotError>
  readonly stats: Effect.Effect<Stats, SnapshotError>
  /** Frees the disk space of forgotten snapshots. Without this call the store frees the space from time to time. */
  readonly collect: Effect.Effect<void, SnapshotError>
}
