/**
 * Appends to a stream that other processes append to as well. Every message names its expected sequence, and the server refuses it anywhere
 * else. So a message that is sent again after a lost answer is stored once, and no foreign entry comes between entries of one append. A
 * refused writer checks whether the message at that sequence is its own, and otherwise tries the next one.
 *
 * Appends that arrive while a message is in flight are sent together in the next message.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { Buffer } from "../../runtime/buffer.ts"
import { randomBytes } from "../../runtime/node.ts"
import type { ContentStore } from "../ContentStore.ts"
import { JournalError } from "../errors.ts"
import type { Connection, Refusal } from "./connection.ts"
import type { Log } from "./log.ts"
import * as Messages from "./messages.ts"

interface Call {
  readonly entries: ReadonlyArray<string>
  /** The sum of the lengths in characters. */
  readonly size: number
  readonly resume: (answer: Effect.Effect<number, JournalError>) => void
}

/** The largest size in characters of appends that are sent together; a single append may be larger. */
const most = 65_536
const room = 1_024

const wrongLastSequence = 10_071
/** The `err_code`s of exceeded limits: of the stream, the message size, or the account. */
const full: ReadonlySet<number> = new Set([10_077, 10_054, 10_023, 10_047, 10_028])

const failure = (reason: "tooLarge" | "unavailable" | "corrupt" | "closed", detail: string): JournalError =>
  new JournalError({ operation: "JetStream.append", reason, detail })

const isTaken = (error: JournalError | Refusal): boolean => error._tag === "Refusal" && error.code === wrongLastSequence

const grouped = (calls: ReadonlyArray<Call>): ReadonlyArray<ReadonlyArray<Call>> => {
  const groups: Array<Array<Call>> = []
  let size = Number.POSITIVE_INFINITY
  for (const call of calls) {
    if (size + call.size > most) {
      groups.push([])
      size = 0
    }
    groups.at(-1)!.push(call)
    size += call.size
  }
  return groups
}

/** Appends all encoded entries or none, and returns the position of the last. */
export type Append = (entries: ReadonlyArray<string>) => Effect.Effect<number, JournalError>

export const make = (
  connection: Connection,
  log: Log,
  contents: ContentStore
): Effect.Effect<Append, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const { jetstream, nats, packages } = connection
    const waiting = yield* Queue.unbounded<Call>()
    const open = new Set<Call>()
    /** The last taken position that this process knows; `undefined` after a failure. */
    let tip: number | undefined
    /** The last position that was confirmed, and therefore must still exist. */
    let answered = 0

    const headersOf = (fields: Readonly<Record<string, string>>) => {
      const headers = packages.transport.headers()
      for (const [name, value] of Object.entries(fields)) headers.set(name, value)
      return headers
    }

    const refused = (refusal: Refusal): JournalError =>
      full.has(refusal.code)
        ? failure("tooLarge", `the stream takes no more: ${refusal.message}`)
        : failure("unavailable", refusal.message)

    const placeOf = (first: number, count: number) => ({ [Messages.header.placeOf]: `${first}/${count}` })

    /**
     * Sends the place keepers after the first message of a group, without waiting. A process that finds a missing one adds it.
     */
    const keepPlaces = (first: number, count: number): void => {
      for (let after = first; after < first + count - 1; after++) {
        const headers = headersOf(placeOf(first, count))
        headers.set(packages.jetstream.PubHeaders.ExpectedLastSeqHdr, String(after))
        nats.publish(log.subject, "", { headers })
      }
    }

    /** Adds the place keepers after sequence `from` for a group whose writer has not added them, and waits until they exist. */
    const putPlaces = ({ count, sequence: first }: Messages.Message, from: number): Effect.Effect<void, JournalError> =>
      Effect.forEach(
        Array.from({ length: first + count - 1 - from }, (_, index) => from + index),
        (after) =>
          connection.call("JetStream.append", () =>
            jetstream.publish(log.subject, "", { headers: headersOf(placeOf(first, count)), expect: { lastSequence: after } })
          ),
        { discard: true, concurrency: "unbounded" }
      ).pipe(
        Effect.catchIf(isTaken, () => Effect.void),
        Effect.mapError((error) => (error._tag === "Refusal" ? refused(error) : error))
      )

    /** Returns the last taken position, after adding missing place keepers. */
    const settle: Effect.Effect<number, JournalError> = Effect.gen(function* () {
      const last = yield* log.last
      if (last === undefined) return 0
      const owner = yield* log.owner(last)
      const end = Messages.endOf(owner)
      if (end > last.sequence) yield* putPlaces(owner, last.sequence)
      return Math.max(end, last.sequence)
    })

    const find = Effect.gen(function* () {
      const end = yield* settle
      if (end < answered) {
        return yield* Effect.fail(failure("corrupt", `the stream ends at ${end}, and had ${answered} entries`))
      }
      return end
    })

    interface Outgoing {
      readonly id: string
      readonly count: number
      readonly data: string
      readonly fields: Readonly<Record<string, string>>
    }

    /** Publishes a message and returns its sequence; `undefined` if another message has the place. */
    const publish = ({ data, fields, id }: Outgoing, after: number): Effect.Effect<number | undefined, JournalError> =>
      connection
        .call("JetStream.append", () =>
          jetstream.publish(log.subject, data, { headers: headersOf(fields), expect: { lastSequence: after } })
        )
        .pipe(
          Effect.map(({ seq }): number | undefined => seq),
          Effect.catchIf(
            isTaken,
            // A message that is sent again after a lost answer is refused because it is already stored.
            () => Effect.map(log.get(after + 1), (found) => (found?.id === id ? found.sequence : undefined))
          ),
          Effect.mapError((error) =>
            error._tag === "Refusal"
              ? refused(error)
              : failure(
                  error.reason === "closed" ? "closed" : "unavailable",
                  `${error.detail}; whether it was appended is not known`
                )
          )
        )

    const store = (outgoing: Outgoing): Effect.Effect<number, JournalError> =>
      Effect.gen(function* () {
        const after: number = tip ?? (yield* find)
        // The last position is unknown until the message is confirmed.
        tip = undefined
        const first = yield* publish(outgoing, after)
        if (first === undefined) return yield* store(outgoing)
        keepPlaces(first, outgoing.count)
        return (answered = tip = first + outgoing.count - 1)
      })

    const outgoing = (entries: ReadonlyArray<string>): Effect.Effect<Outgoing, JournalError> =>
      Effect.gen(function* () {
        const id = randomBytes(16).toString("hex")
        const { body, count, id: name } = Messages.header
        const fields = { [name]: id, ...(entries.length === 1 ? {} : { [count]: String(entries.length) }) }
        const data = Messages.join(entries)
        const bytes = Buffer.byteLength(data)
        if (bytes <= (nats.info?.max_payload ?? 1_048_576) - room) return { id, count: entries.length, data, fields }
        const ref = yield* contents.put(Buffer.from(data))
        return { id, count: entries.length, data: "", fields: { ...fields, [body]: `${ref.sha256}/${ref.size}` } }
      })

    const answer = (call: Call, value: Effect.Effect<number, JournalError>): void => {
      open.delete(call)
      call.resume(value)
    }

    const write = (calls: ReadonlyArray<Call>): Effect.Effect<void> =>
      Effect.suspend(() => {
        const meant = calls.filter((call) => open.has(call))
        if (meant.length === 0) return Effect.void
        const entries = meant.flatMap((call) => call.entries)
        return Effect.matchCause(Effect.flatMap(outgoing(entries), store), {
          onFailure: (cause) => {
            for (const call of meant) answer(call, Effect.failCause(cause))
          },
          onSuccess: (last) => {
            let position = last - entries.length
            for (const call of meant) answer(call, Effect.succeed((position += call.entries.length)))
          }
        })
      })

    yield* Queue.takeAll(waiting).pipe(
      Effect.flatMap((calls) => Effect.forEach(grouped(calls), write, { discard: true })),
      Effect.forever,
      Effect.forkScoped
    )
    const abandon = (): void => {
      for (const call of open) answer(call, Effect.fail(connection.ended()!))
    }
    connection.ending.add(abandon)

    return (entries) =>
      Effect.callback((resume) => {
        const ended = connection.ended()
        if (ended !== undefined) return resume(Effect.fail(ended))
        const call: Call = { entries, size: entries.reduce((size, entry) => size + entry.length, 0), resume }
        open.add(call)
        Queue.offerUnsafe(waiting, call)
        return Effect.sync(() => void open.delete(call))
      })
  })
