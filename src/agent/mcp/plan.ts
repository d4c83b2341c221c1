import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import type * as McpServer from "effect/ai/McpServer"
import { readOnly as readOnlyView } from "../../filesystem/Decorator.ts"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { Sandbox } from "../../filesystem/Sandbox.ts"
import { Snapshots } from "../../history/Snapshots.ts"
import { recoverChanges } from "../changes/apply.ts"
import type { AnyDefinition, Requirements } from "../definition.ts"
import { invokeUnknown } from "../dispatch.ts"
import type { Options } from "../McpServer.ts"
import { offered } from "../policy/core.ts"
import { ToolSettings } from "../ToolSettings.ts"
import * as Changes from "./changes.ts"
import { chooseTools } from "./choice.ts"
import type { Flow } from "./flow.ts"
import { guide, instructions } from "./guide.ts"
import * as Prompts from "./prompts.ts"
import * as Resources from "./resources.ts"
import type { Info } from "./serve.ts"
import * as Sessions from "./sessions.ts"
import * as Tools from "./tools.ts"

export interface Plan<R = Filesystem> {
  readonly info: Info
  readonly registrations: Layer.Layer<never, never, McpServer.McpServer | R>
  readonly changes: (subscribed: Effect.Effect<void>) => Layer.Layer<never, never, McpServer.McpServer | R>
}

/** The largest number of tools that run at once, over all clients; further calls wait. */
const maxRunningTools = 16

export const makeServing = (
  flow: Flow,
  isStructured: boolean | undefined,
  invoke: Tools.Serving["invoke"]
): Effect.Effect<Tools.Serving> =>
  Effect.map(Semaphore.make(maxRunningTools), (permits) => ({ flow, invoke, permits, isStructured: isStructured === true }))

export const plan = Effect.fnUntraced(function* <T extends AnyDefinition<unknown>>(
  options: Options<T>,
  flow: Flow
): Effect.fn.Return<Plan<Filesystem | Requirements<T>>> {
  const { limits } = yield* ToolSettings
  const hasSnapshots = Option.isSome(yield* Effect.serviceOption(Snapshots))
  const hasSandbox = Option.isSome(yield* Effect.serviceOption(Sandbox))
  const readOnly = options.readOnly ?? false
  const chosen = [
    ...(yield* chooseTools(options.tools ?? "all", { hasSandbox, hasSnapshots, readOnly })),
    ...(options.extra ?? []).filter(({ does }) => !readOnly || does === "reads")
  ]
  const tools = chosen.filter(yield* offered)
  const facts = { names: new Set(tools.map(({ name }) => name)), limits, readOnly, workspace: options.workspace }
  const sessions = Sessions.make()
  const toolServing = yield* makeServing(flow, options.structured, (definition, input) =>
    Effect.flatMap(sessions.memory, (memory) => invokeUnknown(definition, input, { memory }))
  )
  const register = Effect.gen(function* () {
    // Finish the interrupted changes of a killed server before any client sees the files.
    yield* Effect.flatMap(Filesystem, recoverChanges)
    for (const tool of tools) yield* Tools.register(tool, toolServing)
    yield* Resources.register(toolServing)
    yield* Prompts.register(guide(facts))
  })
  return {
    info: {
      name: options.name ?? "fs-algebra",
      version: options.version ?? "0.1.0",
      instructions: options.instructions ?? instructions(facts)
    },
    registrations: Layer.merge(
      Layer.effectDiscard(readOnly ? Effect.updateService(register, Filesystem, readOnlyView) : register),
      options.registrations ?? Layer.empty
    ),
    changes: Changes.layer
  }
})
