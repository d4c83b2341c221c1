/**
 * Every bound in one record, read at each call, so that a scope can tighten it and nothing has to be passed down.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"

/**
 * The bounds of every call: sizes in bytes or code points, counts of results, lengths of paths and patterns.
 *
 * @since 0.1.0
 */
export interface LimitsShape {
  /** Per write; code points of text, bytes otherwise. */
  readonly maxFileSize: number
  /** Bytes of a stream that a sink takes. @default no bound; where `maxFileSize` is less than standard, that */
  readonly maxStreamBytes?: number | undefined
  /** Bytes per read of bytes or text (not of streams). */
  readonly maxReadBytes: number
  /** Code points of a whole path. */
  readonly maxPathLength: number
  /** Segments of a path. */
  readonly maxPathDepth: number
  /** Code points; a host may refuse earlier, in bytes. */
  readonly maxSegmentLength: number
  /** Lines of a page when a read names no limit. */
  readonly defaultReadLimit: number
  readonly maxGrepMatches: number
  readonly maxGlobMatches: number
  readonly maxListEntries: number
  /** Characters of one glob or regular expression. */
  readonly maxPatternLength: number
  /** How long a pattern may work on one file, in milliseconds, before Timeout. */
  readonly patternBudget: number
  readonly maxArchiveEntries: number
  /** Bytes, unpacked. */
  readonly maxArchiveBytes: number
}

const MiB = 1024 * 1024

/**
 * The default of every backend.
 *
 * @since 0.1.0
 */
export const standard: LimitsShape = {
  maxFileSize: 32 * MiB,
  maxStreamBytes: undefined,
  maxReadBytes: 256 * MiB,
  maxPathLength: 4096,
  maxPathDepth: 255,
  maxSegmentLength: 255,
  defaultReadLimit: 2000,
  maxGrepMatches: 1000,
  maxGlobMatches: 100_000,
  maxListEntries: 100_000,
  maxPatternLength: 1000,
  patternBudget: 2000,
  maxArchiveEntries: 100_000,
  maxArchiveBytes: 4096 * MiB
}

/**
 * What agent tools and workspace sections use: small writes, short paths.
 *
 * @since 0.1.0
 */
export const agent: LimitsShape = {
  ...standard,
  maxFileSize: 48_000,
  maxReadBytes: 8 * MiB,
  maxPathDepth: 16,
  maxSegmentLength: 80,
  maxGlobMatches: 1000,
  maxListEntries: 10_000
}

const none = Number.POSITIVE_INFINITY

/**
 * No bound of ours at all; the machine's remain.
 *
 * @since 0.1.0
 */
export const unlimited: LimitsShape = {
  maxFileSize: none,
  maxStreamBytes: undefined,
  maxReadBytes: none,
  maxPathLength: none,
  maxPathDepth: none,
  maxSegmentLength: none,
  defaultReadLimit: none,
  maxGrepMatches: none,
  maxGlobMatches: none,
  maxListEntries: none,
  maxPatternLength: none,
  patternBudget: none,
  maxArchiveEntries: none,
  maxArchiveBytes: none
}

/**
 * Read at each call: `Effect.provideService(Limits.Limits, Limits.agent)` tightens whatever runs inside.
 *
 * @since 0.1.0
 */
export const Limits: Context.Reference<LimitsShape> = Context.Reference<LimitsShape>("fs-algebra/Limits", {
  defaultValue: () => standard
})
