import { invalidArgument } from "../model/Fault.ts"
import type { Kind } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { LimitsShape } from "../model/Limits.ts"

/**
 * The options that glob and grep share.
 *
 * @since 0.1.0
 */
export interface SearchOptions {
  /**
   * The directory in which the search begins, and to which patterns are relative. For grep, `path` may also be a file. The
   * search fails with NotFound if `path` is missing.
   * @default "."
   */
  readonly path?: string | undefined
  /**
   * The globs of entries to exclude. As in ignore files, later globs take precedence, `!` re-includes an entry, and an
   * excluded directory excludes its contents.
   */
  readonly exclude?: string | ReadonlyArray<string> | undefined
  /**
   * True to apply the .gitignore and .ignore files from the root of the filesystem down, and to skip `.git`.
   * @default false
   */
  readonly gitignore?: boolean | undefined
  /** The cursor after which the search continues: the `next` of a previous result. */
  readonly after?: string | undefined
  /**
   * Receives each skipped file or directory with the reason. A stream reports skipped entries only to this function; a
   * result also counts them.
   */
  readonly onSkip?: ((path: string, why: Why) => void) | undefined
}

/**
 * The options of a glob.
 *
 * @since 0.1.0
 */
export interface GlobOptions extends SearchOptions {
  /**
   * The meaning of patterns. `path`: patterns with a slash are anchored at the base; patterns without a slash match at
   * any depth. `fnmatch`: `*` also matches "/".
   * @default "path"
   */
  readonly dialect?: "path" | "fnmatch" | undefined
  /** The maximum number of matches; 0 returns no matches. @default Limits.maxGlobMatches, and no bound in streams */
  readonly maxMatches?: number | undefined
  /** The kinds of entries that match. @default ["file"] */
  readonly kinds?: ReadonlyArray<Kind> | undefined
  /** True to return the sizes of files, in bytes. @default false */
  readonly sizes?: boolean | undefined
}

/**
 * The options of a walk.
 *
 * @since 0.1.0
 */
export interface WalkOptions extends Omit<SearchOptions, "path" | "after"> {
  /** The number of levels below the base; 1 means only the entries of the base. @default all */
  readonly maxDepth?: number | undefined
  /** True to return the sizes of files, in bytes. @default false */
  readonly sizes?: boolean | undefined
}

/**
 * The options of a grep.
 *
 * @since 0.1.0
 */
export interface GrepOptions extends SearchOptions {
  /** The globs of the files to search. @default every file */
  readonly glob?: string | ReadonlyArray<string> | undefined
  /** The maximum number of matches; 0 returns no matches. @default Limits.maxGrepMatches, and no bound in streams */
  readonly maxMatches?: number | undefined
  /** True to search for the pattern as literal text. @default false */
  readonly literal?: boolean | undefined
  /** True to match letters in either case. @default false */
  readonly ignoreCase?: boolean | undefined
  /**
   * True to find only matches with no ASCII letter, digit or underscore directly before or after them.
   * @default false
   */
  readonly wholeWord?: boolean | undefined
  /** The number of context lines before and after each match, or [before, after]; at most 1,000. @default 0 */
  readonly context?: number | readonly [before: number, after: number] | undefined
  /** The maximum size of a searched file, in bytes. Larger files count as `tooLarge`. @default no bound */
  readonly maxFileSize?: number | undefined
  /** True if a match may span lines. If so, the result contains the line in which the match starts. @default false */
  readonly multiline?: boolean | undefined
}

export type Why = "ignored" | "binary" | "tooLarge" | "unreadable"

export interface PlanContext {
  readonly limits: LimitsShape
  readonly caseSensitive: boolean
}

export const checkCount = (
  argument: string,
  value: unknown,
  otherwise: number,
  maximum: number = Number.POSITIVE_INFINITY
): number | Fault => {
  if (value === undefined) return otherwise
  if (typeof value !== "number" || !(value >= 0) || !(Number.isInteger(value) || value === Number.POSITIVE_INFINITY)) {
    return invalidArgument(argument, "it must be a whole number, 0 or more")
  }
  return value > maximum ? invalidArgument(argument, `it must be at most ${maximum}`) : value
}

/**
 * The maximum number of context lines. Each match has its own copy of its context lines, so many matches multiply the
 * text.
 */
export const maxContext = 1000

export const list = (value: string | ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  value === undefined ? [] : Array.isArray(value) ? (value as ReadonlyArray<string>) : [value as string]
