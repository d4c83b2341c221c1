/** Divides long answers into messages of limited size. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { GrepMatch } from "../model/Entry.ts"
import { ioError } from "../model/Fault.ts"
import { type Fault, IoError } from "../model/FsError.ts"
import { maxMatchLength, maxPartEntries, maxPartLength, type SkippedEntry } from "./protocol.ts"

const tooLong: Fault = ioError("the answer of the server is longer than the client accepts")

/** The error code for a match that is too long for a message. The client then searches the files itself. */
export const tooLongCode = "EMSGSIZE"

export const lengthOfMatch = ({ after, before, lineContent, path }: GrepMatch): number => {
  let length = path.length + lineContent.length + 120
  for (const line of before ?? []) length += line.length
  for (const line of after ?? []) length += line.length
  return length
}

export const lengthOfPath = ({ path }: { readonly path: string }): number => 2 * path.length + 120

/** The weight of a message without values, so that an endless stream of empty messages also reaches the limit. */
const messageWeight = 1

/** Collects the messages of an answer. Fails if the answer has more values than the client accepts. */
export const collectBounded = <A>(
  messages: Stream.Stream<A, Fault>,
  countOf: (message: A) => number,
  maxValues: number
): Effect.Effect<ReadonlyArray<A>, Fault> =>
  Effect.suspend(() => {
    const collected: Array<A> = []
    let values = 0
    return Effect.as(
      Stream.runForEach(messages, (message) => {
        values += countOf(message) + messageWeight
        if (values > maxValues) return Effect.fail(tooLong)
        collected.push(message)
        return Effect.void
      }),
      collected
    )
  })

/** Splits values into arrays, each of which fits into a message. */
export const split = <A>(values: ReadonlyArray<A>, lengthOf: (value: A) => number): Array<ReadonlyArray<A>> => {
  const out: Array<ReadonlyArray<A>> = []
  let from = 0
  let length = 0
  for (let at = 0; at < values.length; at++) {
    const more = lengthOf(values[at]!)
    if (at > from && (length + more > maxPartLength || at - from === maxPartEntries)) {
      out.push(values.slice(from, at))
      from = at
      length = 0
    }
    length += more
  }
  if (from < values.length) out.push(values.slice(from))
  return out
}

/** Tests whether a name is one segment that stays inside its directory. */
export const isSegment = (name: string): boolean => name !== "" && name !== "." && name !== ".." && !name.includes("/")

export const checkMatches = (operation: string, matches: ReadonlyArray<GrepMatch>): Effect.Effect<void, IoError> => {
  const tooLong = matches.find((match) => lengthOfMatch(match) > maxMatchLength)
  return tooLong === undefined
    ? Effect.void
    : Effect.fail(
        new IoError({ operation, path: tooLong.path, code: tooLongCode, detail: "a matching line is too long for one message" })
      )
}

/** Collects the skipped entries of a search until the next message. */
export const skipsOf = (isWanted: boolean | undefined) => {
  let skips: Array<SkippedEntry> = []
  return {
    options: isWanted === true ? { onSkip: (path: string, why: SkippedEntry["why"]) => void skips.push({ path, why }) } : {},
    take: (): ReadonlyArray<SkippedEntry> => {
      const taken = skips
      skips = []
      return taken
    },
    isEmpty: () => skips.length === 0
  }
}

type Skips = ReturnType<typeof skipsOf>

/** Streams the values in parts, with the entries that were skipped before each part. */
export const streamParts = <A, B, E, R>(
  values: Stream.Stream<A, E, R>,
  lengthOf: (value: A) => number,
  skips: Skips,
  toPart: (values: ReadonlyArray<A>, skips: ReadonlyArray<SkippedEntry>) => B
): Stream.Stream<B, E, R> =>
  Stream.concat(
    Stream.flattenIterable(
      Stream.map(
        Stream.mapArray(values, (array) => [array] as const),
        (array) => split(array, lengthOf).map((part) => toPart(part, skips.take()))
      )
    ),
    Stream.suspend(() => lastSkips(skips, (entries) => toPart([], entries)))
  ).pipe(Stream.rechunk(1))

const lastSkips = <B>(skips: Skips, toPart: (entries: ReadonlyArray<SkippedEntry>) => B): Stream.Stream<B> =>
  skips.isEmpty() ? Stream.empty : Stream.fromIterable(split(skips.take(), lengthOfPath).map(toPart))

/** Streams a complete result in parts. The last part has the fields that are not matches. */
export const resultParts = <A, B>(
  matches: ReadonlyArray<A>,
  lengthOf: (value: A) => number,
  skips: Skips,
  toPart: (values: ReadonlyArray<A>, skips: ReadonlyArray<SkippedEntry>, isLast: boolean) => B
): Stream.Stream<B> => {
  const skipped = split(skips.take(), lengthOfPath).map((entries) => toPart([], entries, false))
  const parts = split(matches, lengthOf)
  const last = parts.pop() ?? []
  return Stream.fromIterable([...skipped, ...parts.map((part) => toPart(part, [], false)), toPart(last, [], true)]).pipe(
    Stream.rechunk(1)
  )
}
