/** Definitions as tools of a server: the message is the content, the value what is structured, and a failure an answer that says so. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Context from "effect/Context"
import type { AnyDefinition, Image } from "../definition.ts"
import { ToolProgress } from "../progress.ts"
import type { ToolResult } from "../ToolResult.ts"
import type { Flow } from "./flow.ts"
import { reporter } from "./progress.ts"
import * as Schemas from "./schemas.ts"

export interface Serving {
  /** Runs the tool, for whom the request is of. */
  readonly invoke: (definition: AnyDefinition<unknown>, input: unknown) => Effect.Effect<ToolResult<unknown>, never, unknown>
  readonly flow: Flow
  /** How many tools may work at once. */
  readonly permits: Semaphore.Semaphore
}

/** An image is in the content already, and its base64 is most of it. */
const withoutImages = (value: unknown, images: ReadonlyArray<Image>): unknown => {
  if (typeof value === "string") return images.some(({ base64 }) => base64 === value) ? "" : value
  if (Array.isArray(value)) return value.map((item) => withoutImages(item, images))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutImages(item, images)]))
}

const structured = (definition: AnyDefinition<unknown>) => {
  const encode = Schema.encodeUnknownEffect(
    Schema.toCodecJson(definition.value as Schema.Top) as unknown as Schema.Codec<unknown, unknown>
  )
  return (value: unknown, images: ReadonlyArray<Image>) =>
    Effect.map(Effect.orDie(encode(value)), (encoded) => (images.length === 0 ? encoded : withoutImages(encoded, images)))
}

const answering = (definition: AnyDefinition<unknown>, isStructured: boolean) => {
  const encoded = structured(definition)
  return Effect.fnUntraced(function* ({ message, success, value }: ToolResult<unknown>) {
    const images = success ? (definition.images?.(value) ?? []) : []
    return new McpSchema.CallToolResult({
      isError: !success,
      content: [
        { type: "text", text: message },
        ...images.map(({ base64, mediaType }) => ({
          type: "image" as const,
          data: Buffer.from(base64, "base64"),
          mimeType: mediaType
        }))
      ],
      ...(success && isStructured && { structuredContent: yield* encoded(value, images) })
    })
  })
}

/** `read_file` is "Read file". */
const titleOf = (name: string): string => {
  const words = name.replaceAll(/[_-]/g, " ")
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}

const described = (definition: AnyDefinition<unknown>, outputSchema: ReturnType<typeof Schemas.outputSchema>): McpSchema.Tool =>
  new McpSchema.Tool({
    name: definition.name,
    title: titleOf(definition.name),
    description: definition.description,
    inputSchema: Schemas.inputSchema(definition.parameters),
    ...(outputSchema !== undefined && { outputSchema }),
    annotations: {
      title: titleOf(definition.name),
      readOnlyHint: definition.does === "reads",
      destructiveHint: definition.does === "changes",
      idempotentHint: definition.idempotent,
      openWorldHint: false
    }
  })

export const register = Effect.fnUntraced(function* (definition: AnyDefinition<unknown>, { flow, invoke, permits }: Serving) {
  const server = yield* McpServer.McpServer
  const services = yield* Effect.context<never>()
  const outputSchema = Schemas.outputSchema(definition.value)
  const answer = answering(definition, outputSchema !== undefined)
  const handle = Effect.fnUntraced(function* (input: unknown) {
    const report = yield* reporter(server)
    const result = yield* invoke(definition, input).pipe(
      permits.withPermit,
      Effect.provideService(ToolProgress, Option.getOrUndefined(report))
    )
    return yield* answer(result)
  })
  yield* server.addTool({
    tool: described(definition, outputSchema),
    annotations: Context.empty(),
    services,
    handle: (input: unknown) => flow.call(handle(input) as Effect.Effect<McpSchema.CallToolResult>)
  })
})
