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
 * The facts about an archive that need only its manifest.
 *
 * @since 0.1.0
 */
export interface SnapshotInfo {
  readonly snapshotId: string
  /** The absolute path of the archive. */
  readonly archivePath: string
  /** The number of files and symlinks. */
  readonly fileCount: number
  /** The size of the content; `archiveBytes` is the size of the archive. */
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
 * The directory of the archives and the handling of duplicates.
 *
 * @since 0.1.0
 */
export interface Options {
  /**
   * The absolute path of the directory. The first snapshot creates it, for this user only.
   *
   * An existing directory must belong to this user, not be a symlink, not be writable by everybody, and lie outside the
   * root of every open filesystem.
   *
   * @default "fs-algebra-snapshots" in the system's temporary directory
   */
  readonly directory?: string | undefined
  /**
   * The handling of an earlier snapshot with the same id; `error` fails with SnapshotError `refused`.
   *
   * @default "replace"
   */
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
 * The operations of a SnapshotStore.
 *
 * An id is a text of at most 248 bytes without separators and control characters, and not of dots only. Making or
 * deleting a snapshot with another id fails with SnapshotError `refused`; all other operations treat it as unknown.
 *
 * @since 0.1.0
 */
export interface Operations {
  /** The filesystem that is captured and restored. */
  readonly filesystem: Algebra
  /** The absolute path of the directory, which may not exist yet. */
  readonly directory: string
  /** Writes an archive, replacing an earlier one with that id. A failure or an interruption keeps the earlier one. */
  readonly snapshot: (id: string) => Effect.Effect<SnapshotInfo, SnapshotError | ArchiveError | FsError>
  /**
   * Restores the tree and returns its number of files. A failure has changed nothing.
   *
   * Fails with SnapshotRestoreError: `unknown` if there is no such archive, `readOnly` unless both writing and deleting
   * are permitted.
   */
  readonly rollback: (id: string) => Effect.Effect<number, SnapshotRestoreError | ArchiveError | FsError>
  /** Restores the tree from any archive on this host. */
  readonly restore: (archivePath: string) => Effect.Effect<number, SnapshotRestoreError | ArchiveError | FsError>
  readonly get: (id: string) => Effect.Effect<SnapshotInfo | undefined>
  /** The snapshots in the order of creation. Invalid archives are left out. */
  readonly list: Effect.Effect<ReadonlyArray<SnapshotInfo>>
  /** Deletes a snapshot; returns whether there was one. */
  readonly delete: (id: string) => Effect.Effect<boolean, SnapshotError>
  /** Returns the manifest of the archive. */
  readonly manifest: (id: string) => Effect.Effect<Manifest | undefined, SnapshotError | ArchiveError>
  /** Returns the files of the archive in path order; none if there is no such snapshot. */
  readonly tree: (id: string) => Effect.Effect<ReadonlyArray<TreeEntry>, SnapshotError | ArchiveError>
  /** Returns the text of a file in the archive. */
  readonly file: (id: string, path: string) => Effect.Effect<string | undefined, SnapshotError | ArchiveError | FsError>
  /** Returns the content as a read-only Filesystem, for the scope. Fails with SnapshotError `unknown`. */
  readonly view: (id: string) => Effect.Effect<Algebra, SnapshotError | ArchiveError, Scope.Scope>
}
