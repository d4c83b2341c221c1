/**
 * The encoding of bytes and times in messages. A frame has the bytes themselves, and a worker thread receives a copy of them.
 * Any other JSON serialization of effect/rpc encodes bytes as Base64.
 */
import * as Base64 from "effect/encoding/Base64"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"
import { isBytes } from "../model/realms.ts"

/** The maximum depth of bytes in a message: `exit.value[INDEX].bytes`. */
export const maxDepth = 4

/** A placeholder for bytes in the JSON of a frame. `$bytes` is their number. */
interface Place {
  readonly $bytes: number
}

interface Collected {
  readonly content: Array<Uint8Array>
  size: number
}

/** The content of the frame that is being encoded. */
let current: Collected | undefined

/** Bytes that `JSON.stringify` moves to the content of the current frame. */
class WireBytes extends Uint8Array {
  toJSON(): Place | string {
    // The receiver looks for placeholders only in messages with content.
    if (current === undefined || this.length === 0) return Base64.encode(this)
    current.content.push(this)
    current.size += this.length
    return { $bytes: this.length }
  }
}

/** Returns the JSON of a message, the bytes that belong to the message, and the number of these bytes. */
export const toJson = (
  message: unknown
): { readonly json: string; readonly content: ReadonlyArray<Uint8Array>; size: number } => {
  const collected: Collected = { content: [], size: 0 }
  current = collected
  try {
    return { json: JSON.stringify(message), content: collected.content, size: collected.size }
  } finally {
    current = undefined
  }
}

/**
 * Copies bytes that view only a part of their buffer, because a worker thread would receive a copy of the whole buffer.
 * Modifies the message in place.
 */
export const withOwnBytes = <A>(message: A, depth = 0): A => {
  if (message instanceof Uint8Array) {
    return message.byteLength === message.buffer.byteLength ? message : (message.slice() as typeof message)
  }
  if (typeof message === "object" && message !== null && depth <= maxDepth) {
    const record = message as Record<string, unknown>
    for (const key of Object.keys(record)) {
      const child = record[key]
      const own = withOwnBytes(child, depth + 1)
      if (own !== child) record[key] = own
    }
  }
  return message
}

/** The form of bytes in a message: a `Uint8Array`, or Base64. */
const Wire = Schema.declare((value): value is Uint8Array | string => isBytes(value) || typeof value === "string", {
  expected: "bytes, or a text in Base64",
  toCodecJson: () => undefined
})

const fromWire = SchemaGetter.transformEffect((wire: Uint8Array | string, options) =>
  typeof wire === "string"
    ? Effect.mapErrorEager(
        Effect.fromResult(Base64.decode(wire)),
        () => new SchemaIssue.InvalidValue({ expected: "a valid Base64 string" }, wire, options)
      )
    : Effect.succeed(wire)
)

/** Returns a view of bytes that `toJson` recognizes. */
export const toWireBytes = (bytes: Uint8Array): Uint8Array | string =>
  new WireBytes(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength)

const toWire = SchemaGetter.transform(toWireBytes)

/** The schema of the bytes in messages. Accepts bytes of any realm. */
export const Bytes = Schema.declare(isBytes, {
  expected: "Uint8Array",
  toCodecJson: () => Schema.link<Uint8Array>()(Wire, { decode: fromWire, encode: toWire })
})

const toInstant = SchemaGetter.transformEffect((millis: number, options) => {
  const made = DateTime.make(millis)
  return Option.isNone(made)
    ? Effect.fail(new SchemaIssue.InvalidValue({ expected: "a time in milliseconds since 1970" }, millis, options))
    : Effect.succeed(made.value)
})

/** The schema of the times of entries: milliseconds since 1970, which are cheaper than a text. */
export const Instant = Schema.DateTimeUtc.annotate({
  toCodecJson: () =>
    Schema.link<DateTime.Utc>()(Schema.Finite, {
      decode: toInstant,
      encode: SchemaGetter.transform((instant: DateTime.Utc) => DateTime.toEpochMillis(instant))
    })
})
