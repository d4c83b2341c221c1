/** The messages between a search and the processes that walk a tree, decide about its names and search its files. */
import type { Kind } from "./Entry.ts"
import type { PackedMatches, Query } from "./search.ts"

/** An ignore file above the base of a search. `names` lead from its directory to the base. */
export interface IgnoreFile {
  readonly bytes: Uint8Array
  readonly names: ReadonlyArray<string>
}

/** A search as data. All names are compared with their case. */
export interface TreeSearch {
  readonly include: { readonly patterns: ReadonlyArray<string>; readonly dialect: "path" | "fnmatch" | undefined } | undefined
  /** Patterns with the rules of ignore files. */
  readonly exclude: ReadonlyArray<string> | undefined
  readonly ignore:
    | { readonly git: ReadonlyArray<IgnoreFile>; readonly own: ReadonlyArray<IgnoreFile>; readonly ignoresEverything: boolean }
    | undefined
  readonly kinds: ReadonlyArray<Kind>
  readonly maxDepth: number
  /** Directories whose entries all sort before this path are not entered. */
  readonly from: string | undefined
  /** The path of the base, with which results begin. */
  readonly basePath: string
  readonly query: Query | undefined
}

/** The place of a search on the host. */
export interface TreePlace {
  /** The real, absolute path of the base. */
  readonly path: string
  readonly device: number
  readonly inode: number
  readonly refuseHardlinks: boolean
}

export type Order =
  | { readonly _tag: "Begin"; readonly search: number; readonly tree: TreeSearch; readonly refuseHardlinks: boolean }
  | { readonly _tag: "End"; readonly search: number }
  | {
      readonly _tag: "Visit"
      readonly search: number
      readonly ticket: number
      readonly place: TreePlace
      /** Paths relative to the base, joined by "\n"; the base is "". */
      readonly directories: string
      /** The work after which the job ends: about the number of directories, plus an eighth of their entries. */
      readonly budget: number
    }

/** Bits of an entry's code, above its kind: 0 file, 1 directory, 2 symlink, 3 other. */
export const codes = { kind: 3, isResult: 4, isEntered: 8, isIgnored: 16 } as const

/** The state of a directory in a report: not visited, decided, or left to the caller because it is unusual. */
export const states = { left: 0, decided: 1, unusual: 2 } as const

/**
 * The answer to a job.
 *
 * The directories of the job and those entered below them follow in walk order, each before its subdirectories.
 */
export interface TreeReport {
  readonly ticket: number
  /** Per directory: its state, its number of entries, and its number of searched files. */
  readonly directories: Int32Array
  /** The codes of all entries, in walk order per directory. */
  readonly codes: Uint8Array
  /** The names of all entries, joined by "/". */
  readonly names: string
  /** The results of all searched files. */
  readonly matches: PackedMatches | undefined
}

/** A report with this ticket says that the process works and has not finished its job. */
export const progressTicket = 0
