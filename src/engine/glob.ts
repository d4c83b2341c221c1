/** A glob is a walk that answers what a matcher matches, and a cursor to go on from. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { FileEntry, GlobMatch, GlobResult } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import * as Matcher from "./matcher.ts"
import { count, type GlobOptions, invalid, isFault, list, type PlanContext } from "./options.ts"
import * as Skips from "./skips.ts"
import * as Walk from "./walk.ts"

export interface GlobPlan {
  readonly walk: Walk.Plan
  readonly after: string | undefined
  readonly maxMatches: number | undefined
  readonly defaultMatches: number
  readonly onSkip: GlobOptions["onSkip"]
}

export const plan = (pattern: string | ReadonlyArray<string>, options: GlobOptions, context: PlanContext): GlobPlan | Fault => {
  const patterns = list(pattern)
  if (patterns.length === 0) return invalid("pattern", "there is none")
  const { dialect } = options
  if (dialect !== undefined && dialect !== "path" && dialect !== "fnmatch")
    return invalid("dialect", "it must be path or fnmatch")
  const include = Matcher.compile(patterns, { argument: "pattern", dialect }, context)
  if (isFault(include)) return include
  const maxMatches = count("maxMatches", options.maxMatches, 0)
  if (isFault(maxMatches)) return maxMatches
  const after = options.after
  if (after !== undefined && (typeof after !== "string" || after === ""))
    return invalid("after", "it is not the `next` of a glob")
  const walk = Walk.searchPlan({ ...options, include, kinds: options.kinds ?? ["file"], from: after }, context)
  if (isFault(walk)) return walk
  return {
    walk,
    after,
    maxMatches: options.maxMatches,
    defaultMatches: context.limits.maxGlobMatches,
    onSkip: options.onSkip
  }
}

/** Before every name: what continues a glob of which nothing was answered. */
const beginning = "\u0001"

const matchOf = ({ isFile, kind, path, sizeBytes }: FileEntry): GlobMatch =>
  sizeBytes === undefined ? { path, kind, isFile } : { path, kind, isFile, sizeBytes }

const found = (port: Backend, base: Walk.Base, self: GlobPlan, skip: Skips.Skip): Stream.Stream<FileEntry, Fault> => {
  const { after } = self
  const entries = Walk.search(port, base, self.walk, skip)
  if (after === undefined) return entries
  const fold = Walk.foldOf(port)
  return Stream.filter(entries, ({ kind, path }) => FsPath.compare(fold(Walk.keyIn(path, kind)), fold(after)) > 0)
}

export const stream = (port: Backend, base: Walk.Base, self: GlobPlan): Stream.Stream<GlobMatch, Fault> => {
  const matches = Stream.map(found(port, base, self, Skips.telling(self.onSkip, self.after, Walk.foldOf(port))), matchOf)
  return self.maxMatches === undefined ? matches : Stream.take(matches, self.maxMatches)
}

export const collect = (port: Backend, base: Walk.Base, self: GlobPlan): Effect.Effect<GlobResult, Fault> =>
  Effect.suspend(() => {
    const most = self.maxMatches ?? self.defaultMatches
    const skips = Skips.make(self.onSkip, self.after, Walk.foldOf(port))
    const entries = found(port, base, self, skips.add)
    // One more than fits tells that there is more.
    const wanted = most === Number.POSITIVE_INFINITY ? entries : Stream.take(entries, most + 1)
    return Effect.map(Stream.runCollect(wanted), (all): GlobResult => {
      const truncated = all.length > most
      const answered = truncated ? all.slice(0, most) : all
      const last = answered[answered.length - 1]
      const next = last === undefined ? (self.after ?? beginning) : Walk.keyIn(last.path, last.kind)
      return {
        matches: answered.map(matchOf),
        truncated,
        ...(truncated ? { next } : {}),
        skipped: skips.upTo(last && Walk.keyIn(last.path, last.kind), truncated)
      }
    })
  })
