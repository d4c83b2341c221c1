/** Plans a grep and assembles its result. The search of files is in `search.ts`. */
import { is as isFault, invalidArgument } from "../model/Fault.ts"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { GrepMatch, GrepResult, Kind } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type * as FsPath from "../model/FsPath.ts"
import type { LimitsShape } from "../model/Limits.ts"
import type { Needles, SearchPattern } from "../model/search.ts"
import type { Backend } from "../port/Backend.ts"
import { withContextLines } from "../runtime/scan.ts"
import * as Pattern from "./pattern.ts"
import { findNeedles } from "./pattern.ts"
import * as Matcher from "./matcher.ts"
import { checkCount, type GrepOptions, list, maxContext, type PlanContext, type Why } from "./options.ts"
import { type Outcome, outcomes } from "./search.ts"
import * as Skips from "./skips.ts"
import * as Walk from "./walk.ts"

interface Cursor {
  readonly path: string
  readonly lineNumber: number
}

export interface GrepPlan {
  readonly pattern: Pattern.Pattern
  readonly question: SearchPattern
  readonly needles: Needles | undefined
  readonly before: number
  readonly contextAfter: number
  readonly walk: Walk.Plan
  readonly after: Cursor | undefined
  readonly maxMatches: number | undefined
  readonly maxFileSize: number
  readonly onSkip: GrepOptions["onSkip"]
  readonly limits: LimitsShape
}

export interface Base {
  readonly path: FsPath.FsPath
  readonly at: FsPath.FsPath
  readonly kind: Kind
}

export const cursorOf = (match: { readonly path: string; readonly lineNumber: number }): string =>
  `${match.lineNumber}:${match.path}`

/** The position before every match, for a truncated result without matches. */
const startCursor: Cursor = { path: "", lineNumber: 0 }

const readCursor = (text: string): Cursor | undefined => {
  if (typeof text !== "string") return undefined
  const colon = text.indexOf(":")
  const digits = text.slice(0, colon)
  return colon > 0 && /^\d{1,15}$/.test(digits) ? { lineNumber: Number(digits), path: text.slice(colon + 1) } : undefined
}

const contextOf = (context: GrepOptions["context"]): ReadonlyArray<unknown> =>
  context === undefined ? [0, 0] : Array.isArray(context) && context.length === 2 ? context : [context, context]

export const plan = (pattern: string | RegExp, options: GrepOptions, context: PlanContext): GrepPlan | Fault => {
  const compiled = Pattern.compile(pattern, options, context.limits)
  if (isFault(compiled)) return compiled
  const [before, after] = contextOf(options.context)
  for (const [argument, value, limit] of [
    ["maxMatches", options.maxMatches],
    ["maxFileSize", options.maxFileSize],
    ["context", before, maxContext],
    ["context", after, maxContext]
  ] as const) {
    const checked = checkCount(argument, value, 0, limit)
    if (isFault(checked)) return checked
  }
  const cursor = options.after === undefined ? undefined : readCursor(options.after)
  if (options.after !== undefined && cursor === undefined)
    return invalidArgument("after", "it must be the `next` of a previous grep")
  const globs = list(options.glob)
  const include = globs.length === 0 ? undefined : Matcher.compile(globs, { argument: "glob" }, context)
  if (isFault(include)) return include
  // Special files are walked only so that they are counted as skipped.
  const walk = Walk.searchPlan({ ...options, include, kinds: ["file", "other"], from: cursor?.path }, context)
  if (isFault(walk)) return walk
  const { flags, literal, multiline, source } = compiled
  return {
    pattern: compiled,
    question: { source, flags, literal, multiline },
    needles: findNeedles(source, flags, literal),
    before: (before ?? 0) as number,
    contextAfter: (after ?? 0) as number,
    walk,
    after: cursor,
    maxMatches: options.maxMatches,
    maxFileSize: options.maxFileSize ?? Number.POSITIVE_INFINITY,
    onSkip: options.onSkip,
    limits: context.limits
  }
}

const hasContext = (self: GrepPlan): boolean => self.before + self.contextAfter > 0

const matchesOf = (self: GrepPlan, { found, text }: Outcome, limit: number): Iterable<GrepMatch> => {
  if (typeof found === "string") return []
  const wantedMatches = found.length <= limit ? found : found.slice(0, limit)
  return text === undefined || !hasContext(self)
    ? wantedMatches
    : withContextLines(text, wantedMatches, self.before, self.contextAfter)
}

/** The number of matches in a chunk of a stream with context. Each match may have two thousand context lines. */
const matchesPerChunk = 64

const isSkip = (found: Outcome["found"]): found is Why => typeof found === "string" && found !== "gone"

const reportSkipOf = (skip: Skips.Skip, { found, key, path }: Outcome): void => {
  if (isSkip(found)) skip(path, found, key ?? path)
}

const collectWithoutContext = (
  skip: Skips.Skip,
  limit: number
): ((batch: ReadonlyArray<Outcome>) => ReadonlyArray<GrepMatch>) => {
  let left = limit
  return (batch) => {
    const out: Array<GrepMatch> = []
    for (const file of batch) {
      const { found } = file
      if (left === 0) break
      if (typeof found === "string") reportSkipOf(skip, file)
      if (typeof found === "string" || found.length === 0) continue
      const wantedMatches = found.length <= left ? found : found.slice(0, left)
      left -= wantedMatches.length
      // The matches of the only file of a batch are returned without a copy.
      if (batch.length === 1) return wantedMatches
      for (let i = 0; i < wantedMatches.length; i++) out.push(wantedMatches[i]!)
    }
    return out
  }
}

const flattenBatches = <A>(all: Stream.Stream<ReadonlyArray<A>, Fault>): Stream.Stream<A, Fault> =>
  Stream.flattenArray(Stream.filter(all, Arr.isReadonlyArrayNonEmpty))

export const stream = (port: Backend, base: Base, self: GrepPlan): Stream.Stream<GrepMatch, Fault> =>
  Stream.suspend(() => {
    const limit = self.maxMatches ?? Number.POSITIVE_INFINITY
    if (limit === 0) return Stream.empty
    const skip = Skips.makeReporter(self.onSkip, self.after?.path, Walk.foldOf(port))
    const batches = outcomes(port, base, self, limit)
    const matches = !hasContext(self)
      ? flattenBatches(Stream.map(batches, collectWithoutContext(skip, limit)))
      : Stream.flatMap(flattenBatches(batches), (file) => {
          reportSkipOf(skip, file)
          return Stream.fromIterable(matchesOf(self, file, Number.POSITIVE_INFINITY), { chunkSize: matchesPerChunk })
        })
    return limit === Number.POSITIVE_INFINITY ? matches : Stream.take(matches, limit)
  })

export const collect = (port: Backend, base: Base, self: GrepPlan): Effect.Effect<GrepResult, Fault> =>
  Effect.suspend(() => {
    const limit = self.maxMatches ?? self.limits.maxGrepMatches
    const matches: Array<GrepMatch> = []
    const skips = Skips.make(self.onSkip, self.after?.path, Walk.foldOf(port))
    let filesSearched = 0
    let filesMatched = 0
    let isTruncated = false

    const take = (file: Outcome): boolean => {
      const { found, key } = file
      if (typeof found === "string") {
        if (found !== "gone") skips.add(file.path, found, key ?? file.path)
        return true
      }
      const fitting = Math.min(found.length, limit - matches.length)
      isTruncated = fitting < found.length
      if (isTruncated && fitting === 0) return false
      filesSearched += file.fileCount ?? 1
      if (found.length > 0) filesMatched++
      for (const match of matchesOf(self, file, fitting)) matches.push(match)
      return !isTruncated
    }
    // Ask for one more match than fits, to detect truncation.
    return Effect.map(
      Skips.runUntilFull(outcomes(port, base, self, limit + 1), (batch) => batch.every(take)),
      (): GrepResult => {
        const last = matches[matches.length - 1]
        return {
          matches,
          filesSearched,
          filesMatched,
          truncated: isTruncated,
          ...(isTruncated ? { next: cursorOf(last ?? self.after ?? startCursor) } : {}),
          skipped: skips.countUpTo(isTruncated ? last?.path : undefined, isTruncated)
        }
      }
    )
  })
