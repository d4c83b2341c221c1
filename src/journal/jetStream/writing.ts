/**
 * Appends to a stream to which other processes append too. Every message names its expected sequence, and the server refuses
 * the message at any other sequence. So a message that is sent again after a lost answer is stored once, and no entry of
 * another process comes between the entries of one append. After a refusal, the writer checks whether the stored message is
 * its own. If the stored message comes from another process, the writer tries the next sequence.
 *
 * Appends that arrive while a message is in flight are sent together in the next message.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { Buffer } from "../../runtime/buffer.ts"
import { randomBytes } from "../../runtime/node.ts"
import type { ContentStore } from "../model.ts"
import { JournalError } from "../errors.ts"
import type { Connection, Refusal } from "./connection.ts"
import * as Messages from "./log.ts"
import type { Log } from "./log.ts"

interface PendingAppend {
  readonly entries: ReadonlyArray<string>
  /** The total length of the entries in characters. */
  readonly size: number
  readonly resume: (answer: Effect.Effect<number, JournalError>) => void
}

/** The largest total length, in characters, of appends that are sent together. A single append may be longer. */
const maxBatchChars = 65_536
const reservedHeaderBytes = 1_024

const wrongLastSequence = 10_071
/** The `err_code`s for exceeded limits of the stream, of the message size, or of the account. */
const limitCodes: ReadonlySet<number> = new Set([10_077, 10_054, 10_023, 10_047, 10_028])

const failure = (reason: "tooLarge" | "unavailable" | "corrupt" | "closed", detail: string): JournalError =>
  new JournalError({ operation: "JetStream.append", reason, detail })

const isPositionTaken = (error: JournalError | Refusal): boolean => error._tag === "Refusal" && error.code === wrongLastSequence

const groupCalls = (calls: ReadonlyArray<PendingAppend>): ReadonlyArray<ReadonlyArray<PendingAppend>> => {
  const groups: Array<Array<PendingAppend>> = []
  let size = Number.POSITIVE_INFINITY
  for (const call of calls) {
    if (size + call.size > maxBatchChars) {
      groups.push([])
      size = 0
    }
    groups.at(-1)!.push(call)
    size += call.size
  }
  return groups
}

/** Appends all encoded entries or no entry, and returns the position of the last entry. */
export type Append = (entries: ReadonlyArray<string>) => Effect.Effect<number, JournalError>

export const make = (
  connection: Connection,
  log: Log,
  contents: ContentStore
): Effect.Effect<Append, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const { jetstream, nats, packages } = connection
    const callQueue = yield* Queue.unbounded<PendingAppend>()
    const openCalls = new Set<PendingAppend>()
    /** The last position in the stream, as far as this process knows. `undefined` at the start and after a failure. */
    let lastKnownPosition: number | undefined
    /** The last position that the server confirmed. The stream must still contain this position. */
    let lastConfirmedPosition = 0

    const headersOf = (fields: Readonly<Record<string, string>>) => {
      const headers = packages.transport.headers()
      for (const [name, value] of Object.entries(fields)) headers.set(name, value)
      return headers
    }

    const refusalError = (refusal: Refusal): JournalError =>
      limitCodes.has(refusal.code)
        ? failure("tooLarge", `a limit of the stream or of the server is exceeded: ${refusal.message}`)
        : failure("unavailable", refusal.message)

    const placeHeaders = (first: number, count: number) => ({ [Messages.header.placeOf]: `${first}/${count}` })

    /** Sends the placeholders of a group after its first message, without waiting. A later writer adds lost placeholders. */
    const sendPlaceholders = (first: number, count: number): void => {
      for (let after = first; after < first + count - 1; after++) {
        const headers = headersOf(placeHeaders(first, count))
        headers.set(packages.jetstream.PubHeaders.ExpectedLastSeqHdr, String(after))
        nats.publish(log.subject, "", { headers })
      }
    }

    /** Adds the missing placeholders of a group after the sequence `from`. Waits until all placeholders exist. */
    const addMissingPlaceholders = (
      { count, sequence: first }: Messages.Message,
      from: number
    ): Effect.Effect<void, JournalError> =>
      Effect.forEach(
        Array.from({ length: first + count - 1 - from }, (_, index) => from + index),
        (after) =>
          connection.call("JetStream.append", () =>
            jetstream.publish(log.subject, "", {
              headers: headersOf(placeHeaders(first, count)),
              expect: { lastSequence: after }
            })
          ),
        { discard: true, concurrency: "unbounded" }
      ).pipe(
        Effect.catchIf(isPositionTaken, () => Effect.void),
        Effect.mapError((error) => (error._tag === "Refusal" ? refusalError(error) : error))
      )

    const completeLastGroup: Effect.Effect<number, JournalError> = Effect.gen(function* () {
      const last = yield* log.last
      if (last === undefined) return 0
      const owner = yield* log.owner(last)
      const end = Messages.endOf(owner)
      if (end > last.sequence) yield* addMissingPlaceholders(owner, last.sequence)
      return Math.max(end, last.sequence)
    })

    const findEnd = Effect.gen(function* () {
      const end = yield* completeLastGroup
      if (end < lastConfirmedPosition) {
        return yield* Effect.fail(
          failure("corrupt", `the stream ends at position ${end}, but position ${lastConfirmedPosition} was already written`)
        )
      }
      return end
    })

    interface Outgoing {
      readonly id: string
      readonly count: number
      readonly data: string
      readonly fields: Readonly<Record<string, string>>
    }

    /** Publishes a message and returns its sequence. Returns `undefined` if another message has taken the sequence. */
    const publish = ({ data, fields, id }: Outgoing, after: number): Effect.Effect<number | undefined, JournalError> =>
      connection
        .call("JetStream.append", () =>
          jetstream.publish(log.subject, data, { headers: headersOf(fields), expect: { lastSequence: after } })
        )
        .pipe(
          Effect.map(({ seq }): number | undefined => seq),
          Effect.catchIf(
            isPositionTaken,
            // The server also refuses a repeated message that is already stored. Check whether the stored message is this
            // message.
            () => Effect.map(log.get(after + 1), (found) => (found?.id === id ? found.sequence : undefined))
          ),
          Effect.mapError((error) =>
            error._tag === "Refusal"
              ? refusalError(error)
              : failure(
                  error.reason === "closed" ? "closed" : "unavailable",
                  `${error.detail}; it is unknown whether the entry was appended`
                )
          )
        )

    const store = (outgoing: Outgoing): Effect.Effect<number, JournalError> =>
      Effect.gen(function* () {
        const after: number = lastKnownPosition ?? (yield* findEnd)
        // The last position is unknown until the message is confirmed.
        lastKnownPosition = undefined
        const first = yield* publish(outgoing, after)
        if (first === undefined) return yield* store(outgoing)
        sendPlaceholders(first, outgoing.count)
        return (lastConfirmedPosition = lastKnownPosition = first + outgoing.count - 1)
      })

    const outgoing = (entries: ReadonlyArray<string>): Effect.Effect<Outgoing, JournalError> =>
      Effect.gen(function* () {
        const id = randomBytes(16).toString("hex")
        const { body, count, id: name } = Messages.header
        const fields = { [name]: id, ...(entries.length === 1 ? {} : { [count]: String(entries.length) }) }
        const data = Messages.joinEntries(entries)
        const bytes = Buffer.byteLength(data)
        if (bytes <= (nats.info?.max_payload ?? 1_048_576) - reservedHeaderBytes)
          return { id, count: entries.length, data, fields }
        const ref = yield* contents.put(Buffer.from(data))
        return { id, count: entries.length, data: "", fields: { ...fields, [body]: `${ref.sha256}/${ref.size}` } }
      })

    const answer = (call: PendingAppend, value: Effect.Effect<number, JournalError>): void => {
      openCalls.delete(call)
      call.resume(value)
    }

    const write = (calls: ReadonlyArray<PendingAppend>): Effect.Effect<void> =>
      Effect.suspend(() => {
        const pendingCalls = calls.filter((call) => openCalls.has(call))
        if (pendingCalls.length === 0) return Effect.void
        const entries = pendingCalls.flatMap((call) => call.entries)
        return Effect.matchCause(Effect.flatMap(outgoing(entries), store), {
          onFailure: (cause) => {
            for (const call of pendingCalls) answer(call, Effect.failCause(cause))
          },
          onSuccess: (last) => {
            let position = last - entries.length
            for (const call of pendingCalls) answer(call, Effect.succeed((position += call.entries.length)))
          }
        })
      })

    yield* Queue.takeAll(callQueue).pipe(
      Effect.flatMap((calls) => Effect.forEach(groupCalls(calls), write, { discard: true })),
      Effect.forever,
      Effect.forkScoped
    )
    const failAll = (): void => {
      for (const call of openCalls) answer(call, Effect.fail(connection.endError()!))
    }
    connection.endListeners.add(failAll)

    return (entries) =>
      Effect.callback((resume) => {
        const ended = connection.endError()
        if (ended !== undefined) return resume(Effect.fail(ended))
        const call: PendingAppend = { entries, size: entries.reduce((size, entry) => size + entry.length, 0), resume }
        openCalls.add(call)
        Queue.offerUnsafe(callQueue, call)
        return Effect.sync(() => void openCalls.delete(call))
      })
  })
