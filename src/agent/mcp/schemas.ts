import * as Schema from "effect/Schema"
import type { Json } from "../sent.ts"

const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const withoutBounds = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(withoutBounds)
  if (!isRecord(node)) return node
  const isBound = (key: string, item: unknown): boolean =>
    (key === "minimum" && item === Number.MIN_SAFE_INTEGER) || (key === "maximum" && item === Number.MAX_SAFE_INTEGER)
  return Object.fromEntries(
    Object.entries(node).flatMap(([key, item]) => (isBound(key, item) ? [] : [[key, withoutBounds(item)]]))
  )
}

const schemaDocument = (schema: Schema.Top, onExcessProperty: "error" | "ignore"): Json => {
  const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema, { onExcessProperty })
  return withoutBounds(Object.keys(definitions).length === 0 ? root : { ...root, $defs: definitions }) as Json
}

export const inputSchema = (parameters: Schema.Struct<Schema.Struct.Fields>): Json & { readonly type: "object" } => ({
  // The schema of an empty struct would accept everything but null.
  ...(Object.keys(parameters.fields).length === 0
    ? { properties: {}, additionalProperties: false }
    : schemaDocument(parameters, "error")),
  type: "object"
})

const commonFields: Json = {
  message: { type: "string", description: "The text of the result, as a model reads it" },
  cut: {
    type: "array",
    items: { type: "string" },
    description: "Fields that were shortened because the result was over the budget"
  }
}

/** Returns the schema of structured results, or `undefined` if the value is no object; such results have only a message. */
export const outputSchema = (value: Schema.Top): Json | undefined => {
  const { properties, required, ...schema } = schemaDocument(value, "ignore")
  if (schema["type"] !== "object") return undefined
  return {
    ...schema,
    properties: { ...commonFields, ...(properties as Json | undefined) },
    required: ["message", ...((required as ReadonlyArray<string> | undefined) ?? [])]
  }
}
