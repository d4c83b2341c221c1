/** Entries by position: out of the latest messages where they reach so far back, from the server otherwise. */
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

/** Requests that are under way at once. */
const concurrency = 64
/** Positions of a page that is asked for, however many are wanted. */
const most = 128

const isError = (found: unknown): found is JournalError => found instanceof JournalError

/** What comes before the first that cannot be read; that failure where nothing does. */
const readable = <E>(found: ReadonlyArray<Messages.Found<E>>): Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError> => {
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

  /** Of a message whose entries fill several pages, so that it is not taken apart for each of them. */
  let large: { readonly message: Messages.Message; readonly parsed: Messages.Parsed } | undefined

  /** What the message carries of the positions. */
  const entriesOf = (
    message: Messages.Message,
    from: number,
    to: number
  ): Effect.Effect<ReadonlyArray<Messages.Found<E>>, JournalError> =>
    Effect.map(large?.message.sequence === message.sequence ? Effect.succeed(large.parsed) : parsed(message), (parsed) => {
      if (message.count > most) large = { message, parsed }
      const found: Array<Messages.Found<E>> = []
      for (let at = Math.max(from, message.sequence); at <= Math.min(to, Messages.endOf(message)); at++) {
        found.push(codec.decode(parsed, at, at - message.sequence))
      }
      return found
    })

  /** The message that carries what stands at the position, which is this one, belongs to it, or is not there yet. */
  const carrier = (found: Messages.Message | undefined, position: number): Effect.Effect<Messages.Message, JournalError> =>
    Effect.gen(function* () {
      const message = found ?? (yield* log.last)
      const owner = message && (yield* log.owner(message))
      if (owner !== undefined && owner.sequence <= position && position <= Messages.endOf(owner)) return owner
      const detail = `there is nothing at ${position} in the stream ${log.name}`
      return yield* Effect.fail(new JournalError({ operation: "JetStream.read", reason: "corrupt", position, detail }))
    })

  /** The positions, or the first of them, from the server. */
  const fetched = (from: number, to: number): Effect.Effect<ReadonlyArray<Messages.Found<E>>, JournalError> =>
    Effect.gen(function* () {
      if (large !== undefined && large.message.sequence <= from && from <= Messages.endOf(large.message)) {
        return yield* entriesOf(large.message, from, to)
      }
      const messages = yield* Effect.forEach(
        Array.from({ length: to - from + 1 }, (_, index) => from + index),
        log.get,
        { concurrency }
      )
      const found: Array<Messages.Found<E>> = []
      while (found.length < messages.length) {
        const position = from + found.length
        const message = yield* carrier(messages[position - from], position)
        for (const one of yield* entriesOf(message, position, to)) found.push(one)
      }
      return found
    })

  const remembered = (from: number, to: number): Effect.Effect<ReadonlyArray<Messages.Found<E>>, JournalError> =>
    Effect.map(
      Effect.forEach(
        recent.from(from, to - from + 1).filter(({ sequence }) => sequence <= to),
        (message) => entriesOf(message, from, to)
      ),
      (found) => found.flat()
    )

  const range = (from: number, to: number): Effect.Effect<ReadonlyArray<Messages.Found<E>>, JournalError> =>
    Effect.suspend(() => (from > recent.before() && to <= recent.end() ? remembered(from, to) : fetched(from, to)))

  const read: Reading<E>["read"] = (after, limit) =>
    Effect.suspend(() => {
      const page = (end: number): ReturnType<Reading<E>["read"]> =>
        end <= after
          ? Effect.succeed([])
          : Effect.flatMap(range(after + 1, Math.min(after + limit, after + most, end)), readable)
      // Only the server knows whether this is the end; but what comes meanwhile is as good an answer.
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
        return Effect.flatMap(range(Math.max(1, to - Math.min(limit, most) + 1), to), (found) => readable(found.toReversed()))
      })
  }
}
