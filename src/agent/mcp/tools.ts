/**
 * Registers definitions as tools of a server. Many clients show a model only `structuredContent` if there is any, so it is
 * sent only on request, and then includes the message.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as FsPath from "../../model/FsPath.ts"
import type { AnyDefinition, Attachment, Image } from "../definition.ts"
import { ToolProgress } from "../progress.ts"
import { shortenToFit, type Json, Structured, withMessage } from "../sent.ts"
import type { ToolResult } from "../ToolResult.ts"
import { ToolSettings } from "../ToolSettings.ts"
import type { Flow } from "./flow.ts"
import { reporter } from "./progress.ts"
import * as Schemas from "./schemas.ts"
import { uriOf } from "./uri.ts"

export interface Serving {
  readonly invoke: (definition: AnyDefinition<unknown>, input: unknown) => Effect.Effect<ToolResult<unknown>, never, unknown>
  readonly flow: Flow
  readonly permits: Semaphore.Semaphore
  readonly isStructured: boolean
}

/** Removes the base64 of images from a value: the content has the images already, and their base64 is most of the size. */
const withoutImages = (value: unknown, images: ReadonlyArray<Image>): unknown => {
  if (typeof value === "string") return images.some(({ base64 }) => base64 === value) ? "" : value
  if (Array.isArray(value)) return value.map((item) => withoutImages(item, images))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutImages(item, images)]))
}

const makeStructuredEncoder = (definition: AnyDefinition<unknown>) => {
  const encode = Schema.encodeUnknownEffect(
    Schema.toCodecJson(definition.value as Schema.Top) as unknown as Schema.Codec<unknown, unknown>
  )
  return Effect.fnUntraced(function* (message: string, value: unknown, images: ReadonlyArray<Image>) {
    const { budget, measure } = yield* ToolSettings
    const encoded = yield* Effect.orDie(encode(value))
    const whole = withMessage(message, (images.length === 0 ? encoded : withoutImages(encoded, images)) as Json)
    return shortenToFit(whole, (text) => measure(text) <= budget)
  })
}

const imageContent = ({ base64, mediaType }: Image) => ({
  type: "image" as const,
  data: Buffer.from(base64, "base64"),
  mimeType: mediaType
})

const fileContent = ({ base64, mediaType, path }: Attachment) => ({
  type: "resource" as const,
  resource: {
    uri: uriOf(FsPath.parse(path) as FsPath.FsPath),
    mimeType: mediaType,
    blob: Uint8Array.from(Buffer.from(base64, "base64"))
  }
})

const makeResultEncoder = (definition: AnyDefinition<unknown>, isStructured: boolean) => {
  const encoded = makeStructuredEncoder(definition)
  return Effect.fnUntraced(function* ({ message, success, value }: ToolResult<unknown>) {
    const images = success ? (definition.images?.(value) ?? []) : []
    const attachment = success ? definition.attachment?.(value, message) : undefined
    const text = attachment?.message ?? message
    return new McpSchema.CallToolResult({
      isError: !success,
      content: [
        { type: "text", text },
        ...images.map(imageContent),
        ...(attachment === undefined ? [] : [fileContent(attachment)])
      ],
      ...(success && isStructured && { structuredContent: yield* encoded(text, value, images) })
    })
  })
}

/** Returns the title of a tool; `read_file` becomes "Read file". */
const titleOf = (name: string): string => {
  const words = name.replaceAll(/[_-]/g, " ")
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}

const describeTool = (
  definition: AnyDefinition<unknown>,
  outputSchema: ReturnType<typeof Schemas.outputSchema>
): McpSchema.Tool =>
  new McpSchema.Tool({
    name: definition.name,
    title: titleOf(definition.name),
    description: definition.description,
    inputSchema: Schemas.inputSchema(definition.parameters),
    ...(outputSchema !== undefined && { outputSchema }),
    annotations: {
      readOnlyHint: definition.does === "reads",
      destructiveHint: definition.does === "changes",
      idempotentHint: definition.idempotent,
      openWorldHint: false
    }
  })

export const register = Effect.fnUntraced(function* (
  definition: AnyDefinition<unknown>,
  { flow, invoke, isStructured, permits }: Serving
) {
  const server = yield* McpServer.McpServer
  const services = yield* Effect.context<never>()
  const outputSchema = isStructured ? Schemas.outputSchema(definition.value) : undefined
  const answer = makeResultEncoder(definition, outputSchema !== undefined)
  const handle = Effect.fnUntraced(function* (input: unknown) {
    const report = yield* reporter(server)
    const result = yield* invoke(definition, input).pipe(
      permits.withPermit,
      Effect.provideService(ToolProgress, Option.getOrUndefined(report)),
      Effect.provideService(Structured, outputSchema !== undefined)
    )
    return yield* answer(result)
  })
  yield* server.addTool({
    tool: describeTool(definition, outputSchema),
    annotations: Context.empty(),
    services,
    handle: (input: unknown) => flow.whileCalling(handle(input) as Effect.Effect<McpSchema.CallToolResult>)
  })
})
