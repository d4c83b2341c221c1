import type { SnapshotProgress } from "./progress.ts"

/**
 * The rules by which old snapshots are removed.
 *
 * @since 0.1.0
 */
export interface Retention {
  /** The number of newest snapshots to keep. @default all */
  readonly maxSnapshots?: number | undefined
  /** The maximum age in milliseconds. The newest snapshot always stays. @default any age */
  readonly maxAge?: number | undefined
  /**
   * The maximum size of the whole store in bytes; the oldest snapshots are removed. The newest always stays. Only for
   * git.
   *
   * @default any size
   */
  readonly maxBytes?: number | undefined
}

/**
 * The options of a snapshot layer. Each strategy uses a part of them:
 *
 * - git uses all of them
 * - archives ignore `onProgress` and `retention.maxBytes`
 * - memory uses `git`, `retention.maxSnapshots` and `retention.maxAge`
 *
 * @since 0.1.0
 */
export interface LayerOptions {
  /** The treatment of a `.git` at the root: captured and restored like every entry, or left alone. @default "include" */
  readonly git?: "include" | "exclude" | undefined
  /**
   * The most files to capture; beyond it, SnapshotError `budget` before anything is written. An archive counts
   * directories too. Not in memory.
   *
   * @default 1,000,000; of archives Limits.maxArchiveEntries
   */
  readonly maxFiles?: number | undefined
  /**
   * The most bytes in all files; beyond it, SnapshotError `budget`. Not in memory.
   *
   * @default 64 GiB; of archives Limits.maxArchiveBytes
   */
  readonly maxBytes?: number | undefined
  /** Set to allow capturing the whole machine or a home directory. @default false */
  readonly anyRoot?: boolean | undefined
  readonly retention?: Retention | undefined
  /** Called during captures and restores. Only for git. */
  readonly onProgress?: ((progress: SnapshotProgress) => void) | undefined
}
