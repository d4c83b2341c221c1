import * as Effect from "effect/Effect"
import type { ContentStore } from "../ContentStore.ts"
import type { Recorded } from "../Journal.ts"
import { JournalError } from "../errors.ts"
import type { Following } from "./following.ts"
import type { Log } from "./log.ts"
import * as Messages from "./messages.ts"

export interface Reading<E> {
  readonly read: (after: number, limit: number) => Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError>
  readonly readBackward: (before: number, limit: number) => Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError>
}

const concurrency = 64
const maxPagePositions = 128

const isError = (found: unknown): found is JournalError => found instanceof JournalError

/** Returns the entries before the first unreadable one; fails if the first one is unreadable. */
const readablePrefix = <E>(
  found: ReadonlyArray<Messages.EntryOrError<E>>
): Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError> => {
  const problem = found.findIndex(isError)
  if (problem === -1) return Effect.succeed(found as ReadonlyArray<Recorded<E>>)
  return problem === 0
    ? Effect.fail(found[0] as JournalError)
    : Effect.succeed(found.slice(0, problem) as ReadonlyArray<Recorded<E>>)
}

export const make = <E>(log: Log, following: Following, contents: ContentStore, codec: Messages.Codec<E>): Reading<E> => {
  const { recent } = following

  const parsed = (message: Messages.Message): Effect.Effect<Messages.Parsed, JournalError> => {
    if (message.body === undefined) return Effect.succeed(Messages.parse(message.data, message.sequence, message.count))
    return contents.get(message.body).pipe(
      Effect.map((data) => Messages.parse(data, message.sequence, message.count)),
      Effect.catchIf(
        (error) => error.reason === "corrupt",
        (error) => Effect.succeed(error)
      )
    )
  }

  /** A message whose entries fill several pages, cached so that it is parsed once. */
  let largeMessage: { readonly message: Messages.Message; readonly parsed: Messages.Parsed } | undefined

  const entriesOf = (
    message: Messages.Message,
    from: number,
    to: number
  ): Effect.Effect<ReadonlyArray<Messages.EntryOrError<E>>, JournalError> =>
    Effect.map(
      largeMessage?.message.sequence === message.sequence ? Effect.succeed(largeMessage.parsed) : parsed(message),
      (parsed) => {
        if (message.count > maxPagePositions) largeMessage = { message, parsed }
        const found: Array<Messages.EntryOrError<E>> = []
        for (let at = Math.max(from, message.sequence); at <= Math.min(to, Messages.endOf(message)); at++) {
          found.push(codec.decode(parsed, at, at - message.sequence))
        }
        return found
      }
    )

  /**
   * Returns the message that carries the entry at the position. The found message may be that message, a place keeper of its group, or
   * missing.
   */
  const findCarrier = (found: Messages.Message | undefined, position: number): Effect.Effect<Messages.Message, JournalError> =>
    Effect.gen(function* () {
      const message = found ?? (yield* log.last)
      const owner = message && (yield* log.owner(message))
      if (owner !== undefined && owner.sequence <= position && position <= Messages.endOf(owner)) return owner
      const detail = `there is nothing at ${position} in the stream ${log.name}`
      return yield* Effect.fail(new JournalError({ operation: "JetStream.read", reason: "corrupt", position, detail }))
    })

  /** Reads some or all of the positions from the server, beginning with the first. */
  const readFromServer = (from: number, to: number): Effect.Effect<ReadonlyArray<Messages.EntryOrError<E>>, JournalError> =>
    Effect.gen(function* () {
      if (largeMessage !== undefined && largeMessage.message.sequence <= from && from <= Messages.endOf(largeMessage.message)) {
        return yield* entriesOf(largeMessage.message, from, to)
      }
      const messages = yield* Effect.forEach(
        Array.from({ length: to - from + 1 }, (_, index) => from + index),
        log.get,
        { concurrency }
      )
      const found: Array<Messages.EntryOrError<E>> = []
      while (found.length < messages.length) {
        const position = from + found.length
        const message = yield* findCarrier(messages[position - from], position)
        for (const one of yield* entriesOf(message, position, to)) found.push(one)
      }
      return found
    })

  const readFromCache = (from: number, to: number): Effect.Effect<ReadonlyArray<Messages.EntryOrError<E>>, JournalError> =>
    Effect.map(
      Effect.forEach(
        recent.messagesFrom(from, to - from + 1).filter(({ sequence }) => sequence <= to),
        (message) => entriesOf(message, from, to)
      ),
      (found) => found.flat()
    )

  const readRange = (from: number, to: number): Effect.Effect<ReadonlyArray<Messages.EntryOrError<E>>, JournalError> =>
    Effect.suspend(() =>
      from > recent.positionBefore() && to <= recent.end() ? readFromCache(from, to) : readFromServer(from, to)
    )

  const read: Reading<E>["read"] = (after, limit) =>
    Effect.suspend(() => {
      const page = (end: number): ReturnType<Reading<E>["read"]> =>
        end <= after
          ? Effect.succeed([])
          : Effect.flatMap(readRange(after + 1, Math.min(after + limit, after + maxPagePositions, end)), readablePrefix)
      // Only the server knows whether this is the end, but an entry that arrives meanwhile answers the read as well.
      return recent.end() > after
        ? page(recent.end())
        : Effect.flatMap(Effect.raceFirst(log.end, Effect.map(following.changed(after), recent.end)), page)
    })

  return {
    read: (after, limit) => (limit <= 0 ? Effect.succeed([]) : read(Math.max(0, after), limit)),
    readBackward: (before, limit) =>
      Effect.flatMap(log.end, (end) => {
        const to = Math.min(end, before - 1)
        if (to < 1 || limit <= 0) return Effect.succeed([])
        return Effect.flatMap(readRange(Math.max(1, to - Math.min(limit, maxPagePositions) + 1), to), (found) =>
          readablePrefix(found.toReversed())
        )
      })
  }
}
