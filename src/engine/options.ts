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
   * Base directory; patterns are relative to it. For grep also a single file. Fails with NotFound if it is missing.
   * @default "."
   */
  readonly path?: string | undefined
  /**
   * Globs of entries to exclude, with the rules of ignore files: later globs win, `!` re-includes, a directory includes
   * its contents.
   */
  readonly exclude?: string | ReadonlyArray<string> | undefined
  /** Honour .gitignore and .ignore files from the workspace root down, and skip `.git`. @default false */
  readonly gitignore?: boolean | undefined
  /** Continue strictly after a previous result's `next`. */
  readonly after?: string | undefined
  /**
   * Called for each skipped file or directory with the reason. Streams report skips only this way; results count them.
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
   * `path`: patterns with a slash are anchored at the base, patterns without one match at any depth. `fnmatch`: `*`
   * also matches "/". @default "path"
   */
  readonly dialect?: "path" | "fnmatch" | undefined
  /** The largest number of matches; 0 returns none. @default Limits.maxGlobMatches, and no bound in streams */
  readonly maxMatches?: number | undefined
  /** @default ["file"] */
  readonly kinds?: ReadonlyArray<Kind> | undefined
  /** @default false */
  readonly sizes?: boolean | undefined
}

/**
 * The options of a walk.
 *
 * @since 0.1.0
 */
export interface WalkOptions extends Omit<SearchOptions, "path" | "after"> {
  /** Levels below the base; 1 means only its entries. @default all */
  readonly maxDepth?: number | undefined
  /** @default false */
  readonly sizes?: boolean | undefined
}

/**
 * The options of a grep.
 *
 * @since 0.1.0
 */
export interface GrepOptions extends SearchOptions {
  /** Searches only files that match one of these globs. @default every file */
  readonly glob?: string | ReadonlyArray<string> | undefined
  /** The largest number of matches; 0 returns none. @default Limits.maxGrepMatches, and no bound in streams */
  readonly maxMatches?: number | undefined
  /** Takes the pattern as literal text. @default false */
  readonly literal?: boolean | undefined
  /** @default false */
  readonly ignoreCase?: boolean | undefined
  /** Requires that no ASCII letter, digit or underscore is next to a match. @default false */
  readonly wholeWord?: boolean | undefined
  /** Lines of context around each match, on both sides or as [before, after]; at most 1,000. @default 0 */
  readonly context?: number | readonly [before: number, after: number] | undefined
  /** The largest file to read, in bytes; larger files count as `tooLarge`. @default no bound */
  readonly maxFileSize?: number | undefined
  /** Lets matches span lines; the reported line is the one in which a match starts. @default false */
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

/** Each match has its own context lines, so all of them together multiply the text. */
export const maxContext = 1000

export const list = (value: string | ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  value === undefined ? [] : Array.isArray(value) ? (value as ReadonlyArray<string>) : [value as string]
