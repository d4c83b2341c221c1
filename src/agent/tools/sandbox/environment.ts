/**
 * Accepts environment variables from models. The schema announces a list, because a strict schema cannot name unknown keys. An
 * object by name is accepted too, because many models send one.
 */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"

const Variables = Schema.Array(
  Schema.Struct({
    name: Schema.String.annotate({ description: "Letters, digits and _, at most 80, with no digit first." }),
    value: Schema.String.annotate({ description: "At most 512 characters." })
  })
).annotate({ description: "Environment variables, at most 64." })
const ByName = Schema.Record(Schema.String, Schema.String)

type Sent = typeof Variables.Type | typeof ByName.Type

const isSent = Schema.is(Schema.Union([Variables, ByName]))

export const Environment: Schema.Codec<Sent> = Schema.declare<Sent>((input): input is Sent => isSent(input), {
  expected: "a list of {name, value}",
  toCodecJson: () => Schema.link<Sent>()(Variables, SchemaTransformation.passthrough() as never)
})

const isList = (sent: Sent): sent is typeof Variables.Type => Array.isArray(sent)

export const byName = (sent: Sent): Readonly<Record<string, string>> =>
  isList(sent) ? Object.fromEntries(sent.map(({ name, value }) => [name, value])) : sent
