/** Definitions as tools of effect/ai: the model reads the message and sees the images, the program gets the whole result. */
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import type { Definition } from "./definition.ts"
import { invoke } from "./dispatch.ts"
import type { Memory } from "./memory.ts"
import { ToolResult } from "./ToolResult.ts"

export const toTool = <const N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>
) =>
  Tool.make(definition.name, {
    description: definition.description,
    parameters: definition.parameters,
    success: ToolResult(definition.value),
    // What a model gets wrong, it is told.
    failureMode: "return",
    toModelOutput: (answered) => {
      const { message, value } = answered as ToolResult<V["Type"]>
      const images = value === undefined ? [] : (definition.images?.(value) ?? [])
      return [
        Prompt.textPart({ text: message }),
        ...images.map(({ base64, mediaType }) => Prompt.filePart({ mediaType, data: base64 }))
      ]
    }
  })
    .annotate(Tool.Readonly, definition.does === "reads")
    .annotate(Tool.Destructive, definition.does === "changes")
    .annotate(Tool.Idempotent, definition.idempotent)
    .annotate(Tool.OpenWorld, false)

export const handler =
  <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
    definition: Definition<N, P, V, R>,
    memory: Memory
  ) =>
  (
    params: Schema.Struct<P>["Type"],
    context: { readonly toolCallId?: string | undefined }
  ): Effect.Effect<ToolResult<V["Type"]>, never, R> =>
    invoke(definition, params, { memory, callId: context.toolCallId })
