/**
 * A faster codec for the answers with a stat or bytes, which are the most common.
 *
 * A value that does not look as expected goes to the codec of the schema, which accepts it or says what is wrong with it. So the
 * results are always those of the schema.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaParser from "effect/SchemaParser"
import * as Rpc from "effect/rpc/Rpc"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import { Kind } from "../model/Entry.ts"
import { isBytes } from "../model/realms.ts"
import { toWireBytes } from "./bytes.ts"
import { FilesystemRpcs } from "./protocol.ts"

/** Converts a value. Returns `undefined` for a value that the schema must judge. */
type Convert = (value: unknown) => unknown

interface Conversion {
  readonly encode: Convert
  readonly decode: Convert
}

/** Fields in the order of the schema: the name, whether each value has the field, and the conversion of the field. */
type Fields = ReadonlyArray<readonly [name: string, isRequired: boolean, convert: Convert]>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const struct =
  (fields: Fields): Convert =>
  (value) => {
    if (!isObject(value)) return undefined
    const out: Record<string, unknown> = {}
    for (const [name, isRequired, convert] of fields) {
      const field = value[name]
      if (field === undefined && !isRequired && !(name in value)) continue
      const converted = convert(field)
      if (converted === undefined) return undefined
      out[name] = converted
    }
    return out
  }

const kinds: ReadonlySet<unknown> = new Set(Kind.literals)
const kind: Convert = (value) => (kinds.has(value) ? value : undefined)
const flag: Convert = (value) => (typeof value === "boolean" ? value : undefined)
const integer: Convert = (value) => (Number.isSafeInteger(value) ? value : undefined)
const size: Convert = (value) => (Number.isSafeInteger(value) && (value as number) >= 0 ? value : undefined)
const text: Convert = (value) => (typeof value === "string" ? value : undefined)

const time: Conversion = {
  encode: (instant) => (DateTime.isDateTime(instant) && DateTime.isUtc(instant) ? DateTime.toEpochMillis(instant) : undefined),
  decode: (millis) => (typeof millis === "number" ? Option.getOrUndefined(DateTime.make(millis)) : undefined)
}

const bytes: Conversion = {
  encode: (value) => (isBytes(value) ? toWireBytes(value) : undefined),
  decode: (value) => (isBytes(value) ? value : undefined)
}

const both = (make: (direction: keyof Conversion) => Convert): Conversion => ({
  encode: make("encode"),
  decode: make("decode")
})

const stat = both((direction) =>
  struct([
    ["kind", true, kind],
    ["isFile", true, flag],
    ["isDirectory", true, flag],
    ["sizeBytes", true, size],
    ["createdAt", false, time[direction]],
    ["modifiedAt", false, time[direction]],
    ["mode", false, integer],
    ["isSymlink", false, flag],
    ["identity", false, text]
  ])
)

const whole = both((direction) =>
  struct([
    ["stat", true, stat[direction]],
    ["bytes", true, bytes[direction]]
  ])
)

const conversions: Readonly<Record<string, Conversion>> = {
  "port.stat": stat,
  "port.read": whole,
  "port.readAt": bytes,
  "port.write": stat,
  "port.publish": stat
}

const successOf = (exit: unknown): unknown => (isObject(exit) && exit["_tag"] === "Success" ? exit["value"] : undefined)

const fasterCodec = (schema: Schema.Top, { decode, encode }: Conversion) => {
  const codec = RpcSerialization.json.codecFor(schema)
  const decodeAny = SchemaParser.decodeUnknownEffect(codec)
  const encodeAny = SchemaParser.encodeUnknownEffect(codec)
  return Schema.Unknown.pipe(
    Schema.decodeTo(Schema.Unknown, {
      decode: SchemaGetter.transformEffect((wire: unknown, options) => {
        const value = decode(successOf(wire))
        return value === undefined ? decodeAny(wire, options) : Effect.succeed(Exit.succeed(value))
      }),
      encode: SchemaGetter.transformEffect((exit: unknown, options) => {
        const value = Exit.isExit(exit) && Exit.isSuccess(exit) ? encode(exit.value) : undefined
        return value === undefined ? encodeAny(exit, options) : Effect.succeed({ _tag: "Success", value })
      })
    })
  )
}

const makeCodecs = () =>
  new Map<unknown, unknown>(
    Object.entries(conversions).map(([tag, conversion]) => {
      const schema = Rpc.exitSchema(FilesystemRpcs.requests.get(tag)!) as unknown as Schema.Top
      return [schema, fasterCodec(schema, conversion)]
    })
  )

let codecs: ReadonlyMap<unknown, unknown> | undefined

/** Returns the codec of a message. The results of the codec are those of `RpcSerialization.json.codecFor`. */
export const codecFor: RpcSerialization.CodecFor = (schema) => {
  codecs ??= makeCodecs()
  return (
    (codecs.get(schema) as ReturnType<typeof codecFor<typeof schema>> | undefined) ?? RpcSerialization.json.codecFor(schema)
  )
}
