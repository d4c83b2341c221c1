/** Whole changes, as a caller asked for them: what accelerations are given that make one step of many. */
import type { WriteMode } from "../model/Entry.ts"
import type { LimitsShape } from "../model/Limits.ts"

/** A write in one step, its arguments checked. */
export interface WritePlan {
  readonly mode: WriteMode
  readonly createParents: boolean
  /** Conflict unless the file has this version; `null`: unless there is none. */
  readonly ifMatch?: string | null | undefined
  /** The version of the file afterwards is asked for. */
  readonly version: boolean
}

export interface Edit {
  readonly oldText: string
  readonly newText: string
  readonly match?: "unique" | "first" | "all" | undefined
}

/** An edit in one step, its arguments checked. */
export interface EditPlan {
  readonly ifMatch?: string | null | undefined
  readonly version: boolean
  /** Of the caller. */
  readonly limits: LimitsShape
}

/** What an edit in one step has done. */
export interface Edited {
  readonly bytesWritten: number
  readonly replacements: number
  /** The unified diff without its two lines of names; empty where nothing changed. */
  readonly hunks: string
  /** Where it was asked for. */
  readonly version?: string | undefined
}

/** A removal in one step, its arguments checked. */
export interface RemovePlan {
  readonly recursive: boolean
  readonly missing: "fail" | "ignore"
  readonly ifMatch?: string | null | undefined
}

/** The making of a directory in one step, its arguments checked. */
export interface MakeDirectoryPlan {
  readonly parents: boolean
  readonly existOk: boolean
}

/** A move in one step, its arguments checked. */
export interface MovePlan {
  readonly overwrite: boolean
  readonly createParents: boolean
}
