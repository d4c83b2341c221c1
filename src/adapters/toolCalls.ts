/** Runs tools for programs that do not use Effect: a call takes JSON, and returns a promise. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Options as ServerOptions } from "../agent/McpServer.ts"
import { recoverChanges } from "../agent/changes.ts"
import type { AnyDefinition, Image, Requirements } from "../agent/definition.ts"
import { invokeUnknown, type Json } from "../agent/dispatch.ts"
import * as Memory from "../agent/memory.ts"
import { offered } from "../agent/policy/core.ts"
import { chooseTools } from "../agent/selection.ts"
import { inputSchema, makeValueEncoder } from "../agent/wire.ts"
import { readOnly as readOnlyView } from "../filesystem/Decorator.ts"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import { Sandbox } from "../filesystem/Sandbox.ts"
import { Snapshots } from "../history/snapshots/tag.ts"
import { runner } from "./run.ts"

/**
 * The tools that an adapter offers, including your own tools `T`.
 *
 * @since 0.1.0
 */
export type ToolOptions<T extends AnyDefinition<unknown> = AnyDefinition> = Pick<
  ServerOptions<T>,
  "tools" | "readOnly" | "extra"
>

export interface CallOptions {
  /** The id that the model's provider gave the call. @default a new UUID */
  readonly callId?: string | undefined
  /** Interrupts the call. The files then have their old or their new content. */
  readonly signal?: AbortSignal | null | undefined
}

/** The result of a tool as JSON. `value` does not contain the base64 data of images. */
export interface Output {
  readonly success: boolean
  readonly message: string
  readonly value?: unknown
  readonly images?: ReadonlyArray<Image>
}

/** A tool with the services that its calls use. */
export interface BoundTool {
  readonly name: string
  readonly description: string
  readonly does: "reads" | "adds" | "changes"
  readonly inputSchema: Json & { readonly type: "object" }
  /** Rejects only if the signal is aborted, with its reason, or if the program has a defect. */
  readonly call: (input: unknown, options?: CallOptions) => Promise<Output>
}

const outputOf = (definition: AnyDefinition<unknown>) => {
  const encode = makeValueEncoder(definition)
  return Effect.fnUntraced(function* (result: {
    readonly success: boolean
    readonly message: string
    readonly value?: unknown
  }) {
    const { message, success, value } = result
    if (!success) return { success, message } satisfies Output
    const images = definition.images?.(value) ?? []
    return {
      success,
      message,
      value: yield* encode(value, images),
      ...(images.length > 0 && { images })
    } satisfies Output
  })
}

/**
 * Binds tools to the filesystem. The tools form one session: they share the record of the file versions that were read. First
 * completes or discards the changes that killed processes left unfinished.
 */
export const bindTools = <T extends AnyDefinition<unknown>>(
  definitions: ReadonlyArray<T>,
  isReadOnly = false
): Effect.Effect<ReadonlyArray<BoundTool>, never, Filesystem | Requirements<T>> =>
  Effect.gen(function* () {
    const filesystem: Algebra = isReadOnly ? readOnlyView(yield* Filesystem) : yield* Filesystem
    yield* recoverChanges(filesystem)
    const run = yield* Effect.provideService(runner, Filesystem, filesystem)
    const memory = Memory.make()
    return definitions.map((definition): BoundTool => {
      const encoded = outputOf(definition)
      return {
        name: definition.name,
        description: definition.description,
        does: definition.does,
        inputSchema: inputSchema(definition.parameters),
        call: (input, { callId, signal } = {}) =>
          run(
            Effect.flatMap(invokeUnknown(definition as unknown as AnyDefinition, input, { memory, callId }), encoded),
            signal
          ) as Promise<Output>
      }
    })
  }) as Effect.Effect<ReadonlyArray<BoundTool>, never, Filesystem | Requirements<T>>

/** Makes the tools that the options, the services and the policies permit. */
export const chooseAndBind = Effect.fnUntraced(function* <T extends AnyDefinition<unknown>>({
  extra = [],
  readOnly = false,
  tools = "all"
}: ToolOptions<T>): Effect.fn.Return<ReadonlyArray<BoundTool>, never, Filesystem | Requirements<T>> {
  const hasSnapshots = Option.isSome(yield* Effect.serviceOption(Snapshots))
  const hasSandbox = Option.isSome(yield* Effect.serviceOption(Sandbox))
  const chosen = [
    ...(yield* chooseTools(tools, { hasSandbox, hasSnapshots, readOnly })),
    ...extra.filter(({ does }) => !readOnly || does === "reads")
  ]
  return yield* bindTools(chosen.filter(yield* offered), readOnly) as Effect.Effect<
    ReadonlyArray<BoundTool>,
    never,
    Filesystem | Requirements<T>
  >
})
