/**
 * Registers definitions as tools of a server. Many clients show a model only the `structuredContent` of a result if there is
 * any. Structured content is therefore sent only on request, with the option `structured`, and includes the message.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as FsPath from "../../model/FsPath.ts"
import type { ToolResult } from "../ToolResult.ts"
import { ToolSettings } from "../ToolSettings.ts"
import { type AnyDefinition, type Attachment, type Image, type Progress, ToolProgress } from "../definition.ts"
import { type Json, shortenToFit, Structured, withMessage } from "../dispatch.ts"
import { inputSchema, makeValueEncoder, schemaDocument } from "../wire.ts"
import type { Flow } from "./stdio.ts"
import { uriOf } from "./guide.ts"

const minIntervalMillis = 100

/** The metadata of the request: from the client service in protocols with sessions, otherwise from the request context. */
const metadata = Effect.gen(function* () {
  const client = yield* Effect.serviceOption(McpSchema.McpServerClient)
  if (Option.isSome(client)) return client.value.requestMetadata
  return Option.getOrUndefined(yield* Effect.serviceOption(McpSchema.McpRequestContext))?.requestMetadata
})

const reporter = Effect.fnUntraced(function* (server: McpServer.McpServer["Service"]) {
  const token = ((yield* metadata) as Readonly<Record<string, unknown>> | undefined)?.["progressToken"]
  if (typeof token !== "string" && typeof token !== "number") return undefined
  const request = yield* Effect.serviceOption(McpSchema.McpRequestContext)
  let lastSentAt = Number.NEGATIVE_INFINITY
  let done = Number.NEGATIVE_INFINITY
  return (progress: Progress): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (progress.done <= done || now - lastSentAt < minIntervalMillis) return Effect.void
      lastSentAt = now
      done = progress.done
      const notice = server.notifications["notifications/progress"]({
        progressToken: token,
        progress: progress.done,
        ...(progress.total !== undefined && { total: progress.total }),
        ...(progress.message !== undefined && { message: progress.message })
      })
      // Effect reads the receiver of a notice from the fiber. A search may report progress from a forked fiber, so provide the
      // receiver.
      const noticeToClient = Option.isNone(request)
        ? notice
        : Effect.provideService(notice, McpSchema.McpRequestContext, request.value)
      return Effect.ignoreCause(noticeToClient)
    })
})

const commonFields: Json = {
  message: { type: "string", description: "The text of the result, as a model reads it" },
  cut: {
    type: "array",
    items: { type: "string" },
    description: "Fields that were shortened because the result was over the budget"
  }
}

/**
 * Returns the schema of structured results, or `undefined` if the value is not an object. Results without a schema have only a
 * message.
 */
const outputSchemaOf = (value: Schema.Top): Json | undefined => {
  const { properties, required, ...schema } = schemaDocument(value, "ignore")
  if (schema["type"] !== "object") return undefined
  return {
    ...schema,
    properties: { ...commonFields, ...(properties as Json | undefined) },
    required: ["message", ...((required as ReadonlyArray<string> | undefined) ?? [])]
  }
}

export interface Serving {
  readonly invoke: (definition: AnyDefinition<unknown>, input: unknown) => Effect.Effect<ToolResult<unknown>, never, unknown>
  readonly flow: Flow
  readonly permits: Semaphore.Semaphore
  readonly isStructured: boolean
}

const makeStructuredEncoder = (definition: AnyDefinition<unknown>) => {
  const encode = makeValueEncoder(definition)
  return Effect.fnUntraced(function* (message: string, value: unknown, images: ReadonlyArray<Image>) {
    const { budget, measure } = yield* ToolSettings
    const whole = withMessage(message, (yield* encode(value, images)) as Json)
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

const titleOf = (name: string): string => {
  const words = name.replaceAll(/[_-]/g, " ")
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}

const describeTool = (definition: AnyDefinition<unknown>, outputSchema: ReturnType<typeof outputSchemaOf>): McpSchema.Tool =>
  new McpSchema.Tool({
    name: definition.name,
    title: titleOf(definition.name),
    description: definition.description,
    inputSchema: inputSchema(definition.parameters),
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
  const outputSchema = isStructured ? outputSchemaOf(definition.value) : undefined
  const answer = makeResultEncoder(definition, outputSchema !== undefined)
  const handle = Effect.fnUntraced(function* (input: unknown) {
    const report = yield* reporter(server)
    const result = yield* invoke(definition, input).pipe(
      permits.withPermit,
      Effect.provideService(ToolProgress, report),
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
