import type { WriteMode } from "../model/Entry.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { LimitsShape } from "../model/Limits.ts"

/** A write in one step, with checked arguments. */
export interface WritePlan {
  readonly mode: WriteMode
  readonly createParents: boolean
  /**
   * The version that the file must have, or `null` if the file must not exist. If the file differs, the write fails
   * with Conflict.
   */
  readonly ifMatch?: string | null | undefined
  /** True if the caller wants the version of the file afterwards. */
  readonly version: boolean
}

export interface Edit {
  readonly oldText: string
  readonly newText: string
  readonly match?: "unique" | "first" | "all" | undefined
}

/** An edit in one step, with checked arguments. */
export interface EditPlan {
  readonly ifMatch?: string | null | undefined
  readonly version: boolean
  readonly limits: LimitsShape
}

/** The result of an edit in one step. */
export interface Edited {
  readonly bytesWritten: number
  readonly replacements: number
  /** The unified diff without its two header lines; empty if nothing changed. */
  readonly hunks: string
  readonly version?: string | undefined
}

/** A removal in one step, with checked arguments. */
export interface RemovePlan {
  readonly recursive: boolean
  readonly missing: "fail" | "ignore"
  readonly ifMatch?: string | null | undefined
}

/** The creation of a directory in one step, with checked arguments. */
export interface MakeDirectoryPlan {
  readonly parents: boolean
  readonly existOk: boolean
}

/** A file or directory that does not exist yet. */
export interface NewEntry {
  readonly path: FsPath
  /** The content of a file; absent for a directory. */
  readonly bytes?: Uint8Array | undefined
  /** The permission bits. If absent, a new entry gets the default bits of this backend. */
  readonly mode?: number | undefined
}

/** A move in one step, with checked arguments. */
export interface MovePlan {
  readonly overwrite: boolean
  readonly createParents: boolean
}
