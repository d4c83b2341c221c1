/**
 * How far a capture has come: first files are counted, then those are read that may have changed.
 *
 * @since 0.1.0
 */
export interface SnapshotProgress {
  readonly phase: "counting" | "reading"
  readonly files: number
  readonly bytes: number
  /** What there is to read, once that is known. */
  readonly totalBytes?: number | undefined
}
