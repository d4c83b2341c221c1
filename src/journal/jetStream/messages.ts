/**
 * What a message of the stream is. Most hold one entry and stand at its position. Entries that are appended together must appear together,
 * and a server of this kind stores one message at a time: so the first of them carries them all, and those behind it, which only say whose
 * places they are, keep the position of every entry the sequence number of a message.
 */
import type { MsgHdrs } from "@nats-io/transport-node"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ContentRef } from "../FileSystemEntry.ts"
import type { Recorded } from "../Journal.ts"
import { JournalError } from "../errors.ts"

export const header = {
  /** Of one attempt to append, so that who has lost the answer knows its own message again. */
  id: "Fs-Algebra-Append",
  /** How many entries it carries, where it is more than one. */
  count: "Fs-Algebra-Count",
  /** `<sequence of the first>/<count>`: the place of an entry that another message carries. */
  placeOf: "Fs-Algebra-Place-Of",
  /** `<sha256>/<size>`: what it carries lies in the object store, being too large for a message. */
  body: "Fs-Algebra-Body"
} as const

/** Of what messages say; a later one is not read. */
export const version = 1

export interface Message {
  readonly sequence: number
  readonly data: Uint8Array
  /** Empty where it carries nothing of a journal. */
  readonly id: string
  readonly body: ContentRef | undefined
  /** Positions that its entries take, from its own sequence on. */
  readonly count: number
  /** Whose place it says that it keeps. */
  readonly place: { readonly first: number; readonly count: number } | undefined
}

const pair = (text: string): readonly [string, number] | undefined => {
  const match = /^([0-9a-f]{1,64})\/([0-9]{1,15})$/.exec(text)
  return match === null ? undefined : [match[1]!, Number(match[2])]
}

/** Any message: what is none of ours takes one position. */
export const make = (sequence: number, data: Uint8Array, headers: MsgHdrs | undefined): Message => {
  const read = (name: string): string => headers?.get(name) ?? ""
  const id = read(header.id)
  const body = pair(read(header.body))
  const place = pair(read(header.placeOf))
  const count = Number(read(header.count))
  // Whatever it says, it carries no more than it is long.
  const most = body === undefined ? data.length : body[1]
  return {
    sequence,
    data,
    id,
    body: body === undefined ? undefined : { sha256: body[0], size: body[1] },
    count: id !== "" && Number.isSafeInteger(count) && count > 0 && count <= most ? count : 1,
    place: place === undefined ? undefined : { first: Number(place[0]), count: place[1] }
  }
}

/** The last position that it takes. */
export const endOf = ({ count, sequence }: Message): number => sequence + count - 1

/** An entry, or why there is none at its position. */
export type Found<E> = Recorded<E> | JournalError

/** Encoded entries of a message, or why there are none. */
export type Parsed = ReadonlyArray<{ readonly at: number; readonly entry: unknown }> | JournalError

export interface Codec<E> {
  readonly encode: (entry: E, at: number) => string
  /** Made anew each time. */
  readonly decode: (parsed: Parsed, position: number, index: number) => Found<E>
}

/** The text of a message out of encoded entries. */
export const join = (encoded: ReadonlyArray<string>): string => `{"v":${version},"entries":[${encoded.join()}]}`

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

/** What the text of a message says that takes as many positions from the first. */
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
        onFailure: (error): Found<E> => problem(position, `what stands at ${position} is no entry: ${String(error)}`),
        onSuccess: (entry) => ({ position, at, entry })
      })
    }
  }
}
