/** What the caller of a search may ask for, and the reading of the numbers in it. */
import type { Kind } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { LimitsShape } from "../model/Limits.ts"

/**
 * What a glob and a search have in common.
 *
 * @since 0.1.0
 */
export interface SearchOptions {
  /** Base directory; patterns are relative to it. For grep also a single file. NotFound where it is missing. @default "." */
  readonly path?: string | undefined
  /** Globs of what to leave out, as ignore rules are read: later ones win, `!` takes back, a directory goes with all in it. */
  readonly exclude?: string | ReadonlyArray<string> | undefined
  /** Honour .gitignore and .ignore files from the workspace root down, and skip `.git`. @default false */
  readonly gitignore?: boolean | undefined
  /** Continue strictly after a previous result's `next`. */
  readonly after?: string | undefined
  /** Called for each file or directory that is passed over, and why: the way streams tell what results count. */
  readonly onSkip?: ((path: string, why: Why) => void) | undefined
}

/**
 * What a glob looks through, and how much of it is answered.
 *
 * @since 0.1.0
 */
export interface GlobOptions extends SearchOptions {
  /** `path`: anchored rows, slash-less patterns match any depth. `fnmatch`: `*` crosses "/". @default "path" */
  readonly dialect?: "path" | "fnmatch" | undefined
  /** 0 is none. @default Limits.maxGlobMatches, and no bound in streams */
  readonly maxMatches?: number | undefined
  /** @default ["file"] */
  readonly kinds?: ReadonlyArray<Kind> | undefined
  /** @default false */
  readonly sizes?: boolean | undefined
}

/**
 * How far a walk goes, and what it leaves out.
 *
 * @since 0.1.0
 */
export interface WalkOptions extends Omit<SearchOptions, "path" | "after"> {
  /** Levels below the base: 1 is what stands in it. @default all */
  readonly maxDepth?: number | undefined
  /** @default false */
  readonly sizes?: boolean | undefined
}

/**
 * What a search looks through, how the pattern is read, and how much of it is answered.
 *
 * @since 0.1.0
 */
export interface GrepOptions extends SearchOptions {
  /** Only files that one of these globs matches. @default every file */
  readonly glob?: string | ReadonlyArray<string> | undefined
  /** 0 is none. @default Limits.maxGrepMatches, and no bound in streams */
  readonly maxMatches?: number | undefined
  /** The pattern is the text itself. @default false */
  readonly literal?: boolean | undefined
  /** @default false */
  readonly ignoreCase?: boolean | undefined
  /** Only matches with no letter of ASCII, digit or underscore next to them. @default false */
  readonly wholeWord?: boolean | undefined
  /** Lines around each match, on both sides or [before, after]; 1,000 at the most. @default 0 */
  readonly context?: number | readonly [before: number, after: number] | undefined
  /** Bytes; larger files are counted as `tooLarge` and not read. @default no bound */
  readonly maxFileSize?: number | undefined
  /** Matches may span lines; the line reported is the one in which a match starts. @default false */
  readonly multiline?: boolean | undefined
}

/** Why a search passed something over. */
export type Why = "ignored" | "binary" | "tooLarge" | "unreadable"

/** What a plan depends on beside its arguments. */
export interface PlanContext {
  readonly limits: LimitsShape
  readonly caseSensitive: boolean
}

export const invalid = (argument: string, detail: string): Fault => ({ _tag: "InvalidArgument", argument, detail })

export const isFault = (value: unknown): value is Fault => typeof value === "object" && value !== null && "_tag" in value

/** A whole number from 0, or Infinity for no bound. */
export const count = (
  argument: string,
  value: unknown,
  otherwise: number,
  most: number = Number.POSITIVE_INFINITY
): number | Fault => {
  if (value === undefined) return otherwise
  if (typeof value !== "number" || !(value >= 0) || !(Number.isInteger(value) || value === Number.POSITIVE_INFINITY)) {
    return invalid(argument, "it must be a whole number, 0 or more")
  }
  return value > most ? invalid(argument, `it may be ${most} at the most`) : value
}

/** Lines on each side of a match: every match has its own, so that together they are as many times the text. */
export const maxContext = 1000

export const list = (value: string | ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  value === undefined ? [] : Array.isArray(value) ? (value as ReadonlyArray<string>) : [value as string]
