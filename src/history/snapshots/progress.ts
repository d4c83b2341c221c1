/**
 * How far a capture or restore has come: first files are counted, then those are read that may have changed.
 *
 * @since 0.1.0
 */
export interface SnapshotProgress {
  /** A restore counts and reads too, and then writes. */
  readonly phase: "counting" | "reading" | "writing"
  readonly files: number
  /** 0 while it is written. */
  readonly bytes: number
  /** What there is to read, once that is known. */
  readonly totalBytes?: number | undefined
  /** What there is to write. */
  readonly totalFiles?: number | undefined
}
