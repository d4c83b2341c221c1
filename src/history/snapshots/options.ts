/** What a layer of snapshots may be told. Each way of keeping them heeds what it can; what it passes over is said with the option. */
import type { SnapshotProgress } from "./progress.ts"

/**
 * What is kept no longer than for a while, or up to a size.
 *
 * @since 0.1.0
 */
export interface Retention {
  /** The newest so many are kept. @default all */
  readonly maxSnapshots?: number | undefined
  /** Milliseconds: what is older goes. The newest stays. @default any age */
  readonly maxAge?: number | undefined
  /** Of the whole store: the oldest go until it holds no more. The newest stays. In git alone. @default any size */
  readonly maxBytes?: number | undefined
}

/**
 * - git heeds all of them
 * - archives pass over `onProgress` and `retention.maxBytes`
 * - memory heeds `git`, `retention.maxSnapshots` and `retention.maxAge`
 *
 * @since 0.1.0
 */
export interface LayerOptions {
  /** A `.git` at the root is captured and restored like everything else, or left alone. @default "include" */
  readonly git?: "include" | "exclude" | undefined
  /**
   * Of more files than this none is kept: SnapshotError `budget`, before anything is written. An archive counts directories too. Not
   * in memory.
   *
   * @default 1,000,000; of archives Limits.maxArchiveEntries
   */
  readonly maxFiles?: number | undefined
  /** The same of more bytes in all files. Not in memory. @default 64 GiB; of archives Limits.maxArchiveBytes */
  readonly maxBytes?: number | undefined
  /** Capture even the whole machine or a home directory. @default false */
  readonly anyRoot?: boolean | undefined
  readonly retention?: Retention | undefined
  /** Told of captures and restores as they go on. In git alone. */
  readonly onProgress?: ((progress: SnapshotProgress) => void) | undefined
}
