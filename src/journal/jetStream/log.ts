import type { StreamConfig } from "@nats-io/jetstream"
import type { MsgHdrs } from "@nats-io/transport-node"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ContentRef } from "../FileSystemEntry.ts"
import type { Recorded } from "../model.ts"
import { JournalError } from "../errors.ts"
import { type Connection, creationRetryOptions, type Refusal } from "./connection.ts"
import type { Options } from "./options.ts"

// The messages of the stream. Most messages carry one entry, and the position of the entry is the sequence of its message.
// Entries that are appended together must appear together, but the server stores one message at a time. So the first message
// carries all entries of the append. Each later message is a placeholder, which only reserves a position, so that each
// position is the sequence of a message.

export const header = {
  /** The id of the message, also when it is sent again. A writer that lost the answer recognises its own message by this id. */
  id: "Fs-Algebra-Append",
  count: "Fs-Algebra-Count",
  /**
   * `<sequence of the first message>/<number of messages>`. Marks a placeholder for an entry that the first message carries.
   */
  placeOf: "Fs-Algebra-Place-Of",
  /** `<sha256>/<size in bytes>`. Refers to a body in the object store, if the body is too large for a message. */
  body: "Fs-Algebra-Body"
} as const

/** The version of the message format. Messages of a later version are not read. */
const version = 1

export interface Message {
  readonly sequence: number
  readonly data: Uint8Array
  /** The id of the append. Empty if the message carries no entries. */
  readonly id: string
  readonly body: ContentRef | undefined
  /** The number of positions that the entries of the message take, beginning with the message's own sequence. */
  readonly count: number
  readonly place: { readonly first: number; readonly count: number } | undefined
}

/** Parses a positive safe integer in decimal digits. `Number` would also accept other forms, such as "0x10". */
const parseInteger = (text = ""): number | undefined => {
  const value = Number(text)
  return /^[1-9][0-9]*$/.test(text) && Number.isSafeInteger(value) ? value : undefined
}

const parseBody = (text: string): ContentRef | undefined => {
  const [, sha256, digits] = /^([0-9a-f]{64})\/([0-9]+)$/.exec(text) ?? []
  const size = parseInteger(digits)
  return sha256 === undefined || size === undefined ? undefined : { sha256, size }
}

const parsePlace = (text: string): Message["place"] => {
  const [, ...digits] = /^([0-9]+)\/([0-9]+)$/.exec(text) ?? []
  const [first, count] = digits.map(parseInteger)
  return first === undefined || count === undefined ? undefined : { first, count }
}

/** Parses any message of the stream. A message that no journal wrote counts as one position. */
export const make = (sequence: number, data: Uint8Array, headers: MsgHdrs | undefined): Message => {
  const read = (name: string): string => headers?.get(name) ?? ""
  const id = read(header.id)
  const body = parseBody(read(header.body))
  const count = parseInteger(read(header.count)) ?? 1
  // Limit the count by the length of the body, because the count may be forged.
  const maxCount = body === undefined ? data.length : body.size
  return {
    sequence,
    data,
    id,
    body,
    count: id !== "" && count <= maxCount ? count : 1,
    place: parsePlace(read(header.placeOf))
  }
}

export const endOf = ({ count, sequence }: Message): number => sequence + count - 1

export type EntryOrError<E> = Recorded<E> | JournalError

export type Parsed = ReadonlyArray<{ readonly at: number; readonly entry: unknown }> | JournalError

export interface Codec<E> {
  readonly encode: (entry: E, at: number) => string
  /** Decodes one entry of a parsed message. Returns a new copy on each call. */
  readonly decode: (parsed: Parsed, position: number, index: number) => EntryOrError<E>
}

export const joinEntries = (encoded: ReadonlyArray<string>): string => `{"v":${version},"entries":[${encoded.join()}]}`

const messageProblem = (position: number, detail: string, reason: "corrupt" | "version" = "corrupt"): JournalError =>
  new JournalError({ operation: "JetStream.read", reason, position, detail })

const decodeBody = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      v: Schema.Literal(version),
      entries: Schema.Array(Schema.Struct({ at: Schema.Finite, entry: Schema.Unknown }))
    })
  )
)
const isLater = Schema.is(Schema.Struct({ v: Schema.Int.check(Schema.isGreaterThan(version)) }))
const decodeAny = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

export const parse = (data: Uint8Array, first: number, count: number): Parsed => {
  const text = new TextDecoder().decode(data)
  const body = Option.getOrUndefined(decodeBody(text))
  if (body?.entries.length === count) return body.entries
  return isLater(Option.getOrUndefined(decodeAny(text)))
    ? messageProblem(first, `entry ${first} was written by a later version of fs-algebra`, "version")
    : messageProblem(first, `message ${first} was not written by a journal`)
}

export const codec = <E, Encoded>(schema: Schema.Codec<E, Encoded>): Codec<E> => {
  const json = Schema.toCodecJson(schema)
  const encode = Schema.encodeSync(json)
  const decode = Schema.decodeUnknownResult(json)
  return {
    encode: (entry, at) => JSON.stringify({ at, entry: encode(entry) }),
    decode: (parsed, position, index) => {
      if (parsed instanceof JournalError) return new JournalError({ ...parsed, position })
      const { at, entry } = parsed[index]!
      return Result.match(decode(entry), {
        onFailure: (error): EntryOrError<E> =>
          messageProblem(position, `message ${position} is not an entry of this journal: ${String(error)}`),
        onSuccess: (entry) => ({ position, at, entry })
      })
    }
  }
}

export interface Log {
  readonly name: string
  readonly subject: string
  /**
   * Reads a message from the leader of the stream, because the leader has every confirmed message. Returns `undefined` if the
   * stream has no message with this number.
   */
  readonly get: (sequence: number) => Effect.Effect<Message | undefined, JournalError>
  readonly last: Effect.Effect<Message | undefined, JournalError>
  /** The last position, or 0 for an empty stream. The placeholders of the last group may still be missing. */
  readonly end: Effect.Effect<number, JournalError>
  /**
   * Returns the message that carries the entry at this message's position: the message itself, or the first message of its
   * group. At a reserved position, a message of another program counts as the placeholder.
   */
  readonly owner: (message: Message) => Effect.Effect<Message, JournalError>
}

const streamNotFound = 10_059

const problem = (reason: "corrupt" | "unavailable", detail: string): JournalError =>
  new JournalError({ operation: "JetStream.open", reason, detail })

const configuration = (
  subject: string,
  { maxBytes, name, replicas = 1, storage = "file" }: Options
): Partial<StreamConfig> => ({
  name,
  subjects: [subject],
  description: "journal of fs-algebra",
  storage,
  num_replicas: replicas,
  max_bytes: maxBytes ?? -1,
  retention: "limits",
  discard: "new",
  deny_delete: true,
  deny_purge: true
})

const unfitReason = (subject: string, config: StreamConfig): string | undefined => {
  if (config.subjects?.length !== 1 || config.subjects[0] !== subject)
    return `the stream has the subjects ${String(config.subjects)}`
  if (config.retention !== "limits") return `the stream has the retention ${config.retention}`
  if (config.discard !== "new") return `the stream deletes its oldest messages when it is full`
  if (config.max_age > 0) return "the messages of the stream expire"
  if (config.max_msgs > 0 || config.max_msgs_per_subject > 0) return "the number of messages in the stream is limited"
  return config.deny_delete && config.deny_purge ? undefined : "the stream allows its messages to be deleted or purged"
}

const createStream = (connection: Connection, subject: string, options: Options): Effect.Effect<void, JournalError> => {
  const { streams } = connection.manager
  const info = connection.call("JetStream.open", () => streams.info(options.name))
  const add = connection.call("JetStream.open", () =>
    streams.add(configuration(subject, options) as Parameters<typeof streams.add>[0])
  )
  const isMissing = (error: JournalError | Refusal): boolean => error._tag === "Refusal" && error.code === streamNotFound
  return Effect.catchIf(info, isMissing, () => add).pipe(
    Effect.retry(creationRetryOptions),
    Effect.mapError((error) => (error._tag === "Refusal" ? problem("unavailable", error.message) : error)),
    Effect.flatMap(({ config }) => {
      const reason = unfitReason(subject, config)
      return reason === undefined
        ? Effect.void
        : Effect.fail(problem("corrupt", `the stream ${options.name} is not a journal: ${reason}`))
    })
  )
}

export const open = (connection: Connection, options: Options): Effect.Effect<Log, JournalError> => {
  const { name } = options
  const subject = `fs-algebra.${name}`
  const { streams } = connection.manager
  const find = (query: { readonly seq: number } | { readonly last_by_subj: string }) =>
    Effect.map(
      connection.ask("JetStream.read", () => streams.getMessage(name, query)),
      (found) => (found === null ? undefined : make(found.seq, found.data, found.header as MsgHdrs | undefined))
    )
  const get = (sequence: number) => find({ seq: sequence })
  const last = find({ last_by_subj: subject })
  const findOwnerBefore = (message: Message): Effect.Effect<Message, JournalError> =>
    message.sequence === 1
      ? Effect.succeed(message)
      : Effect.flatMap(get(message.sequence - 1), (before) =>
          before === undefined
            ? Effect.succeed(message)
            : Effect.map(owner(before), (owner) => (endOf(owner) >= message.sequence ? owner : message))
        )
  const owner: Log["owner"] = (message) => {
    if (message.id !== "") return Effect.succeed(message)
    const { place, sequence } = message
    if (place === undefined || place.first >= sequence) return findOwnerBefore(message)
    return Effect.flatMap(get(place.first), (first) =>
      first?.count === place.count && endOf(first) >= sequence ? Effect.succeed(first) : findOwnerBefore(message)
    )
  }
  const end = Effect.flatMap(last, (message) => (message === undefined ? Effect.succeed(0) : Effect.map(owner(message), endOf)))
  return Effect.as(createStream(connection, subject, options), { name, subject, get, last, end, owner })
}
