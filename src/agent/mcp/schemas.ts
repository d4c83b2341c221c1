/** The JSON Schemas of a definition, closed where its decoding is. */
import * as Schema from "effect/Schema"

type Json = { readonly [key: string]: unknown }

const document = (schema: Schema.Top, onExcessProperty: "error" | "ignore"): Json => {
  const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema, { onExcessProperty })
  return Object.keys(definitions).length === 0 ? root : { ...root, $defs: definitions }
}

export const inputSchema = (parameters: Schema.Struct<Schema.Struct.Fields>): Json & { readonly type: "object" } => ({
  // A struct without fields would take anything but null.
  ...(Object.keys(parameters.fields).length === 0
    ? { properties: {}, additionalProperties: false }
    : document(parameters, "error")),
  type: "object"
})

/** Structured results are objects; of what is none there is only the message. */
export const outputSchema = (value: Schema.Top): Json | undefined => {
  const schema = document(value, "ignore")
  return schema["type"] === "object" ? schema : undefined
}
