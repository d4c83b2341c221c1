/**
 * Turns definitions into tools of effect/ai. The model gets the message and the images; the program gets the whole result. The
 * tools accept any input and report invalid input themselves, so that error messages are the same everywhere.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Filesystem } from "../filesystem/Filesystem.ts"
import type { Run, RunTools } from "./model.ts"
import { ToolResult } from "./ToolResult.ts"
import { recoverChanges } from "./changes.ts"
import type { Definition } from "./definition.ts"
import { invokeUnknown } from "./dispatch.ts"
import * as Memory from "./memory.ts"

/**
 * Returns the schema of the parameters, or of an empty object if there are none. The schema of an empty struct would accept every
 * value except null and undefined.
 */
const parametersSchema = (parameters: Schema.Struct<Schema.Struct.Fields>): Schema.Top =>
  Object.keys(parameters.fields).length === 0 ? Tool.EmptyParams : parameters

const announceSchema = <P extends Schema.Struct.Fields>(
  parameters: Schema.Struct<P>
): Schema.Codec<Schema.Struct<P>["Type"], Schema.Struct<P>["Encoded"]> =>
  Schema.declare<Schema.Struct<P>["Type"]>((_sent): _sent is Schema.Struct<P>["Type"] => true, {
    toCodecJson: () =>
      Schema.link<Schema.Struct<P>["Type"]>()(
        parametersSchema(parameters) as never,
        SchemaTransformation.passthrough() as never
      )
  }) as never

/** Returns the tool with another id. Effect finds a handler by this id. By default, tools with the same name have the same id. */
const withId = <T extends Tool.Any>(tool: T, id: string): T =>
  Object.assign(Object.create(Object.getPrototypeOf(tool) as object) as T, tool, { id })

const make = <const N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>
) =>
  Tool.make(definition.name, {
    description: definition.description,
    parameters: announceSchema(definition.parameters),
    success: ToolResult(definition.value),
    failureMode: "return",
    toModelOutput: (toolResult) => {
      const { message, value } = toolResult as ToolResult<V["Type"]>
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

export const toTool = <const N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>,
  kit = "filesystem"
) => withId(make(definition), `fs-algebra/${kit}/${definition.name}`)

export const recoveredFilesystem = Effect.tap(Filesystem, recoverChanges)

export type Bind = <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top>(
  definition: Definition<N, P, V, never>
) => (
  params: Schema.Struct<P>["Type"],
  context: { readonly toolCallId?: string | undefined }
) => Effect.Effect<ToolResult<V["Type"]>>

/**
 * Makes the handlers of one session, which share a record of the file versions that the session has seen. The handlers use
 * `services`, even if the context of a call provides other services.
 */
export const bindSession = <S>(services: Context.Context<S>): Bind => {
  const memory = Memory.make()
  return <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top>(definition: Definition<N, P, V, never>) =>
    (params: Schema.Struct<P>["Type"], { toolCallId }: { readonly toolCallId?: string | undefined }) =>
      invokeUnknown(definition, params, { memory, callId: toolCallId }).pipe(Effect.provideContext(services)) as Effect.Effect<
        ToolResult<V["Type"]>
      >
}

type Params = { readonly toolCallId?: string | undefined }

export const toolkit = (run: Run): Effect.Effect<Toolkit.WithHandler<RunTools>> => {
  const made = Toolkit.make(...run.tools.map(({ definition }) => toTool(definition, "run") as Tool.Any))
  const handlers = Object.fromEntries(
    run.tools.map(({ definition: { name } }) => [
      name,
      (params: unknown, { toolCallId }: Params) => run.call(name, params, { callId: toolCallId })
    ])
  )
  return Effect.flatMap(made.toHandlers(handlers), (context) =>
    Effect.provideContext(made, context)
  ) as unknown as Effect.Effect<Toolkit.WithHandler<RunTools>>
}
