import { is as isFault, invalidArgument } from "../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { GlobMatch, GlobResult } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { walkSortKey } from "../port/explorer.ts"
import * as Matcher from "./matcher.ts"
import { checkCount, type GlobOptions, list, type PlanContext } from "./options.ts"
import * as Skips from "./skips.ts"
import { SkippedEntry } from "./skips.ts"
import * as Walk from "./walk.ts"
import type { Answers } from "./walkDirectory.ts"

export interface GlobPlan {
  readonly walk: Walk.Plan
  readonly after: string | undefined
  readonly maxMatches: number | undefined
  readonly defaultMatches: number
  readonly onSkip: GlobOptions["onSkip"]
}

export const plan = (pattern: string | ReadonlyArray<string>, options: GlobOptions, context: PlanContext): GlobPlan | Fault => {
  const patterns = list(pattern)
  if (patterns.length === 0) return invalidArgument("pattern", "the list of patterns is empty")
  const { dialect } = options
  if (dialect !== undefined && dialect !== "path" && dialect !== "fnmatch")
    return invalidArgument("dialect", "it must be `path` or `fnmatch`")
  const include = Matcher.compile(patterns, { argument: "pattern", dialect }, context)
  if (isFault(include)) return include
  const maxMatches = checkCount("maxMatches", options.maxMatches, 0)
  if (isFault(maxMatches)) return maxMatches
  const after = options.after
  if (after !== undefined && (typeof after !== "string" || after === ""))
    return invalidArgument("after", "it must be the `next` of a previous glob")
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

/** The cursor of the position before every name, for a truncated result without matches. */
const startCursor = "\u0001"

const matches: Answers<GlobMatch> = {
  ofChild: ({ path: above, sizes }, child) => {
    const { kind, name } = child
    const path = FsPath.join(above, name)
    const isFile = kind === "file"
    return sizes === undefined ? { path, kind, isFile } : { path, kind, isFile, sizeBytes: sizes.get(child) ?? 0 }
  },
  ofEntry: (path, _name, kind) => ({ path, kind, isFile: kind === "file" })
}

const findMatches = (port: Backend, base: Walk.Base, self: GlobPlan): Stream.Stream<GlobMatch | SkippedEntry, Fault> => {
  const { after } = self
  const all = Walk.search(port, base, self.walk, matches)
  if (after === undefined) return all
  const fold = Walk.foldOf(port)
  return Stream.filter(
    all,
    (item) => item instanceof SkippedEntry || FsPath.compare(fold(walkSortKey(item.path, item.kind)), fold(after)) > 0
  )
}

export const stream = (port: Backend, base: Walk.Base, self: GlobPlan): Stream.Stream<GlobMatch, Fault> =>
  Stream.suspend(() => {
    const reportSkip = Skips.makeReporter(self.onSkip, self.after, Walk.foldOf(port))
    return Walk.streamEntries(findMatches(port, base, self), reportSkip, self.maxMatches)
  })

export const collect = (port: Backend, base: Walk.Base, self: GlobPlan): Effect.Effect<GlobResult, Fault> =>
  Effect.suspend(() => {
    const limit = self.maxMatches ?? self.defaultMatches
    const skips = Skips.make(self.onSkip, self.after, Walk.foldOf(port))
    const matches: Array<GlobMatch> = []
    let isTruncated = false

    const take = (item: GlobMatch | SkippedEntry): boolean => {
      if (item instanceof SkippedEntry) skips.add(item.path, item.why, item.key)
      else if (matches.length === limit) isTruncated = true
      else matches.push(item)
      return !isTruncated
    }
    return Effect.map(Skips.runUntilFull(findMatches(port, base, self), take), (): GlobResult => {
      const final = matches[matches.length - 1]
      const last = final && walkSortKey(final.path, final.kind)
      return {
        matches,
        truncated: isTruncated,
        ...(isTruncated ? { next: last ?? self.after ?? startCursor } : {}),
        skipped: skips.countUpTo(last, isTruncated)
      }
    })
  })
