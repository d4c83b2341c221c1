/** What a layer of snapshots may be told. */
import type { SnapshotProgress } from "./progress.ts"

/** @since 0.1.0 */
export interface Retention {
  /** The newest so many are kept. @default all */
  readonly maxSnapshots?: number | undefined
  /** Milliseconds: what is older goes. The newest stays. @default any age */
  readonly maxAge?: number | undefined
  /** Of the whole store: the oldest go until it holds no more. The newest stays. @default any size */
  readonly maxBytes?: number | undefined
}

/** @since 0.1.0 */
export interface LayerOptions {
  /** A `.git` at the root is captured and restored like everything else, or left alone. @default "include" */
  readonly git?: "include" | "exclude" | undefined
  /** More files, or more bytes in them, than this: SnapshotError `budget`, before anything is kept. @default 1,000,000 */
  readonly maxFiles?: number | undefined
  /** Bytes of all files. @default 64 GiB */
  readonly maxBytes?: number | undefined
  /** Capture even the whole machine or a home directory. @default false */
  readonly anyRoot?: boolean | undefined
  readonly retention?: Retention | undefined
  /** Told of captures and restores as they go on. */
  readonly onProgress?: ((progress: SnapshotProgress) => void) | undefined
}
