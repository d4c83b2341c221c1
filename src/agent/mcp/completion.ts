import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as McpSchema from "effect/ai/McpSchema"
import { define } from "../definition.ts"
import type { Serving } from "./tools.ts"

/** The limit of the protocol. */
const maxValues = 100

const directoryOf = (input: string): string => input.slice(0, input.lastIndexOf("/") + 1)

/** An unlisted tool, so that the same policies apply to completion. */
const listDirectory = define({
  name: "complete_path",
  description: "The completions of a path.",
  parameters: Schema.Struct({ path: Schema.String.annotate({ description: "The path as typed so far." }) }),
  value: Schema.Array(Schema.String),
  does: "reads",
  idempotent: true,
  examples: [{ path: "src/in" }],
  touches: ({ path }, call) =>
    Effect.map(call.path(directoryOf(path), { blank: "root" }), (path) => [{ access: "read" as const, path }]),
  handle: Effect.fnUntraced(function* ({ path: input }, call) {
    const directory = directoryOf(input)
    const entries = yield* call.filesystem.list(yield* call.path(directory, { blank: "root" }))
    const names = entries.map(({ kind, name }) => `${directory}${name}${kind === "directory" ? "/" : ""}`)
    return { message: "", value: names.filter((name) => name.startsWith(input)) }
  })
})

export const completePath = Effect.fnUntraced(function* (input: string, { invoke, permits }: Serving) {
  const { value } = yield* invoke(listDirectory, { path: input }).pipe(permits.withPermit)
  const values = (value ?? []) as typeof listDirectory.value.Type
  return McpSchema.CompleteResult.make({
    completion: { values: values.slice(0, maxValues), total: values.length, hasMore: values.length > maxValues }
  })
})
