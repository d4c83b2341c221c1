/**
 * Makes tools for the AI SDK (npm package `ai`), from the same definitions as the toolkits of this package. Policies, settings
 * and events apply to their calls.
 *
 * @since 0.1.0
 */
import type { Tool } from "ai"
import * as Effect from "effect/Effect"
import type { AnyDefinition, Requirements } from "../agent/definition.ts"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import type { AdapterSupport } from "./support.ts"
import { type BoundTool, chooseAndBind, type Output, type ToolOptions } from "./toolCalls.ts"

export type {
  /** @since 0.1.0 */
  Output,
  /** @since 0.1.0 */
  ToolOptions
} from "./toolCalls.ts"

/**
 * The tested version of the package, and its features that the adapter supports or does not support.
 *
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "AiSdk",
  package: "ai",
  version: "7.0.173",
  maps: [
    "tools with JSON schemas for `generateText`, `streamText` and agents",
    "images of a result as files for the model",
    "abort signals and call ids",
    "a failed call as the SDK's tool error",
    "`toolApproval` for the tools that change files"
  ],
  missing: ["preliminary results while a tool runs", "output schemas"]
}

/**
 * A tool of the AI SDK that runs on a filesystem.
 *
 * @since 0.1.0
 */
export type FileTool = Tool<unknown, Output> & { readonly execute: NonNullable<Tool<unknown, Output>["execute"]> }

/**
 * The tools by name, for the option `tools` of `generateText`.
 *
 * @since 0.1.0
 */
export type FileTools = Record<string, FileTool>

/** Returns a schema that accepts every input. The tool itself refuses invalid input, with advice for the model. */
const schemaOf = ({ inputSchema }: BoundTool): FileTool["inputSchema"] => ({
  "~standard": {
    version: 1,
    vendor: "fs-algebra",
    validate: (value: unknown) => ({ value }),
    jsonSchema: { input: () => structuredClone(inputSchema), output: () => structuredClone(inputSchema) }
  }
})

const toolOf = (bound: BoundTool): FileTool => ({
  description: bound.description,
  inputSchema: schemaOf(bound),
  metadata: { does: bound.does },
  execute: async (input, { abortSignal, toolCallId }) => {
    const output = await bound.call(input, { callId: toolCallId, signal: abortSignal })
    if (!output.success) throw new Error(output.message)
    return output
  },
  toModelOutput: ({ output: { images = [], message } }) =>
    images.length === 0
      ? { type: "text", value: message }
      : {
          type: "content",
          value: [
            { type: "text", text: message },
            ...images.map(({ base64, mediaType }) => ({
              type: "file" as const,
              mediaType,
              data: { type: "data" as const, data: base64 }
            }))
          ]
        }
})

/**
 * Makes the tools of one session. The tools use the services of this effect, and work until the scope of the services closes. A
 * call that fails throws an error whose message tells the model what to do next. Dies if `options.tools` names an unknown tool.
 *
 * @example
 * ```ts
 * import { generateText, isStepCount } from "ai"
 * import { MockLanguageModelV4 } from "ai/test"
 * const input = JSON.stringify({ path: "notes/buy.md", content: "milk" })
 * const content = [{ type: "tool-call" as const, toolCallId: "1", toolName: "write_file", input }]
 * const finishReason = { unified: "tool-calls" as const, raw: undefined }
 * const inputTokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }
 * const usage = { inputTokens, outputTokens: { total: 1, text: 1, reasoning: 0 } }
 * // A mock takes the place of a provider's model.
 * const model = new MockLanguageModelV4({ doGenerate: { content, finishReason, usage, warnings: [] } })
 * const tools = yield* AiSdk.tools({ tools: "seven" })
 * const options = { model, tools, stopWhen: isStepCount(1), prompt: "Note that I need milk." }
 * yield* Effect.promise(() => generateText(options))
 * yield* fs.readString("notes/buy.md") // => "milk"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const tools = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options: ToolOptions<T> = {}
): Effect.Effect<FileTools, never, Filesystem | Requirements<T>> =>
  Effect.map(chooseAndBind(options), (bound) => Object.fromEntries(bound.map((tool) => [tool.name, toolOf(tool)])))

/**
 * Returns the `toolApproval` that asks the user before each call of a tool in `asks`, by default of each tool that changes
 * files. A policy of this package, such as `Policy.approval`, applies in addition.
 *
 * @category approval
 * @since 0.1.0
 */
export const approval = (
  tools: FileTools,
  asks: ReadonlyArray<string> = Object.keys(tools).filter((name) => tools[name]!.metadata?.["does"] !== "reads")
): Record<string, "user-approval"> => Object.fromEntries(asks.map((name) => [name, "user-approval" as const]))
