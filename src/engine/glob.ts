import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { FileEntry, GlobMatch, GlobResult } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { keyIn } from "../port/order.ts"
import * as Matcher from "./matcher.ts"
import { count, type GlobOptions, invalid, isFault, list, type PlanContext } from "./options.ts"
import * as Skips from "./skips.ts"
import * as Walk from "./walk.ts"
import { Passed } from "./passed.ts"

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

/** The cursor before every name, for a truncated result without matches. */
const beginning = "\u0001"

const matchOf = ({ isFile, kind, path, sizeBytes }: FileEntry): GlobMatch =>
  sizeBytes === undefined ? { path, kind, isFile } : { path, kind, isFile, sizeBytes }

const found = (port: Backend, base: Walk.Base, self: GlobPlan): Stream.Stream<FileEntry | Passed, Fault> => {
  const { after } = self
  const all = Walk.search(port, base, self.walk)
  if (after === undefined) return all
  const fold = Walk.foldOf(port)
  return Stream.filter(
    all,
    (item) => item instanceof Passed || FsPath.compare(fold(keyIn(item.path, item.kind)), fold(after)) > 0
  )
}

export const stream = (port: Backend, base: Walk.Base, self: GlobPlan): Stream.Stream<GlobMatch, Fault> =>
  Stream.suspend(() => {
    const tell = Skips.telling(self.onSkip, self.after, Walk.foldOf(port))
    return Stream.map(Walk.answers(found(port, base, self), tell, self.maxMatches), matchOf)
  })

export const collect = (port: Backend, base: Walk.Base, self: GlobPlan): Effect.Effect<GlobResult, Fault> =>
  Effect.suspend(() => {
    const most = self.maxMatches ?? self.defaultMatches
    const skips = Skips.make(self.onSkip, self.after, Walk.foldOf(port))
    const matches: Array<GlobMatch> = []
    let last: string | undefined
    let isTruncated = false

    const take = (item: FileEntry | Passed): boolean => {
      if (item instanceof Passed) skips.add(item.path, item.why, item.key)
      else if (matches.length === most) isTruncated = true
      else {
        matches.push(matchOf(item))
        last = keyIn(item.path, item.kind)
      }
      return !isTruncated
    }
    return Effect.map(Skips.untilFull(found(port, base, self), take), (): GlobResult => ({
      matches,
      truncated: isTruncated,
      ...(isTruncated ? { next: last ?? self.after ?? beginning } : {}),
      skipped: skips.upTo(last, isTruncated)
    }))
  })
