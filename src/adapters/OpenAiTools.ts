/**
 * Makes tools for OpenAI's Responses API (npm package `openai`): function tools, and the calls `apply_patch` and `shell`. Policies,
 * settings and events apply to all these tools.
 *
 * @since 0.1.0
 */
import type { RunnerFunction } from "openai/helpers/responses-tool-runner"
import type {
  FunctionTool,
  ResponseFunctionShellCallOutputContent,
  ResponseInputItem,
  ResponseOutputItem,
  Tool
} from "openai/resources/responses/responses"
import * as Effect from "effect/Effect"
import type { AnyDefinition, Requirements } from "../agent/definition.ts"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import type { AdapterSupport } from "./support.ts"
import { type BoundTool, type CallOptions, chooseAndBind, type Output, type ToolOptions } from "./toolCalls.ts"

/**
 * The tested version of the package, and its features that the adapter supports or does not support.
 *
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "OpenAiTools",
  package: "openai",
  version: "7.57.0",
  maps: [
    "function tools with JSON schemas; images of a result as input images",
    "`apply_patch_call`: create_file, update_file, delete_file",
    "`shell_call` in the local environment, if there is a Sandbox",
    "the functions of the SDK's responses runner"
  ],
  missing: [
    "strict schemas",
    "`local_shell_call`",
    "creation of a file without a newline at its end",
    "`max_output_length` beyond the tool's own limit"
  ]
}

/**
 * The options of `tools`.
 *
 * @since 0.1.0
 */
export interface Options<T extends AnyDefinition<unknown> = AnyDefinition> extends ToolOptions<T> {
  /**
   * True to offer `apply_patch` and `shell` as built-in tools of the API, and false to offer them as functions. @default true
   */
  readonly native?: boolean | undefined
}

/**
 * The tools of one session.
 *
 * @since 0.1.0
 */
export interface OpenAiTools {
  /** The `tools` of a request. */
  readonly definitions: Array<Tool>
  /** The function tools, for the SDK's responses runner. */
  readonly functions: Array<RunnerFunction>
  /**
   * Runs the calls of a response in order. Returns their outputs, as items of the next request. Ignores all other
   * items, such as calls of your own functions. Rejects only if the signal is aborted or the program has a defect.
   */
  readonly run: (output: ReadonlyArray<ResponseOutputItem>, signal?: AbortSignal) => Promise<Array<ResponseInputItem>>
}

type ItemOf<Type extends ResponseOutputItem["type"]> = Extract<ResponseOutputItem, { type: Type }>
type FunctionOutput = ResponseInputItem.FunctionCallOutput["output"]

const incomplete = "The call is incomplete, so it was not run. Send the complete call again."

/** Tests whether the end of a call may be missing. A response that ends early leaves its last call in progress. */
const isIncomplete = ({ status }: { readonly status?: string | null }): boolean =>
  status === "incomplete" || status === "in_progress"

/** Copies the caller of a call to its output, as the API requires. */
const callerOf = <Caller>({ caller }: { readonly caller?: Caller | null }): { readonly caller?: Caller } =>
  caller === undefined || caller === null ? {} : { caller }

const functionOutput = ({ images = [], message }: Output): FunctionOutput =>
  images.length === 0
    ? message
    : [
        { type: "input_text", text: message },
        ...images.map(({ base64, mediaType }) => ({
          type: "input_image" as const,
          image_url: `data:${mediaType};base64,${base64}`,
          detail: "auto" as const
        }))
      ]

const definitionOf = ({ description, inputSchema, name }: BoundTool): FunctionTool => ({
  type: "function",
  name,
  description,
  parameters: structuredClone(inputSchema) as Record<string, unknown>,
  strict: false
})

const runFunction = async (tool: BoundTool, item: ItemOf<"function_call">, options: CallOptions): Promise<FunctionOutput> => {
  if (isIncomplete(item)) return incomplete
  let input: unknown
  try {
    input = JSON.parse(item.arguments)
  } catch {
    return `The arguments of ${tool.name} are not valid JSON. Send the call again, with a JSON object.`
  }
  return functionOutput(await tool.call(input, options))
}

/** A line that would begin another part of the patch, and so could name another file. */
const directive = /^\*\*\* (?!End of File\s*$)/m

/** Returns the patch of an operation, or an error for the model if the operation is malformed. */
const patchOf = (operation: unknown): { readonly patch: string } | { readonly error: string } => {
  const { diff, path, type } = (operation ?? {}) as Readonly<Record<string, unknown>>
  // oxlint-disable-next-line no-control-regex
  if (typeof path !== "string" || path.trim() === "" || /[\u0000-\u001f\u007f]/.test(path))
    return { error: "The operation needs a path on one line." }
  if (type === "delete_file") return { patch: `*** Begin Patch\n*** Delete File: ${path}\n*** End Patch` }
  if (type !== "create_file" && type !== "update_file")
    return { error: `There is no operation ${JSON.stringify(type)}. Use create_file, update_file or delete_file.` }
  if (typeof diff !== "string") return { error: `${type} needs a diff.` }
  if (directive.test(diff)) return { error: 'The diff changes one file, so none of its lines may begin with "*** ".' }
  const head = type === "create_file" ? "Add" : "Update"
  const lines = diff.replace(/\n$/, "")
  return { patch: `*** Begin Patch\n*** ${head} File: ${path}\n${lines === "" ? "" : `${lines}\n`}*** End Patch` }
}

const runPatch = async (
  tool: BoundTool,
  item: ItemOf<"apply_patch_call">,
  options: CallOptions
): Promise<ResponseInputItem.ApplyPatchCallOutput> => {
  const made = isIncomplete(item) ? { error: incomplete } : patchOf(item.operation)
  const { message, success } =
    "error" in made ? { success: false, message: `${made.error} Nothing was changed.` } : await tool.call(made, options)
  return {
    type: "apply_patch_call_output",
    call_id: item.call_id,
    status: success ? "completed" : "failed",
    output: message,
    ...callerOf(item)
  }
}

const failedCode = 1

const runCommand = async (
  tool: BoundTool,
  command: unknown,
  timeoutMillis: unknown,
  options: CallOptions
): Promise<ResponseFunctionShellCallOutputContent> => {
  const time = typeof timeoutMillis === "number" ? { timeout_seconds: timeoutMillis / 1000 } : {}
  const { message, success, value } = await tool.call({ command, ...time }, options)
  if (!success) return { stdout: "", stderr: message, outcome: { type: "exit", exit_code: failedCode } }
  const result = value as { exit_code: number; stdout: string; stderr: string; timed_out: boolean }
  return {
    stdout: result.stdout,
    stderr: result.stderr,
    outcome: result.timed_out ? { type: "timeout" } : { type: "exit", exit_code: result.exit_code }
  }
}

const runShell = async (
  tool: BoundTool,
  item: ItemOf<"shell_call">,
  { callId, signal }: CallOptions
): Promise<ResponseInputItem.ShellCallOutput> => {
  // A recorded call may lack its action.
  const { commands, max_output_length: max, timeout_ms: time } = (item.action ?? {}) as Partial<typeof item.action>
  const output: Array<ResponseFunctionShellCallOutputContent> = []
  for (const [index, command] of (Array.isArray(commands) ? commands : []).entries())
    output.push(await runCommand(tool, command, time, { callId: `${callId}:${index}`, signal }))
  return {
    type: "shell_call_output",
    call_id: item.call_id,
    output,
    ...(typeof max === "number" && { max_output_length: max }),
    ...callerOf(item)
  }
}

/**
 * Makes the tools of one session. The tools use the services of this effect, and work until the scope of the services closes.
 * Dies if
 * `options.tools` names an unknown tool.
 *
 * @example
 * ```ts
 * const tools = yield* OpenAiTools.tools({ tools: ["read_file", "apply_patch"] })
 * tools.definitions.map(({ type }) => type) // => ["function", "apply_patch"]
 * const diff = "@@\n-- [ ] tea\n+- [x] tea\n"
 * const operation = { type: "update_file", path: "notes/todo.md", diff } as const
 * const call = { type: "apply_patch_call", id: "1", call_id: "c1", status: "completed", operation } as const
 * // The output of `client.responses.create({ model, input, tools: tools.definitions })` contains such calls.
 * const outputs = yield* Effect.promise(() => tools.run([call]))
 * outputs.map((item) => "status" in item && item.status) // => ["completed"]
 * yield* fs.readString("notes/todo.md") // => "- [x] tea\n- [ ] bread\n"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const tools = <T extends AnyDefinition<unknown> = AnyDefinition>({
  native = true,
  ...options
}: Options<T> = {}): Effect.Effect<OpenAiTools, never, Filesystem | Requirements<T>> =>
  Effect.map(chooseAndBind(options), (bound) => {
    const byName = new Map(bound.map((tool) => [tool.name, tool]))
    const isNative = ({ name }: BoundTool): boolean => native && (name === "apply_patch" || name === "shell")
    const functions = bound.filter((tool) => !isNative(tool))
    const [patch, shell] = native ? [byName.get("apply_patch"), byName.get("shell")] : []

    const runItem = async (item: ResponseOutputItem, signal?: AbortSignal): Promise<ResponseInputItem | undefined> => {
      if (item.type === "function_call") {
        const tool = functions.find(({ name }) => name === item.name)
        if (tool === undefined) return undefined
        const output = await runFunction(tool, item, { callId: item.call_id, signal })
        return { type: "function_call_output", call_id: item.call_id, output, ...callerOf(item) }
      }
      if (item.type === "apply_patch_call" && patch !== undefined)
        return runPatch(patch, item, { callId: item.call_id, signal })
      // The API itself runs the commands for its own containers.
      if (item.type !== "shell_call" || shell === undefined || item.environment?.type === "container_reference")
        return undefined
      if (!isIncomplete(item)) return runShell(shell, item, { callId: item.call_id, signal })
      const output = [{ stdout: "", stderr: incomplete, outcome: { type: "exit" as const, exit_code: failedCode } }]
      return { type: "shell_call_output", call_id: item.call_id, output, ...callerOf(item) }
    }

    return {
      definitions: [
        ...functions.map(definitionOf),
        ...(patch === undefined ? [] : [{ type: "apply_patch" as const }]),
        ...(shell === undefined ? [] : [{ type: "shell" as const, environment: { type: "local" as const } }])
      ],
      functions: functions.map((tool) => ({
        tool: definitionOf(tool),
        execute: async (input, { signal } = { signal: undefined }) => functionOutput(await tool.call(input, { signal }))
      })),
      run: async (output, signal) => {
        const made: Array<ResponseInputItem> = []
        for (const item of output) {
          const result = await runItem(item, signal)
          if (result !== undefined) made.push(result)
        }
        return made
      }
    }
  })
