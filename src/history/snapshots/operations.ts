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
  /** A line of text for people. */
  readonly tag?: string | undefined
  /** The tool that is about to change something; `callId` identifies the call. */
  readonly tool?: string | undefined
  readonly callId?: string | undefined
  /** The most files to capture; beyond it, SnapshotError `budget`. Not in memory. @default that of the layer */
  readonly maxFiles?: number | undefined
  /** The most bytes in all files; beyond it, SnapshotError `budget`. Not in memory. @default that of the layer */
  readonly maxBytes?: number | undefined
}

/**
 * The options of a snapshot that may belong to a running transaction. Such a snapshot is not listed, ignored by
 * retention, and removed by `forget`.
 */
export interface TransactionSnapshotOptions extends SnapshotOptions {
  /** @default false */
  readonly isPassing?: boolean | undefined
}

/**
 * The scope of a restore and its safety options.
 *
 * @since 0.1.0
 */
export interface RestoreOptions {
  /**
   * The paths to restore, with everything below; entries that the snapshot lacks are removed.
   *
   * @default the whole tree
   */
  readonly paths?: ReadonlyArray<string> | undefined
  /** Set to return the changes without making them. @default false */
  readonly dryRun?: boolean | undefined
  /**
   * Set to take a snapshot of the current state first. The snapshot is kept if the restore fails, and removed if nothing
   * differs.
   *
   * @default false
   */
  readonly safety?: boolean | undefined
  /** Set to scan the tree again afterwards and fail if it differs from the snapshot. @default false */
  readonly verify?: boolean | undefined
}

/**
 * The result of a restore.
 *
 * @since 0.1.0
 */
export interface RestoreResult {
  /** The changes in path order, directories included. */
  readonly changes: ReadonlyArray<Change>
  /** The snapshot of the previous state, if `safety` was set and something changed. */
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
  /** The number of files and symlinks, and their bytes. */
  readonly files: number
  readonly bytes: number
  /**
   * Files changed since the previous snapshot; all files for the first one. `undefined` if the previous one is
   * forgotten.
   */
  readonly filesChanged?: number | undefined
  /** The changed lines. Also `undefined` if so much changed that counting lines would take too long. */
  readonly linesAdded?: number | undefined
  readonly linesRemoved?: number | undefined
  readonly tool?: string | undefined
  readonly callId?: string | undefined
  /** The number of FIFOs, sockets and devices that were not captured; absent if there were none. */
  readonly skipped?: number | undefined
}

/**
 * The operations on snapshots.
 *
 * @since 0.1.0
 */
export interface Operations {
  /**
   * Takes a snapshot. Fails with SnapshotError: `budget` over the layer's limits, `refused` for a root that must not be
   * captured.
   */
  readonly snapshot: (options?: SnapshotOptions) => Effect.Effect<FilesystemSnapshot, SnapshotError>
  /** Restores the whole tree, or only `paths`. A failure has changed nothing, except a failure of `verify`. */
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
  /** Runs the effect without other writers, and restores the tree if the effect fails, dies or is interrupted. */
  readonly transaction: <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | SnapshotError | SnapshotRestoreError, R>
  /**
   * Runs the effect without other writers; calls of the effect itself may write. Absent if the backend has no lock.
   *
   * @default no lock
   */
  readonly exclusively?: (<A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
  /**
   * Returns a writable filesystem that starts as the captured tree. Its changes stay in memory until they are merged or
   * dropped.
   */
  readonly fork: (snapshot: FilesystemSnapshot) => Effect.Effect<Algebra, SnapshotError>
  /**
   * Merges the changes of a fork of one of these snapshots: three-way, files by lines, all or nothing.
   *
   * Fails with MergeConflicts if both sides changed the same place differently.
   */
  readonly merge: (fork: Algebra, options?: MergeOptions) => Effect.Effect<MergeResult, SnapshotError | MergeConflicts>
  readonly details: (snapshot: FilesystemSnapshot) => Effect.Effect<Details, SnapshotError>
  readonly stats: Effect.Effect<Stats, SnapshotError>
  /** Frees the space of forgotten snapshots. Otherwise this happens from time to time. */
  readonly collect: Effect.Effect<void, SnapshotError>
}
