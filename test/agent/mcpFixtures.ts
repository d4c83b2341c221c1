/**
 * The tools, prompts and resources that the protocol's conformance suite requires, served beside our own tools. They
 * are defined with our API if possible, and with effect/ai otherwise.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import { type AnyDefinition, define, refused, ToolProgress } from "../../src/agent/definition.ts"

const red = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
const png = Uint8Array.from(Buffer.from(red, "base64"))

const parameters = Schema.Struct({})
const nothing = {
  description: "For the conformance suite.",
  parameters,
  does: "reads",
  idempotent: true,
  examples: [{}]
} as const
const touches = () => Effect.succeed([])
const Value = Schema.Struct({})

export const definitions: ReadonlyArray<AnyDefinition> = [
  define({
    ...nothing,
    name: "test_simple_text",
    value: Value,
    touches,
    handle: () => Effect.succeed({ message: "This is a simple text response for testing.", value: {} })
  }),
  define({
    ...nothing,
    name: "test_image_content",
    value: Schema.Struct({ base64: Schema.String }),
    touches,
    handle: () => Effect.succeed({ message: "An image.", value: { base64: red } }),
    images: ({ base64 }) => [{ mediaType: "image/png", base64 }]
  }),
  define({
    ...nothing,
    name: "test_error_handling",
    value: Value,
    touches,
    handle: () => Effect.fail(refused("This tool intentionally returns an error for testing.", "Do not mind."))
  }),
  define({
    ...nothing,
    name: "test_tool_with_progress",
    value: Value,
    touches,
    handle: Effect.fnUntraced(function* () {
      const report = yield* ToolProgress
      for (const done of [0, 50, 100]) {
        yield* report?.({ done, total: 100 }) ?? Effect.void
        // The pause is longer than the minimum interval between progress reports.
        yield* Effect.sleep(110)
      }
      return { message: "Done.", value: {} }
    })
  })
]

const tool = (name: string, content: ReadonlyArray<typeof McpSchema.ContentBlock.Type>) =>
  Effect.flatMap(McpServer.McpServer, (server) =>
    server.addTool({
      tool: new McpSchema.Tool({ name, description: "For the conformance suite.", inputSchema: { type: "object" } }),
      annotations: Context.empty(),
      handle: () => Effect.succeed(new McpSchema.CallToolResult({ content }))
    })
  )

const image = { type: "image", data: png, mimeType: "image/png" } as const
const embedded = (uri: string) =>
  ({ type: "resource", resource: { uri, mimeType: "text/plain", text: "This is an embedded resource content." } }) as const

const tools = Layer.effectDiscard(
  Effect.all([
    tool("test_audio_content", [{ type: "audio", data: png, mimeType: "audio/wav" }]),
    tool("test_embedded_resource", [embedded("test://embedded-resource")]),
    tool("test_multiple_content_types", [
      { type: "text", text: "Multiple content types test:" },
      image,
      embedded("test://mixed")
    ])
  ])
)

/** Builds a resource whose contents carry their media type. */
const fixed = (uri: string, mimeType: string, content: { readonly text: string } | { readonly blob: Uint8Array }) =>
  McpServer.resource({ uri, name: uri, mimeType, content: Effect.succeed({ contents: [{ uri, mimeType, ...content }] }) })

const resources = Layer.mergeAll(
  fixed("test://static-text", "text/plain", { text: "This is the content of the static text resource." }),
  fixed("test://static-binary", "image/png", { blob: png }),
  McpServer.resource`test://template/${McpSchema.param("id", Schema.String)}/data`({
    name: "template",
    content: (_uri, id) => Effect.succeed(JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }))
  })
)

const user = (content: typeof McpSchema.ContentBlock.Type) => [{ role: "user" as const, content }]

const prompts = Layer.mergeAll(
  McpServer.prompt({ name: "test_simple_prompt", description: "Simple.", content: () => Effect.succeed("A simple prompt.") }),
  McpServer.prompt({
    name: "test_prompt_with_arguments",
    description: "With arguments.",
    parameters: { arg1: Schema.String, arg2: Schema.String },
    completion: { arg1: () => Effect.succeed(["paris", "park"]) },
    content: ({ arg1, arg2 }) => Effect.succeed(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)
  }),
  McpServer.prompt({
    name: "test_prompt_with_embedded_resource",
    description: "With a resource.",
    parameters: { resourceUri: Schema.String },
    content: ({ resourceUri }) => Effect.succeed(user(embedded(resourceUri)))
  }),
  McpServer.prompt({
    name: "test_prompt_with_image",
    description: "With an image.",
    content: () => Effect.succeed(user(image))
  })
)

export const registrations = Layer.mergeAll(tools, resources, prompts) as Layer.Layer<never, never, McpServer.McpServer>
