/**
 * The limits of calls, in one record. Every call reads the current record, so `Effect.provideService` can change a
 * limit for a part of a program.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"

/**
 * The limits of every call: sizes in bytes or code points, counts of results, lengths of paths and patterns, and the
 * time of a pattern.
 *
 * @since 0.1.0
 */
export interface LimitsShape {
  /** The maximum size of a write, in code points for text and in bytes otherwise. */
  readonly maxFileSize: number
  /**
   * The maximum number of bytes that a sink accepts from a stream.
   *
   * @default `maxFileSize` if it is smaller than in `standard`, otherwise no bound
   */
  readonly maxStreamBytes?: number | undefined
  /** The maximum number of bytes of a read. Streams have no such limit. */
  readonly maxReadBytes: number
  /** The maximum number of code points in a path. */
  readonly maxPathLength: number
  /** The maximum number of segments in a path. */
  readonly maxPathDepth: number
  /** The maximum number of code points in one segment. A host may have a lower limit, in bytes. */
  readonly maxSegmentLength: number
  /** The number of lines per page if a read gives no limit. */
  readonly defaultReadLimit: number
  readonly maxGrepMatches: number
  readonly maxGlobMatches: number
  readonly maxListEntries: number
  /** The maximum number of characters in a glob or regular expression. */
  readonly maxPatternLength: number
  /** The time that a pattern may spend on one file before `Timeout`, in milliseconds. */
  readonly patternBudget: number
  readonly maxArchiveEntries: number
  /** The maximum total size of the unpacked files of an archive, in bytes. */
  readonly maxArchiveBytes: number
}

const MiB = 1024 * 1024

/**
 * The default limits of every backend.
 *
 * @category limits
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
 * The default limits of the tools for agents: small writes, short paths.
 *
 * @category limits
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

const unbounded = Number.POSITIVE_INFINITY

/**
 * No limits of this library. The machine's limits still apply.
 *
 * @category limits
 * @since 0.1.0
 */
export const unlimited: LimitsShape = {
  maxFileSize: unbounded,
  maxStreamBytes: undefined,
  maxReadBytes: unbounded,
  maxPathLength: unbounded,
  maxPathDepth: unbounded,
  maxSegmentLength: unbounded,
  defaultReadLimit: unbounded,
  maxGrepMatches: unbounded,
  maxGlobMatches: unbounded,
  maxListEntries: unbounded,
  maxPatternLength: unbounded,
  patternBudget: unbounded,
  maxArchiveEntries: unbounded,
  maxArchiveBytes: unbounded
}

/**
 * The current limits. `Effect.provideService(Limits.Limits, Limits.agent)` tightens the limits of the wrapped effect.
 *
 * @example
 * ```ts
 * const page = fs.read("notes/todo.md").pipe(
 *   Effect.provideService(Limits.Limits, { ...Limits.standard, defaultReadLimit: 1 })
 * )
 * yield* Effect.map(page, ({ content }) => content) // => "- [ ] tea"
 * ```
 * @category references
 * @since 0.1.0
 */
export const Limits: Context.Reference<LimitsShape> = Context.Reference<LimitsShape>("fs-algebra/Limits", {
  defaultValue: () => standard
})
