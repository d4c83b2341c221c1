/** The arguments and values of tools as JSON, for protocols and for programs that do not use Effect. */
import * as Effect from "effect/Effect"
import { isReadonlyObject as isRecord } from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { AnyDefinition, Image } from "./definition.ts"
import type { Json } from "./dispatch.ts"

const withoutBounds = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(withoutBounds)
  if (!isRecord(node)) return node
  const isBound = (key: string, item: unknown): boolean =>
    (key === "minimum" && item === Number.MIN_SAFE_INTEGER) || (key === "maximum" && item === Number.MAX_SAFE_INTEGER)
  return Object.fromEntries(
    Object.entries(node).flatMap(([key, item]) => (isBound(key, item) ? [] : [[key, withoutBounds(item)]]))
  )
}

export const schemaDocument = (schema: Schema.Top, onExcessProperty: "error" | "ignore"): Json => {
  const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema, { onExcessProperty })
  return withoutBounds(Object.keys(definitions).length === 0 ? root : { ...root, $defs: definitions }) as Json
}

/** Returns the JSON Schema of the arguments of a tool. */
export const inputSchema = (parameters: Schema.Struct<Schema.Struct.Fields>): Json & { readonly type: "object" } => ({
  // The schema of an empty struct would accept every value except null and undefined.
  ...(Object.keys(parameters.fields).length === 0
    ? { properties: {}, additionalProperties: false }
    : schemaDocument(parameters, "error")),
  type: "object"
})

/** Removes the base64 of images from a value, because the content already contains the images. */
const withoutImages = (value: unknown, images: ReadonlyArray<Image>): unknown => {
  if (typeof value === "string") return images.some(({ base64 }) => base64 === value) ? "" : value
  if (Array.isArray(value)) return value.map((item) => withoutImages(item, images))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutImages(item, images)]))
}

/** Makes the function that encodes values of a tool as JSON. The result leaves out the base64 of the given images. */
export const makeValueEncoder = (definition: AnyDefinition<unknown>) => {
  const encode = Schema.encodeUnknownEffect(
    Schema.toCodecJson(definition.value as Schema.Top) as unknown as Schema.Codec<unknown, unknown>
  )
  return (value: unknown, images: ReadonlyArray<Image>): Effect.Effect<unknown> =>
    Effect.map(Effect.orDie(encode(value)), (encoded) => (images.length === 0 ? encoded : withoutImages(encoded, images)))
}
