/**
 * The messages of the stream. Most messages hold one entry, and the entry's position is the sequence of its message. Entries that are
 * appended together must appear together, but the server stores one message at a time. So the first message carries all of them. The
 * messages after it only keep places, so that each position stays the sequence of a message.
 */
import type { MsgHdrs } from "@nats-io/transport-node"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ContentRef } from "../FileSystemEntry.ts"
import type { Recorded } from "../Journal.ts"
import { JournalError } from "../errors.ts"

export const header = {
  /** The id of one append attempt. A writer that lost the answer recognizes its own message by this id. */
  id: "Fs-Algebra-Append",
  count: "Fs-Algebra-Count",
  /** `<sequence of the first>/<count>`: marks the place of an entry that another message carries. */
  placeOf: "Fs-Algebra-Place-Of",
  /** `<sha256>/<size>`: refers to a body in the object store that is too large for a message. */
  body: "Fs-Algebra-Body"
} as const

/** The version of the message format. Messages of a later version are not read. */
export const version = 1

export interface Message {
  readonly sequence: number
  readonly data: Uint8Array
  /** The id of the append; empty if the message carries no entries. */
  readonly id: string
  readonly body: ContentRef | undefined
  /** The number of positions that its entries take, from its own sequence on. */
  readonly count: number
  readonly place: { readonly first: number; readonly count: number } | undefined
}

const parsePair = (text: string): readonly [string, number] | undefined => {
  const match = /^([0-9a-f]{1,64})\/([0-9]{1,15})$/.exec(text)
  return match === null ? undefined : [match[1]!, Number(match[2])]
}

/** Parses any message. A foreign message takes one position. */
export const make = (sequence: number, data: Uint8Array, headers: MsgHdrs | undefined): Message => {
  const read = (name: string): string => headers?.get(name) ?? ""
  const id = read(header.id)
  const body = parsePair(read(header.body))
  const place = parsePair(read(header.placeOf))
  const count = Number(read(header.count))
  // A forged count cannot exceed the length of the body.
  const maxCount = body === undefined ? data.length : body[1]
  return {
    sequence,
    data,
    id,
    body: body === undefined ? undefined : { sha256: body[0], size: body[1] },
    count: id !== "" && Number.isSafeInteger(count) && count > 0 && count <= maxCount ? count : 1,
    place: place === undefined ? undefined : { first: Number(place[0]), count: place[1] }
  }
}

export const endOf = ({ count, sequence }: Message): number => sequence + count - 1

export type EntryOrError<E> = Recorded<E> | JournalError

export type Parsed = ReadonlyArray<{ readonly at: number; readonly entry: unknown }> | JournalError

export interface Codec<E> {
  readonly encode: (entry: E, at: number) => string
  /** Decodes a new copy on each call. */
  readonly decode: (parsed: Parsed, position: number, index: number) => EntryOrError<E>
}

export const joinEntries = (encoded: ReadonlyArray<string>): string => `{"v":${version},"entries":[${encoded.join()}]}`

const problem = (position: number, detail: string, reason: "corrupt" | "version" = "corrupt"): JournalError =>
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
    ? problem(first, `a later fs-algebra wrote what stands at ${first}`, "version")
    : problem(first, `what stands at ${first} was not written by a journal`)
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
        onFailure: (error): EntryOrError<E> => problem(position, `what stands at ${position} is no entry: ${String(error)}`),
        onSuccess: (entry) => ({ position, at, entry })
      })
    }
  }
}
