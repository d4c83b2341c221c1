/** What the service does, as callers see it. */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { SnapshotError, SnapshotRestoreError } from "../errors.ts"
import { Change } from "../tree.ts"
import type { MergeConflicts, MergeOptions, MergeResult } from "./fork.ts"
import type { Stats } from "./strategy.ts"
import { FilesystemSnapshot } from "./value.ts"

/**
 * What is remembered with a snapshot.
 *
 * @since 0.1.0
 */
export interface SnapshotOptions {
  /** A line of text for people. */
  readonly tag?: string | undefined
  /** The tool that is about to change something, and its call. */
  readonly tool?: string | undefined
  readonly callId?: string | undefined
  /** Of more files than this none is kept: SnapshotError `budget`. Not in memory. @default that of the layer */
  readonly maxFiles?: number | undefined
  /** The same of more bytes in all files. Not in memory. @default that of the layer */
  readonly maxBytes?: number | undefined
}

/**
 * How much a restore brings back, and whether it does.
 *
 * @since 0.1.0
 */
export interface RestoreOptions {
  /** Only what is at these paths and below: what was not there then goes. @default the whole tree */
  readonly paths?: ReadonlyArray<string> | undefined
  /** Answer what would change, and change nothing. @default false */
  readonly dryRun?: boolean | undefined
  /** Take a snapshot of what is there first. It stays where the restore fails, and goes where nothing differs. @default false */
  readonly safety?: boolean | undefined
  /** Look at everything again afterwards, and fail where it is not what was captured. @default false */
  readonly verify?: boolean | undefined
}

/**
 * What a restore has changed.
 *
 * @since 0.1.0
 */
export interface RestoreResult {
  /** In path order; directories are entries too. */
  readonly changes: ReadonlyArray<Change>
  /** Of what was there before, where that was asked for and something has changed. */
  readonly safety?: FilesystemSnapshot
}

/** @since 0.1.0 */
export const RestoreResult = Schema.Struct({
  changes: Schema.Array(Change),
  safety: Schema.optionalKey(FilesystemSnapshot)
})

/**
 * What is known of one snapshot.
 *
 * @since 0.1.0
 */
export interface Details {
  readonly snapshot: FilesystemSnapshot
  /** Files and links in it, and their bytes. */
  readonly files: number
  readonly bytes: number
  /** Since the snapshot before it, or of everything where it was the first; `undefined` where that one is forgotten. */
  readonly filesChanged?: number | undefined
  /** `undefined` also where so much has changed that counting lines would take too long. */
  readonly linesAdded?: number | undefined
  readonly linesRemoved?: number | undefined
  readonly tool?: string | undefined
  readonly callId?: string | undefined
  /** FIFOs, sockets and devices that were there, and are not in it; left out where there were none. */
  readonly skipped?: number | undefined
}

/**
 * What can be done with snapshots.
 *
 * @since 0.1.0
 */
export interface Operations {
  /** Fails with SnapshotError: `budget` over the limits of the layer, `refused` for a root that must not be captured. */
  readonly snapshot: (options?: SnapshotOptions) => Effect.Effect<FilesystemSnapshot, SnapshotError>
  /** The whole tree, or only what is under `paths`. What fails has changed nothing, unless it was `verify` that failed. */
  readonly restore: (
    snapshot: FilesystemSnapshot,
    options?: RestoreOptions
  ) => Effect.Effect<RestoreResult, SnapshotRestoreError>
  /** From one snapshot to another, in path order. @default to: what is there now */
  readonly diff: (from: FilesystemSnapshot, to?: FilesystemSnapshot) => Effect.Effect<ReadonlyArray<Change>, SnapshotError>
  /** The captured tree as a read-only Filesystem: glob it, grep it, export it. */
  readonly view: (snapshot: FilesystemSnapshot) => Effect.Effect<Algebra, SnapshotError>
  /** Of this filesystem, in the order in which they were taken. */
  readonly list: Effect.Effect<ReadonlyArray<FilesystemSnapshot>, SnapshotError>
  readonly forget: (snapshot: FilesystemSnapshot) => Effect.Effect<void, SnapshotError>
  /** Excludes other writers while it runs, and restores the tree when `effect` fails, dies or is interrupted. */
  readonly transaction: <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | SnapshotError | SnapshotRestoreError, R>
  /**
   * Runs the effect while nobody else changes the filesystem; its own calls go through. Left out where there is nothing to hold.
   * @default without excluding anybody
   */
  readonly exclusively?: (<A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
  /** A writable filesystem that begins as the captured tree. What it changes stays in memory, until it is merged or let go. */
  readonly fork: (snapshot: FilesystemSnapshot) => Effect.Effect<Algebra, SnapshotError>
  /**
   * Does here what has been done in a fork of one of these snapshots: three-way, files by lines, and all of it or nothing. Fails with
   * MergeConflicts where both have changed the same place, each in its own way.
   */
  readonly merge: (fork: Algebra, options?: MergeOptions) => Effect.Effect<MergeResult, SnapshotError | MergeConflicts>
  readonly details: (snapshot: FilesystemSnapshot) => Effect.Effect<Details, SnapshotError>
  readonly stats: Effect.Effect<Stats, SnapshotError>
  /** Gives back the space of what is forgotten, which otherwise happens now and then. */
  readonly collect: Effect.Effect<void, SnapshotError>
}
