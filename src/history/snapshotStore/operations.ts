/** What the store does, as callers see it. */
import type * as DateTime from "effect/DateTime"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { FsError } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { ArchiveError, SnapshotError, SnapshotRestoreError } from "../errors.ts"
import type { Manifest } from "../zip/manifest.ts"

/**
 * What is known of an archive without opening it further.
 *
 * @since 0.1.0
 */
export interface SnapshotInfo {
  readonly snapshotId: string
  /** Absolute. */
  readonly archivePath: string
  /** Files and links. */
  readonly fileCount: number
  /** Of the content; the archive's own size is `archiveBytes`. */
  readonly totalBytes: number
  readonly archiveBytes: number
  readonly createdAt: DateTime.Utc
}
/** @since 0.1.0 */
export const SnapshotInfo = Schema.Struct({
  snapshotId: Schema.String,
  archivePath: Schema.String,
  fileCount: Schema.Int,
  totalBytes: Schema.Int,
  archiveBytes: Schema.Int,
  createdAt: Schema.DateTimeUtc
})

/**
 * Where archives are kept.
 *
 * @since 0.1.0
 */
export interface Options {
  /**
   * Absolute; made at the first snapshot, for this user alone. What is there must be a directory of this user's own, no link, in which
   * not everybody may write, and outside the root of every filesystem that is open.
   *
   * @default "fs-algebra-snapshots" in the system's temporary directory
   */
  readonly directory?: string | undefined
  /** What becomes of an earlier snapshot with the same id; `error` is SnapshotError `refused`. @default "replace" */
  readonly onDuplicate?: "replace" | "error" | undefined
}

/**
 * A file in an archive.
 *
 * @since 0.1.0
 */
export interface TreeEntry {
  readonly path: FsPath
  readonly sizeBytes: number
}

/**
 * An id is a text of at most 248 bytes without separators and control characters, and not of dots alone. Where a snapshot is made or
 * deleted any other is SnapshotError `refused`; everywhere else there is no such snapshot.
 *
 * @since 0.1.0
 */
export interface Operations {
  /** What is captured and restored. */
  readonly filesystem: Algebra
  /** Absolute. It need not be there yet. */
  readonly directory: string
  /** Writes the archive, in place of an earlier one of that id. What fails or is interrupted leaves the earlier one. */
  readonly snapshot: (id: string) => Effect.Effect<SnapshotInfo, SnapshotError | ArchiveError | FsError>
  /**
   * Makes the tree what it was, and answers its number of files. What fails has changed nothing. Fails with SnapshotRestoreError
   * `unknown` where there is no such archive, `readOnly` unless both writing and deleting are permitted.
   */
  readonly rollback: (id: string) => Effect.Effect<number, SnapshotRestoreError | ArchiveError | FsError>
  /** The same from any archive on this machine. */
  readonly restore: (archivePath: string) => Effect.Effect<number, SnapshotRestoreError | ArchiveError | FsError>
  readonly get: (id: string) => Effect.Effect<SnapshotInfo | undefined>
  /** In the order in which they were made. What is no archive is passed over. */
  readonly list: Effect.Effect<ReadonlyArray<SnapshotInfo>>
  /** Whether there was one. */
  readonly delete: (id: string) => Effect.Effect<boolean, SnapshotError>
  /** What the archive says of itself. */
  readonly manifest: (id: string) => Effect.Effect<Manifest | undefined, SnapshotError | ArchiveError>
  /** Its files, in path order; none where there is no such snapshot. */
  readonly tree: (id: string) => Effect.Effect<ReadonlyArray<TreeEntry>, SnapshotError | ArchiveError>
  /** The text of a file in it. */
  readonly file: (id: string, path: string) => Effect.Effect<string | undefined, SnapshotError | ArchiveError | FsError>
  /** What is in it as a read-only Filesystem, until the scope ends. Fails with SnapshotError `unknown`. */
  readonly view: (id: string) => Effect.Effect<Algebra, SnapshotError | ArchiveError, Scope.Scope>
}
