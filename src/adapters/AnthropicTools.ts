/**
 * Provides the text editor tool and the memory tool of Anthropic's Messages API, over any Filesystem. Policies, settings and events apply
 * to their calls.
 *
 * @since 0.1.0
 */
import type { BetaRunnableTool } from "@anthropic-ai/sdk/lib/tools/BetaRunnableTool"
import type {
  BetaMemoryTool20250818,
  BetaMemoryTool20250818Command,
  BetaToolResultBlockParam,
  BetaToolTextEditor20241022,
  BetaToolTextEditor20250124,
  BetaToolTextEditor20250429,
  BetaToolTextEditor20250728,
  BetaToolUseBlock
} from "@anthropic-ai/sdk/resources/beta/messages/messages"
import * as Effect from "effect/Effect"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import { checkRequest, type Commands, type CommandTools } from "./anthropic/commands.ts"
import * as Memory from "./anthropic/memory.ts"
import * as TextEditor from "./anthropic/textEditor.ts"
import type { AdapterSupport } from "./support.ts"
import { bindTools, type CallOptions } from "./toolCalls.ts"

/**
 * The tested version of the package, and its features that the adapter supports or does not support.
 *
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "AnthropicTools",
  package: "@anthropic-ai/sdk",
  version: "1.14.0",
  maps: [
    "`text_editor_20250728` and `text_editor_20250429`: view, create, str_replace, insert",
    "`text_editor_20250124` and `text_editor_20241022`: the same commands and undo_edit",
    "`memory_20250818`: view, create, str_replace, insert, delete, rename",
    "the SDK's tool runner and its abort signal"
  ],
  missing: ["files that are not UTF-8", "undo_edit of the creation of a file", "modification times and owners in listings"]
}

/**
 * The definition of a tool for a request, with the functions that the SDK's tool runner calls.
 *
 * @since 0.1.0
 */
export type RunnableTool<Definition, Input> = Definition & Pick<BetaRunnableTool<Input>, "parse" | "run">

type Editors = {
  readonly text_editor_20241022: BetaToolTextEditor20241022
  readonly text_editor_20250124: BetaToolTextEditor20250124
  readonly text_editor_20250429: BetaToolTextEditor20250429
  readonly text_editor_20250728: BetaToolTextEditor20250728
}

/**
 * The versions of the text editor tool.
 *
 * @since 0.1.0
 */
export type TextEditorVersion = keyof Editors

/**
 * The options of `textEditor`.
 *
 * @since 0.1.0
 */
export interface TextEditorOptions<Version extends TextEditorVersion = TextEditorVersion> {
  /** @default "text_editor_20250728" */
  readonly version?: Version | undefined
  /** The largest number of UTF-16 code units that `view` shows of a file. @default all */
  readonly maxCharacters?: number | undefined
}

const isReading = ({ command }: Readonly<Record<string, unknown>>): boolean => command === "view"

/** Adds the functions of the tool runner to a definition. An error that `run` throws becomes an error result. */
const runnable = <Definition extends { readonly name: string }, Input>(
  definition: Definition,
  commands: Commands,
  { change, view }: CommandTools
): Effect.Effect<RunnableTool<Definition, Input>, never, Filesystem> =>
  Effect.map(bindTools([view, change]), ([reader, writer]) => ({
    ...definition,
    // The runner turns an error of `parse` into an error result too.
    parse: (content: unknown) => checkRequest(definition.name, commands, content) as Input,
    run: async (input, context) => {
      const request = checkRequest(definition.name, commands, input)
      const options: CallOptions = { callId: context?.toolUse.id, signal: context?.signal }
      const { message, success } = await (isReading(request) ? reader! : writer!).call(request, options)
      if (!success) throw new Error(message.replace(/ $/, ""))
      return message
    }
  }))

/**
 * Makes the text editor tool of one session. Its paths are relative to the root, with or without a leading slash. The setting
 * `mountPoint` removes a prefix from the paths of the model. The command `create` never replaces a file.
 *
 * @example
 * ```ts
 * const editor = yield* AnthropicTools.textEditor()
 * const input = { command: "str_replace", path: "/notes/todo.md", old_str: "tea", new_str: "milk" }
 * yield* Effect.promise(async () => editor.run(input)) // => "Successfully replaced text at exactly one location."
 * yield* fs.readString("notes/todo.md") // => "- [ ] milk\n- [ ] bread\n"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const textEditor = <Version extends TextEditorVersion = "text_editor_20250728">({
  maxCharacters,
  version
}: TextEditorOptions<Version> = {}): Effect.Effect<RunnableTool<Editors[Version], unknown>, never, Filesystem> =>
  Effect.suspend(() => {
    const type: TextEditorVersion = version ?? "text_editor_20250728"
    const hasUndo = type === "text_editor_20241022" || type === "text_editor_20250124"
    const name = hasUndo ? "str_replace_editor" : "str_replace_based_edit_tool"
    const limit = type === "text_editor_20250728" && maxCharacters !== undefined ? { max_characters: maxCharacters } : {}
    const definition = { type, name, ...limit } as Editors[Version]
    const commands = hasUndo ? TextEditor.commandsWithUndo : TextEditor.commands
    return runnable<Editors[Version], unknown>(definition, commands, TextEditor.makeTextEditor(name, maxCharacters))
  })

/**
 * Makes the memory tool of one session over a directory, which the model sees as `/memories`.
 *
 * @example
 * ```ts
 * const memory = yield* AnthropicTools.memory({ directory: "notes" })
 * const view = async () => memory.run({ command: "view", path: "/memories/todo.md", view_range: [1, 1] })
 * const answer = yield* Effect.promise(view)
 * yield* Effect.succeed(answer) // => "Here's the content of /memories/todo.md with line numbers:\n     1\t- [ ] tea"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const memory = ({
  directory = "memories"
}: {
  /** The directory of the memories, relative to the root. @default "memories" */
  readonly directory?: string | undefined
} = {}): Effect.Effect<RunnableTool<BetaMemoryTool20250818, BetaMemoryTool20250818Command>, never, Filesystem> =>
  Effect.suspend(() =>
    runnable({ type: "memory_20250818", name: "memory" } as const, Memory.commands, Memory.makeMemory(directory))
  )

/**
 * Runs a tool for programs without the SDK's tool runner. Returns the result for the next request. A failure becomes a result
 * with `is_error`. Rejects only if the signal is aborted.
 *
 * @category running
 * @since 0.1.0
 */
export const toolResult = async (
  tool: Pick<BetaRunnableTool, "run">,
  toolUse: BetaToolUseBlock,
  signal?: AbortSignal
): Promise<BetaToolResultBlockParam> => {
  const result = { type: "tool_result" as const, tool_use_id: toolUse.id }
  try {
    return { ...result, content: await tool.run(toolUse.input, { toolUse, toolUseBlock: toolUse, signal }) }
  } catch (error) {
    signal?.throwIfAborted()
    return { ...result, content: `Error: ${error instanceof Error ? error.message : String(error)}`, is_error: true }
  }
}
