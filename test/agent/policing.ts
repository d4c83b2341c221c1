/** A session of tools on a filesystem, under policies that are provided as a program would provide them. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { AnyDefinition } from "../../src/agent/definition.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import type { ToolInvoked } from "../../src/agent/ToolEvents.ts"
import { ToolEvents } from "../../src/agent/ToolEvents.ts"
import * as Tools from "../../src/agent/tools.ts"
import { applyPatch } from "../../src/agent/tools/applyPatch.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import type { Snapshots } from "../../src/history/Snapshots.ts"
import type { Result } from "./looking.ts"

export const tools: Readonly<Record<string, AnyDefinition>> = Object.fromEntries(
  [...Tools.seven, ...Tools.extras, ...Tools.snapshotTools, applyPatch].map((definition) => [definition.name, definition])
)

export interface Session {
  readonly call: (tool: string | AnyDefinition, input: unknown, callId?: string) => Effect.Effect<Result>
  readonly events: ReadonlyArray<ToolInvoked>
  readonly fs: Algebra
}

/** Starts a session. `services` are the services of tools beside the filesystem, such as Snapshots. */
export const session = (
  fs: Algebra,
  policies: Layer.Layer<never, never, Filesystem | Snapshots> = Layer.empty,
  services: Context.Context<never> = Context.empty()
): Effect.Effect<Session, never, Scope.Scope> =>
  Effect.gen(function* () {
    const base = Context.add(services, Filesystem, fs) as Context.Context<Filesystem | Snapshots>
    const built = yield* Effect.provideContext(Layer.build(policies), base)
    const events: Array<ToolInvoked> = []
    const memory = Memory.make()
    const context = built.pipe(
      Context.add(ToolEvents, (event: ToolInvoked) => Effect.sync(() => void events.push(event))),
      Context.merge(base)
    ) as Context.Context<unknown>
    return {
      fs,
      events,
      call: (tool, input, callId) =>
        Effect.provideContext(
          invokeUnknown(typeof tool === "string" ? tools[tool]! : tool, input, { memory, callId }),
          context
        ) as Effect.Effect<Result>
    }
  })

/** Builds snapshots of the filesystem, outside of the agent's session. */
export const snapshotsOf = (fs: Algebra): Effect.Effect<Context.Context<never>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { layer } = yield* Effect.promise(() => import("../../src/history/Snapshots.ts"))
    return yield* Layer.build(layer.pipe(Layer.provide(Layer.succeed(Filesystem, fs))))
  }).pipe(Effect.orDie) as Effect.Effect<Context.Context<never>, never, Scope.Scope>
