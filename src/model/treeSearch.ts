/** The messages between a search and the processes that walk a tree, match its names and search its files. */
import type { Kind } from "./Entry.ts"
import type { PackedMatches, Query } from "./search.ts"

/** An ignore file above the base of a search. `names` are the path segments from its directory to the base. */
export interface IgnoreFile {
  readonly bytes: Uint8Array
  readonly names: ReadonlyArray<string>
}

/** A search in a form that can be sent to a process. All names are case-sensitive. */
export interface TreeSearch {
  readonly include: { readonly patterns: ReadonlyArray<string>; readonly dialect: "path" | "fnmatch" | undefined } | undefined
  /** The excluded patterns, which follow the rules of ignore files. */
  readonly exclude: ReadonlyArray<string> | undefined
  readonly ignore:
    | { readonly git: ReadonlyArray<IgnoreFile>; readonly own: ReadonlyArray<IgnoreFile>; readonly ignoresEverything: boolean }
    | undefined
  readonly kinds: ReadonlyArray<Kind>
  readonly maxDepth: number
  /** The path from which results are needed. A directory whose entries all sort before this path is not entered. */
  readonly from: string | undefined
  /** The path of the base, with which the paths of results begin. */
  readonly basePath: string
  readonly query: Query | undefined
}

/** The place of a search on the host. */
export interface TreePlace {
  /** The absolute path of the base, without symlinks. */
  readonly path: string
  readonly device: number
  readonly inode: number
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
      /** The amount of work after which the job ends. A directory, eight entries and a searched file each count as 1. */
      readonly budget: number
    }

/**
 * The bits of an entry's code. The two bits of `kind` are 0 for a file, 1 for a directory, 2 for a symlink, 3 for others.
 *
 * An entry with `isCount` stands for successive searched files without a match. Its name is the number of these files.
 */
export const codes = { kind: 3, isResult: 4, isEntered: 8, isIgnored: 16, isCount: 32 } as const

/** The states of a directory in a report: `left` is not visited, `decided` is visited, the caller must read `unusual`. */
export const states = { left: 0, decided: 1, unusual: 2 } as const

/**
 * The answer to a job.
 *
 * The report contains the directories of the job and the entered directories below them, in walk order. Each directory
 * comes before its subdirectories. Entries that are neither results, nor ignored, nor directories are omitted.
 */
export interface TreeReport {
  readonly ticket: number
  /** Three numbers per directory: its state, its number of reported entries, and its number of files in `matches`. */
  readonly directories: Int32Array
  /** The codes of all reported entries, in walk order per directory. */
  readonly codes: Uint8Array
  /** The names of all reported entries, joined by "/". */
  readonly names: string
  /** The results of the searched files that have matches or were skipped. */
  readonly matches: PackedMatches | undefined
}

/** The ticket of a report that shows progress. The process is still working on its job. */
export const progressTicket = 0
