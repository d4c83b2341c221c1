/**
 * Definitions as tools of effect/ai: the model reads the message and sees the images, the program gets the whole result. A tool of ours
 * takes whatever is sent, and what is wrong with it is said in the same words as anywhere else.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import { Filesystem } from "../filesystem/Filesystem.ts"
import { recoverChanges } from "./changes/apply.ts"
import type { Definition } from "./definition.ts"
import { invokeUnknown } from "./dispatch.ts"
import * as Memory from "./memory.ts"
import { ToolResult } from "./ToolResult.ts"

/** Of no parameters the JSON Schema is not that of an empty struct, which anything but null is. */
const object = (parameters: Schema.Struct<Schema.Struct.Fields>): Schema.Top =>
  Object.keys(parameters.fields).length === 0 ? Tool.EmptyParams : parameters

/** Shows the JSON Schema of the struct and lets everything through: the dispatch decodes it. */
const announced = <P extends Schema.Struct.Fields>(
  parameters: Schema.Struct<P>
): Schema.Codec<Schema.Struct<P>["Type"], Schema.Struct<P>["Encoded"]> =>
  Schema.declare<Schema.Struct<P>["Type"]>((_sent): _sent is Schema.Struct<P>["Type"] => true, {
    toCodecJson: () =>
      Schema.link<Schema.Struct<P>["Type"]>()(object(parameters) as never, SchemaTransformation.passthrough() as never)
  }) as never

/** Handlers are found by this. That of effect is made of the name alone, so that one of two tools of a name would serve both. */
const identified = <T extends Tool.Any>(tool: T, id: string): T =>
  Object.assign(Object.create(Object.getPrototypeOf(tool) as object) as T, tool, { id })

const make = <const N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>
) =>
  Tool.make(definition.name, {
    description: definition.description,
    parameters: announced(definition.parameters),
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

/** `kit` tells tools of one name apart. */
export const toTool = <const N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>,
  kit = "filesystem"
) => identified(make(definition), `fs-algebra/${kit}/${definition.name}`)

/** The filesystem of a session. What a killed process has left half done of a change of several files is finished first. */
export const recovered = Effect.tap(Filesystem, recoverChanges)

/** Makes the handler of a definition. */
export type Bind = <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top>(
  definition: Definition<N, P, V, never>
) => (
  params: Schema.Struct<P>["Type"],
  context: { readonly toolCallId?: string | undefined }
) => Effect.Effect<ToolResult<V["Type"]>>

/** The handlers of one session, which shares what it has seen. `services` are theirs, whatever is around a call. */
export const session = <S>(services: Context.Context<S>): Bind => {
  const memory = Memory.make()
  return <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top>(definition: Definition<N, P, V, never>) =>
    (params: Schema.Struct<P>["Type"], { toolCallId }: { readonly toolCallId?: string | undefined }) =>
      invokeUnknown(definition, params, { memory, callId: toolCallId }).pipe(Effect.provideContext(services)) as Effect.Effect<
        ToolResult<V["Type"]>
      >
}
