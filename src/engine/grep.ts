/**
 * A search reads a few files ahead and answers in order of path and line. What cannot be read as text is counted and named, and
 * whatever the pattern, the program stays responsive: only expressions whose cost is known to be small run here, the others in a
 * worker with a budget.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { GrepMatch, GrepResult, Kind } from "../model/Entry.ts"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { LimitsShape } from "../model/Limits.ts"
import type { Backend } from "../port/Backend.ts"
import { type Answer, Matching } from "../runtime/pool.ts"
import { among, type Found, type Question, scan } from "../runtime/scan.ts"
import * as Matcher from "./matcher.ts"
import { count, type GrepOptions, invalid, isFault, list, maxContext, type PlanContext, type Why } from "./options.ts"
import * as Pattern from "./pattern.ts"
import * as Read from "./read.ts"
import * as Skips from "./skips.ts"
import * as Text from "./text.ts"
import * as Walk from "./walk.ts"

/** After which path and line to go on. */
interface Cursor {
  readonly path: string
  readonly lineNumber: number
}

export interface GrepPlan {
  readonly pattern: Pattern.Pattern
  readonly question: Question
  /** Lines of context. */
  readonly before: number
  readonly behind: number
  readonly walk: Walk.Plan
  readonly after: Cursor | undefined
  readonly maxMatches: number | undefined
  readonly maxFileSize: number
  readonly onSkip: GrepOptions["onSkip"]
  readonly limits: LimitsShape
}

/** A directory or a single file: what the caller calls it, where it is, what it is. */
export interface Base {
  readonly path: FsPath.FsPath
  readonly at: FsPath.FsPath
  readonly kind: Kind
}

const cursorOf = (match: { readonly path: string; readonly lineNumber: number }): string => `${match.lineNumber}:${match.path}`

/** Before everything: what continues a search of which nothing was answered. */
const start: Cursor = { path: "", lineNumber: 0 }

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
  for (const [argument, value, most] of [
    ["maxMatches", options.maxMatches],
    ["maxFileSize", options.maxFileSize],
    ["context", before, maxContext],
    ["context", after, maxContext]
  ] as const) {
    const checked = count(argument, value, 0, most)
    if (isFault(checked)) return checked
  }
  const cursor = options.after === undefined ? undefined : readCursor(options.after)
  if (options.after !== undefined && cursor === undefined) return invalid("after", "it is not the `next` of a grep")
  const globs = list(options.glob)
  const include = globs.length === 0 ? undefined : Matcher.compile(globs, { argument: "glob" }, context)
  if (isFault(include)) return include
  // Others are walked to only to be counted.
  const walk = Walk.searchPlan({ ...options, include, kinds: ["file", "other"], from: cursor?.path }, context)
  if (isFault(walk)) return walk
  const { flags, literal, multiline, source } = compiled
  return {
    pattern: compiled,
    question: { source, flags, literal, multiline },
    before: (before ?? 0) as number,
    behind: (after ?? 0) as number,
    walk,
    after: cursor,
    maxMatches: options.maxMatches,
    maxFileSize: options.maxFileSize ?? Number.POSITIVE_INFINITY,
    onSkip: options.onSkip,
    limits: context.limits
  }
}

/** What became of a file: its matches, or why it has none. */
interface Outcome {
  readonly path: FsPath.FsPath
  readonly found: ReadonlyArray<Found> | Why | "gone"
  /** What was searched, to take the lines around a match from. */
  readonly text?: string
}

/** A file's text, ready to be searched. */
interface Loaded {
  readonly path: FsPath.FsPath
  readonly text: string
  readonly isUtf8: boolean
}

const sniffed = 8192

const hasNul = (bytes: Uint8Array): boolean => bytes.subarray(0, sniffed).includes(0)

/** Its beginning tells whether the rest is worth reading; "large" is what is to be read later. */
const bytesOf = (
  port: Backend,
  at: FsPath.FsPath,
  self: GrepPlan,
  now: number
): Effect.Effect<Uint8Array | Why | "large", Fault> => {
  const most = Math.min(self.maxFileSize, self.limits.maxReadBytes, Text.maxStringLength)
  const opened = Effect.scoped(
    Effect.flatMap(port.open(at), (handle): Effect.Effect<Uint8Array | Why | "large", Fault> => {
      const size = handle.stat.sizeBytes
      if (size > most) return Effect.succeed("tooLarge")
      return Effect.flatMap(
        Read.range(handle, 0, Math.min(size, sniffed)),
        (head): Effect.Effect<Uint8Array | Why | "large", Fault> =>
          head.length === size || hasNul(head)
            ? Effect.succeed(head)
            : size > now
              ? Effect.succeed("large")
              : Read.range(handle, 0, size)
      )
    })
  )
  const read = port.accelerations?.read
  return read === undefined
    ? opened
    : Effect.flatMap(read(at, Math.min(most, now)), (whole) => (whole === undefined ? opened : Effect.succeed(whole.bytes)))
}

const smallFile = 256 * 1024

const load = (
  port: Backend,
  base: Base,
  self: GrepPlan,
  path: FsPath.FsPath,
  now: number
): Effect.Effect<Loaded | Outcome | "large", Fault> => {
  const at = FsPath.below(base.at, FsPath.relative(base.path, path))
  return Effect.catch(
    Effect.map(bytesOf(port, at, self, now), (bytes): Loaded | Outcome | "large" => {
      if (bytes === "large") return bytes
      if (typeof bytes === "string") return { path, found: bytes }
      if (hasNul(bytes)) return { path, found: "binary" }
      const text = Text.decode(bytes)
      return typeof text === "string" ? { path, text, isUtf8: true } : { path, text: lossily(bytes), isUtf8: false }
    }),
    (fault) =>
      fault._tag === "Unavailable"
        ? Effect.fail(fault)
        : Effect.succeed<Outcome>({ path, found: fault._tag === "NotFound" ? "gone" : "unreadable" })
  )
}

const lossily = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)

/** What one batch may run here without anybody noticing: some milliseconds. */
const fewSteps = 4_000_000

/** The engine's own search is as fast as the reading for text up to about this length, as `scan` knows too. */
const shortText = 200

/** What a file can cost, from above, or something above `most`. */
const costOf = ({ literal, steps }: Pattern.Pattern, text: string, most: number): number => {
  if (literal !== undefined) return literal.length <= shortText ? 0 : 2 * text.length
  let cost = 0
  for (let at = 0; cost <= most;) {
    const lf = text.indexOf("\n", at)
    cost += steps((lf === -1 ? text.length : lf) - at)
    if (lf === -1) break
    at = lf + 1
  }
  return cost
}

const timeout = (self: GrepPlan, path: string): Fault =>
  located({ _tag: "Timeout", detail: `the pattern worked on this file for more than ${self.limits.patternBudget} ms` }, path)

const failure = (detail: string, path: string): Fault =>
  located({ _tag: "IoError", detail: `the search failed: ${detail}` }, path)

const firstLine = (self: GrepPlan, path: string): number => (self.after?.path === path ? self.after.lineNumber + 1 : 1)

/** A file that has a match and is not valid UTF-8 is not text. */
const outcome = ({ isUtf8, path, text }: Loaded, found: ReadonlyArray<Found>): Outcome =>
  isUtf8 || found.length === 0 ? { path, found, text } : { path, found: "binary" }

const isLoaded = (value: Loaded | Outcome): value is Loaded => "isUtf8" in value

/** What one batch answers, in its order. */
const matchAll = (
  self: GrepPlan,
  most: number,
  files: ReadonlyArray<Loaded | Outcome>
): Effect.Effect<ReadonlyArray<Outcome>, Fault> =>
  Effect.withFiber((fiber) => {
    const out: Array<Outcome> = []
    const slow: Array<{ readonly index: number; readonly file: Loaded }> = []
    let left = fewSteps
    for (const [index, file] of files.entries()) {
      const cost = isLoaded(file) ? costOf(self.pattern, file.text, left) : 0
      if (!isLoaded(file)) out[index] = file
      else if (cost <= left) {
        left -= cost
        out[index] = outcome(file, scan(self.question, file.text, firstLine(self, file.path), most))
      } else slow.push({ index, file })
    }
    // A batch that has used much of its steps lets others have their turn before the next.
    if (slow.length === 0) return left < fewSteps / 2 ? Effect.as(Effect.yieldNow, out) : Effect.succeed(out)
    const job = {
      question: self.question,
      texts: slow.map(({ file }) => file.text),
      // Only the first file of a search can be the one to go on in, and it is a batch of its own.
      from: firstLine(self, slow[0]!.file.path),
      most,
      budget: self.limits.patternBudget
    }
    return Effect.flatMap(fiber.getRef(Matching).match(job), (answer: Answer) => {
      if (answer._tag === "Overrun") return Effect.fail(timeout(self, slow[answer.index]!.file.path))
      if (answer._tag === "Failed") return Effect.fail(failure(answer.detail, slow[answer.index]!.file.path))
      for (const [i, { file, index }] of slow.entries()) out[index] = outcome(file, answer.found[i]!)
      return Effect.succeed(out)
    })
  })

const batchFiles = 32
const readsAhead = 8

/** A search of `most` lines per file, in order. `skip` hears of what the walk passes over. */
const outcomes = (port: Backend, base: Base, self: GrepPlan, most: number, skip: Skips.Skip): Stream.Stream<Outcome, Fault> => {
  const files: Stream.Stream<FsPath.FsPath, Fault> =
    base.kind === "directory"
      ? Stream.map(Walk.search(port, base, self.walk, skip), ({ path }) => path)
      : Stream.succeed(base.path)
  const fold = Walk.foldOf(port)
  const first = self.after && fold(self.after.path)
  const wanted = first === undefined ? files : Stream.filter(files, (path) => FsPath.compare(fold(path), first) >= 0)
  return wanted.pipe(
    Stream.mapArray((paths) => inBatches(self, paths)),
    Stream.mapEffect((paths) => searched(port, base, self, most, paths)),
    Stream.flattenIterable
  )
}

/** Small files are read ahead and matched together, a large one is read when its turn comes and let go before the next. */
const searched = Effect.fnUntraced(function* (
  port: Backend,
  base: Base,
  self: GrepPlan,
  most: number,
  paths: Batch
): Effect.fn.Return<ReadonlyArray<Outcome>, Fault> {
  const loaded = yield* Effect.forEach(paths, (path) => load(port, base, self, path, smallFile), { concurrency: readsAhead })
  const out: Array<Outcome> = []
  let small: Array<Loaded | Outcome> = []
  for (const [index, file] of loaded.entries()) {
    if (file !== "large") {
      small.push(file)
      continue
    }
    out.push(...(yield* matchAll(self, most, small)))
    small = []
    const alone = yield* load(port, base, self, paths[index]!, Number.POSITIVE_INFINITY)
    if (alone !== "large") out.push(...(yield* matchAll(self, most, [alone])))
  }
  return small.length === 0 ? out : [...out, ...(yield* matchAll(self, most, small))]
})

/** The file in which a search goes on stands alone, since it starts at another line than the rest. */
const inBatches = (self: GrepPlan, paths: ReadonlyArray<FsPath.FsPath>): [Batch, ...Array<Batch>] => {
  const batches: Array<Array<FsPath.FsPath>> = []
  for (const path of paths) {
    const last = batches[batches.length - 1]
    if (last === undefined || last.length === batchFiles || last[0] === self.after?.path) batches.push([path])
    else last.push(path)
  }
  return batches as unknown as [Batch, ...Array<Batch>]
}

type Batch = ReadonlyArray<FsPath.FsPath>

/** The first `most` matches, with the lines around them where such are asked for. */
const matchesOf = function* (self: GrepPlan, { found, path, text }: Outcome, most: number): Generator<GrepMatch, void> {
  if (typeof found === "string") return
  const wanted = found.length <= most ? found : found.slice(0, most)
  const isBare = text === undefined || self.before + self.behind === 0
  for (const match of isBare ? wanted : among(text, wanted, self.before, self.behind)) yield { path, ...match }
}

/** What a stream holds of one file's matches at a time: with context each may have two thousand lines. */
const fewMatches = 64

const isSkip = (found: Outcome["found"]): found is Why => typeof found === "string" && found !== "gone"

export const stream = (port: Backend, base: Base, self: GrepPlan): Stream.Stream<GrepMatch, Fault> => {
  const most = self.maxMatches ?? Number.POSITIVE_INFINITY
  if (most === 0) return Stream.empty
  const skip = Skips.telling(self.onSkip, self.after?.path, Walk.foldOf(port))
  const matches = outcomes(port, base, self, most, skip).pipe(
    Stream.mapArray((all) => {
      for (const { found, path } of all) if (isSkip(found)) skip(path, found, path)
      return all
    }),
    Stream.filter(({ found }) => found.length > 0 && typeof found !== "string"),
    Stream.flatMap((file) => Stream.fromIterable(matchesOf(self, file, Number.POSITIVE_INFINITY), { chunkSize: fewMatches }))
  )
  return most === Number.POSITIVE_INFINITY ? matches : Stream.take(matches, most)
}

/** Ends a search that has all it was asked for. */
const enough: unique symbol = Symbol("fs-algebra/grep/enough")

export const collect = (port: Backend, base: Base, self: GrepPlan): Effect.Effect<GrepResult, Fault> =>
  Effect.suspend(() => {
    const most = self.maxMatches ?? self.limits.maxGrepMatches
    const matches: Array<GrepMatch> = []
    const skips = Skips.make(self.onSkip, self.after?.path, Walk.foldOf(port))
    let filesSearched = 0
    let filesMatched = 0
    let isTruncated = false

    /** Whether the search may go on. */
    const take = (file: Outcome): boolean => {
      const { found, path } = file
      if (typeof found === "string") {
        if (found !== "gone") skips.add(path, found, path)
        return true
      }
      const fitting = Math.min(found.length, most - matches.length)
      isTruncated = fitting < found.length
      if (isTruncated && fitting === 0) return false
      filesSearched++
      if (found.length > 0) filesMatched++
      for (const match of matchesOf(self, file, fitting)) matches.push(match)
      return !isTruncated
    }
    // One more than fits tells that there is more.
    const all = Stream.runForEachArray(
      outcomes(port, base, self, most + 1, skips.add),
      (batch): Effect.Effect<void, Fault | typeof enough> =>
        batch.every(take) ? Effect.void : Effect.fail<typeof enough>(enough)
    )
    return Effect.map(
      Effect.catch(all, (stop) => (stop === enough ? Effect.void : Effect.fail(stop))),
      (): GrepResult => {
        const last = matches[matches.length - 1]
        return {
          matches,
          filesSearched,
          filesMatched,
          truncated: isTruncated,
          ...(isTruncated ? { next: cursorOf(last ?? self.after ?? start) } : {}),
          skipped: skips.upTo(isTruncated ? last?.path : undefined, isTruncated)
        }
      }
    )
  })
