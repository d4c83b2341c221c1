import type { JsMsg } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ContentStore, Recorded } from "../model.ts"
import { JournalError } from "../errors.ts"
import * as Signal from "../../runtime/signal.ts"
import type { Connection } from "./connection.ts"
import * as Messages from "./log.ts"
import { endOf, type Log, type Message } from "./log.ts"

interface Recent {
  /** The position before the first cached message. */
  readonly positionBefore: () => number
  readonly end: () => number
  readonly add: (message: Message) => void
  /**
   * Returns at most `limit` messages, beginning with the message that contains the position. The position must be after
   * `positionBefore()`.
   */
  readonly messagesFrom: (position: number, limit: number) => ReadonlyArray<Message>
}

const maxCachedBytes = 8 * 1024 * 1024
const messageOverheadBytes = 300

const makeRecent = (start: number): Recent => {
  let messages: Array<Message> = []
  let firstIndex = 0
  let positionBefore = start
  let end = start
  let bytes = 0

  const evictOldest = (): void => {
    while (bytes > maxCachedBytes && firstIndex < messages.length - 1) {
      const dropped = messages[firstIndex++]!
      bytes -= dropped.data.length + messageOverheadBytes
      positionBefore = endOf(dropped)
    }
    if (firstIndex > 1024 && firstIndex > messages.length / 2) {
      messages = messages.slice(firstIndex)
      firstIndex = 0
    }
  }

  const indexOf = (position: number): number => {
    let low = firstIndex
    let high = messages.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (endOf(messages[middle]!) < position) low = middle + 1
      else high = middle
    }
    return low
  }

  return {
    positionBefore: () => positionBefore,
    end: () => end,
    add: (message) => {
      messages.push(message)
      bytes += message.data.length + messageOverheadBytes
      end = endOf(message)
      evictOldest()
    },
    messagesFrom: (position, limit) => {
      const index = indexOf(position)
      return messages.slice(index, index + limit)
    }
  }
}

// Follows the stream with an ordered consumer that starts at the end of the stream. The consumer is re-created after every
// reconnection, and when the server did not deliver a message.

interface Following {
  readonly recent: Recent
  readonly changed: (after: number) => Effect.Effect<void, JournalError>
}

/** The time between two checks for messages that the server did not deliver. */
const checkInterval = "5 seconds"
const deliveryGrace = "1 second"

export const makeFollowing = (
  connection: Connection,
  log: Log,
  start: number
): Effect.Effect<Following, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const recent = makeRecent(start)
    const signal = Signal.make()
    const { endError: ended } = connection
    let lastSequence = start
    let isBroken = false

    /** Accepts a message. Returns false if an earlier message is missing. */
    const take = ({ data, headers, seq }: JsMsg): boolean => {
      if (seq <= lastSequence) return true
      if (seq !== lastSequence + 1) return false
      lastSequence = seq
      // Ignore a placeholder, because its entry has already arrived with the first message of its group.
      if (seq > recent.end()) {
        recent.add(Messages.make(seq, data.slice(), headers))
        signal.wake()
      }
      return true
    }

    const consume = connection.ask("JetStream.tail", async () => {
      const consumer = await connection.jetstream.consumers.getPushConsumer(log.name, { opt_start_seq: lastSequence + 1 })
      isBroken = false
      const messages = await consumer.consume({
        callback: (message) => {
          if (isBroken || take(message)) return
          isBroken = true
          connection.changes.wake()
        }
      })
      return { consumer, messages }
    })
    /** Deletes the consumer. Ignores a failure, because the server later removes an unused consumer by itself. */
    const release = ({ consumer, messages }: Effect.Success<typeof consume>) =>
      Effect.andThen(
        Effect.sync(() => messages.stop()),
        Effect.ignore(connection.sendOnce("JetStream.tail", () => consumer.delete()))
      )

    /** The wait for a message that the server has stored but not delivered within `deliveryGrace`. */
    const waitUntilBehind: Effect.Effect<void, JournalError> = Effect.sleep(checkInterval).pipe(
      Effect.andThen(log.last),
      Effect.tap(() => Effect.sleep(deliveryGrace)),
      Effect.flatMap((last) => (last !== undefined && last.sequence > lastSequence ? Effect.void : waitUntilBehind))
    )

    const consumeUntilOver = Effect.gen(function* () {
      const epoch = connection.epoch()
      yield* Effect.acquireRelease(consume, release)
      const isOver = (): boolean => isBroken || connection.epoch() !== epoch || ended() !== undefined
      const waitUntilOver: Effect.Effect<void> = Effect.flatMap(connection.changes.wait(isOver), () =>
        isOver() ? Effect.void : waitUntilOver
      )
      yield* Effect.raceFirst(waitUntilOver, waitUntilBehind)
    })

    yield* Effect.whileLoop({
      while: () => ended() === undefined,
      // Pause between attempts, so that a refusing server is not flooded with requests.
      body: () => Effect.catch(Effect.scoped(consumeUntilOver), () => Effect.sleep(deliveryGrace)),
      step: () => {}
    }).pipe(Effect.forkScoped)
    connection.endListeners.add(signal.wake)

    const changed = (after: number): Effect.Effect<void, JournalError> =>
      Effect.suspend(() => {
        if (recent.end() > after) return Effect.void
        const error = ended()
        const wait = signal.wait(() => recent.end() > after || ended() !== undefined)
        return error === undefined ? Effect.flatMap(wait, () => changed(after)) : Effect.fail(error)
      })

    return { recent, changed }
  })

interface Reading<E> {
  readonly read: (after: number, limit: number) => Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError>
  readonly readBackward: (before: number, limit: number) => Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError>
}

const concurrency = 64
const maxPagePositions = 128

const isError = (found: unknown): found is JournalError => found instanceof JournalError

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

  /** The latest message whose entries fill several pages. The cache avoids parsing the message once per page. */
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
   * Returns the message that carries the entry at the position. `found` is the message at the position: this message, a
   * placeholder, or `undefined`.
   */
  const findCarrier = (found: Messages.Message | undefined, position: number): Effect.Effect<Messages.Message, JournalError> =>
    Effect.gen(function* () {
      const message = found ?? (yield* log.last)
      const owner = message && (yield* log.owner(message))
      if (owner !== undefined && owner.sequence <= position && position <= Messages.endOf(owner)) return owner
      const detail = `the stream ${log.name} has no message for position ${position}`
      return yield* Effect.fail(new JournalError({ operation: "JetStream.read", reason: "corrupt", position, detail }))
    })

  /** Reads the entries at the positions `from` to `to` from the server. May return only the first entries of the range. */
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
      // Ask the server for the last position. If an entry arrives before the answer, stop waiting for the answer.
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
