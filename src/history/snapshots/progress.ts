/**
 * The progress of a capture or restore: it counts all files, then reads those that may have changed.
 *
 * @since 0.1.0
 */
export interface SnapshotProgress {
  /** The current phase. A restore also counts and reads, and then writes. */
  readonly phase: "counting" | "reading" | "writing"
  readonly files: number
  /** Bytes read; 0 in the phase `writing`. */
  readonly bytes: number
  /** The total bytes to read, once known. */
  readonly totalBytes?: number | undefined
  /** The total files to write. */
  readonly totalFiles?: number | undefined
}
