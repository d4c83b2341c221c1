/**
 * Runs searches, walks, versions and copies on the server, where the files are.
 *
 * The server runs the same engine, so an answer equals the answer that the client would derive from the port. If no message can
 * carry the arguments of a call, the client derives the call, which fails as on every other filesystem.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FileEntry } from "../model/Entry.ts"
import { ioError } from "../model/Fault.ts"
import { type Fault, type FsError, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, type LimitsShape } from "../model/Limits.ts"
import type { Connection } from "./connection.ts"
import { collectBounded, isSegment, tooLongCode } from "./parts.ts"
import {
  type CallLimits,
  GlobOptions,
  GlobPattern,
  GrepOptions,
  GrepPattern,
  type SkippedEntry,
  WalkOptions
} from "./protocol.ts"

const isGlobOptions = Schema.is(GlobOptions)
const isGlobPattern = Schema.is(GlobPattern)
const isGrepOptions = Schema.is(GrepOptions)
const isGrepPattern = Schema.is(GrepPattern)
const isWalkOptions = Schema.is(WalkOptions)

type OnSkip = ((path: string, why: SkippedEntry["why"]) => void) | undefined

/** Returns the options for a message: all except `onSkip` and undefined values. */
const sent = (options: object | undefined): Record<string, unknown> =>
  Object.fromEntries(Object.entries(options ?? {}).filter(([key, value]) => key !== "onSkip" && value !== undefined))

const limitsOf = ({ maxArchiveBytes: _, maxArchiveEntries: __, maxStreamBytes, ...limits }: LimitsShape): CallLimits => ({
  ...limits,
  ...(maxStreamBytes !== undefined && { maxStreamBytes })
})

const patternOf = (pattern: unknown): unknown =>
  pattern instanceof RegExp ? { source: pattern.source, flags: pattern.flags } : pattern

/** The maximum number of skipped entries of one search that a client accepts. */
const maxSkips = 1_000_000

/** The maximum number of messages without matches that a client accepts. An honest server sends few of them. */
const maxEmptyMessages = 10_000

const incompleteAnswer = ioError("the answer of the server is incomplete: its final part is missing")

const report = (skips: ReadonlyArray<SkippedEntry>, onSkip: OnSkip): void => {
  if (onSkip !== undefined) for (const { path, why } of skips) onSkip(path, why)
}

/** Refuses paths that lead out of the walked directory, because the caller may use them on another filesystem. */
const checkEntries = (entries: ReadonlyArray<FileEntry>): Effect.Effect<ReadonlyArray<FileEntry>, Fault> => {
  const wrong = entries.find(({ addressable, name, path }) => {
    const segments = path.split("/")
    return segments.at(-1) !== name || !segments.every(isSegment) || (addressable && FsPath.parse(path) !== path)
  })
  return wrong === undefined
    ? Effect.succeed(entries)
    : Effect.fail(ioError(`the server found the path ${JSON.stringify(wrong.path)}, which no entry can have`))
}

export const make = (connection: Connection, derived: Algebra): Algebra => {
  const { change, ask, send, stream } = connection
  const { locks, rules } = derived.port

  const failWith =
    <E>(operation: string, path: string) =>
    (fault: Fault): E =>
      promote(fault, operation, path) as E

  /** Streams parts with the limits of the caller. */
  const parts = <Part extends { readonly skips: ReadonlyArray<SkippedEntry> }, A, E>(
    operation: string,
    path: string,
    onSkip: OnSkip,
    request: (limits: CallLimits) => Parameters<typeof stream<Part>>[1],
    valuesOf: (part: Part) => Effect.Effect<ReadonlyArray<A>, Fault>
  ): Stream.Stream<A, E> =>
    Stream.unwrap(
      Effect.withFiber((fiber) => {
        const received = Stream.mapArray(stream(path, request(limitsOf(fiber.getRef(Limits)))), (array) => {
          for (const { skips } of array) report(skips, onSkip)
          return array
        })
        return Effect.succeed(
          Stream.mapError(Stream.flattenIterable(Stream.mapEffect(received, valuesOf)), failWith<E>(operation, path))
        )
      })
    )

  /** Collects the parts of one result. */
  const collect = <
    Part extends {
      readonly matches: ReadonlyArray<unknown>
      readonly skips: ReadonlyArray<SkippedEntry>
      readonly end?: object
    },
    E
  >(
    operation: string,
    path: string,
    onSkip: OnSkip,
    maxMatches: number | undefined,
    limit: "maxGlobMatches" | "maxGrepMatches",
    request: (limits: CallLimits) => Parameters<typeof stream<Part>>[1]
  ): Effect.Effect<Pick<Part, "matches"> & NonNullable<Part["end"]>, E> =>
    Effect.withFiber((fiber) => {
      // Each match may come in a message of its own.
      const maxValues =
        2 * (maxMatches ?? fiber.getRef(Limits)[limit]) + (onSkip === undefined ? 0 : maxSkips) + maxEmptyMessages
      const messages = stream(path, request(limitsOf(fiber.getRef(Limits))))
      const countOf = ({ matches, skips }: Part): number => matches.length + skips.length
      return Effect.matchEffect(collectBounded(messages, countOf, maxValues), {
        onFailure: (fault) => Effect.fail(failWith<E>(operation, path)(fault)),
        onSuccess: (received) => {
          const end = received.at(-1)?.end
          if (end === undefined) return Effect.fail(failWith<E>(operation, path)(incompleteAnswer))
          for (const { skips } of received) report(skips, onSkip)
          return Effect.succeed({ matches: received.flatMap(({ matches }) => matches), ...end } as Pick<Part, "matches"> &
            typeof end)
        }
      })
    })

  const skipsOf = (onSkip: unknown) => (typeof onSkip === "function" ? { skips: true } : {})
  const pathOf = (options: { readonly path?: unknown }): string => (typeof options.path === "string" ? options.path : ".")
  const acceptsSkips = (onSkip: unknown): boolean => onSkip === undefined || typeof onSkip === "function"

  return {
    ...derived,
    walk: (path, options) => {
      const onSkip = options?.onSkip
      const rest = sent(options)
      if ((path !== undefined && typeof path !== "string") || !isWalkOptions(rest) || !acceptsSkips(onSkip)) {
        return derived.walk(path, options)
      }
      const at = path ?? "."
      return parts(
        "walk",
        at,
        onSkip,
        (limits) => send("walk", { limits, path: at, options: rest, ...skipsOf(onSkip) }),
        ({ entries }) => checkEntries(entries)
      )
    },
    glob: (pattern, options) => {
      const onSkip = options?.onSkip
      const rest = sent(options)
      if (!isGlobPattern(pattern) || !isGlobOptions(rest) || !acceptsSkips(onSkip)) return derived.glob(pattern, options)
      return collect("glob", pathOf(rest), onSkip, rest.maxMatches, "maxGlobMatches", (limits) =>
        send("glob", { limits, pattern, options: rest, ...skipsOf(onSkip) })
      )
    },
    globStream: (pattern, options) => {
      const onSkip = options?.onSkip
      const rest = sent(options)
      if (!isGlobPattern(pattern) || !isGlobOptions(rest) || !acceptsSkips(onSkip)) return derived.globStream(pattern, options)
      return parts(
        "globStream",
        pathOf(rest),
        onSkip,
        (limits) => send("globStream", { limits, pattern, options: rest, ...skipsOf(onSkip) }),
        ({ matches }) => Effect.succeed(matches)
      )
    },
    grep: (pattern, options) => {
      const onSkip = options?.onSkip
      const rest = sent(options)
      const text = patternOf(pattern)
      if (!isGrepPattern(text) || !isGrepOptions(rest) || !acceptsSkips(onSkip)) return derived.grep(pattern, options)
      const found: ReturnType<Algebra["grep"]> = collect(
        "grep",
        pathOf(rest),
        onSkip,
        rest.maxMatches,
        "maxGrepMatches",
        (limits) => send("grep", { limits, pattern: text, options: rest, ...skipsOf(onSkip) })
      )
      return Effect.catch(found, (error) =>
        error._tag === "IoError" && error.code === tooLongCode ? derived.grep(pattern, options) : Effect.fail(error)
      )
    },
    grepStream: (pattern, options) => {
      const onSkip = options?.onSkip
      const rest = sent(options)
      const text = patternOf(pattern)
      if (!isGrepPattern(text) || !isGrepOptions(rest) || !acceptsSkips(onSkip)) return derived.grepStream(pattern, options)
      return parts(
        "grepStream",
        pathOf(rest),
        onSkip,
        (limits) => send("grepStream", { limits, pattern: text, options: rest, ...skipsOf(onSkip) }),
        ({ matches }) => Effect.succeed(matches)
      )
    },
    version: (path) =>
      typeof path !== "string"
        ? derived.version(path)
        : Effect.withFiber((fiber) =>
            Effect.mapError(
              ask(path, send("version", { limits: limitsOf(fiber.getRef(Limits)), path })),
              failWith<Effect.Error<ReturnType<Algebra["version"]>>>("version", path)
            )
          ),
    copy: (from, to, options) => {
      const target = FsPath.parse(to, rules?.policy)
      const rest = sent(options)
      const { overwrite, ...unknown } = rest
      const isPlain = Object.keys(unknown).length === 0 && (overwrite === undefined || typeof overwrite === "boolean")
      if (typeof from !== "string" || typeof target !== "string" || !isPlain || locks === undefined) {
        return derived.copy(from, to, options)
      }
      return Effect.withFiber((fiber) => {
        const limits = limitsOf(fiber.getRef(Limits))
        const copied = change(from, (id) =>
          send("copy", { id, limits, from, to, ...(typeof overwrite === "boolean" && { overwrite }) })
        )
        return Effect.mapError(
          locks.exclusive([target], copied),
          failWith<FsError & Effect.Error<ReturnType<Algebra["copy"]>>>("copy", from)
        )
      })
    }
  }
}
