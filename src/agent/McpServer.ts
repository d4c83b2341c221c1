/**
 * A server of the Model Context Protocol over whatever Filesystem there is: the tools with their policies, the files as resources, and
 * one prompt. What a client offers of its own, roots among it, is never asked for: what is given here is all that there is.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { Stdio } from "effect/Stdio"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as Server from "effect/ai/McpServer"
import type * as HttpRouter from "effect/http/HttpRouter"
import { readOnly as readOnlyView } from "../filesystem/Decorator.ts"
import { Filesystem } from "../filesystem/Filesystem.ts"
import { Snapshots } from "../history/Snapshots.ts"
import type { AnyDefinition } from "./definition.ts"
import * as Changes from "./mcp/changes.ts"
import { type Chosen, choose } from "./mcp/choice.ts"
import * as Flow from "./mcp/flow.ts"
import { instructions } from "./mcp/guide.ts"
import * as Prompts from "./mcp/prompts.ts"
import * as Resources from "./mcp/resources.ts"
import * as Sessions from "./mcp/sessions.ts"
import { guard } from "./mcp/stdio.ts"
import * as Tools from "./mcp/tools.ts"
import * as Versions from "./mcp/versions.ts"
import { offered } from "./policy/core.ts"
import { ToolSettings } from "./ToolSettings.ts"

/**
 * What a server offers.
 *
 * @since 0.1.0
 */
export interface Options {
  /** @default "fs-algebra" */
  readonly name?: string | undefined
  /** Of the server. @default "0.1.0" */
  readonly version?: string | undefined
  /** What every client is told at the start. @default how to work with the files, for these tools */
  readonly instructions?: string | undefined
  /** A kit, or the names of tools: `all` is the seven and the extras, `vfs` the kit of four. @default "all" */
  readonly tools?: Chosen | undefined
  /** Offer only tools that change nothing, and let nothing be changed by any other way. @default false */
  readonly readOnly?: boolean | undefined
  /** What the files are called together, for the guidance. @default none */
  readonly workspace?: string | undefined
  /** Tools of one's own, beside those of `tools`. @default none */
  readonly extra?: ReadonlyArray<AnyDefinition> | undefined
  /** What else is to be served, as layers of effect/ai's McpServer. @default nothing */
  readonly registrations?: Layer.Layer<never, never, Server.McpServer> | undefined
}

/**
 * Options of a server over HTTP.
 *
 * @since 0.1.0
 */
export interface HttpOptions extends Options {
  /** @default "/mcp" */
  readonly path?: HttpRouter.PathInput | undefined
  /** Which pages of browsers may ask; programs have no origin. @default none */
  readonly allowedOrigins?: ReadonlyArray<string> | undefined
}

/** How many tools work at once, whoever asked for them; the others wait. */
const maxWorking = 16

const protocols = [
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26,
  McpProtocol.v2024_11_05,
  McpProtocol.v2026_07_28
] as const

interface Plan {
  readonly info: { readonly name: string; readonly version: string; readonly instructions: string }
  readonly registrations: Layer.Layer<never, never, Server.McpServer | Filesystem>
}

const plan = Effect.fnUntraced(function* (options: Options, flow: Flow.Flow): Effect.fn.Return<Plan> {
  const settings = yield* ToolSettings
  const hasSnapshots = Option.isSome(yield* Effect.serviceOption(Snapshots))
  const readOnly = options.readOnly ?? false
  const chosen = [...(yield* choose(options.tools ?? "all", { hasSnapshots, readOnly })), ...(options.extra ?? [])]
  const tools = chosen.filter(yield* offered)
  const facts = { tools, settings, readOnly, workspace: options.workspace }
  const serving = { flow, sessions: Sessions.make(), permits: yield* Semaphore.make(maxWorking) }
  const register = Effect.gen(function* () {
    for (const tool of tools) yield* Tools.register(tool, serving)
    yield* Resources.register(serving)
    yield* Prompts.register(facts)
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
    )
  }
})

/** Standard output belongs to the protocol. */
const logsToStderr = Layer.succeed(Logger.LogToStderr, true)

/**
 * The tools, resources and prompt alone, for a server of effect/ai that has others too or another transport.
 *
 * @since 0.1.0
 */
export const registrations = (options: Options = {}): Layer.Layer<never, never, Filesystem | Server.McpServer> =>
  Layer.unwrap(Effect.map(plan(options, Flow.make()), ({ registrations }) => registrations))

/**
 * Serves one client over standard input and output until it hangs up; what it was still waiting for is then interrupted, and the files
 * are as they were before it.
 *
 * @since 0.1.0
 */
export const runStdio: (options?: Options) => Effect.Effect<void, never, Filesystem | Stdio> = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<void, never, Filesystem | Stdio | Scope.Scope> {
  const flow = Flow.make()
  const { info, registrations } = yield* plan(options, flow)
  const subscribed = yield* Latch.make()
  const onMethod = (method: string) =>
    method === "resources/subscribe" || method === "subscriptions/listen" ? Effect.asVoid(subscribed.open) : Effect.void
  const { gone, stdio } = yield* guard(yield* Stdio, flow, onMethod)
  const notices = Effect.flatMap(Server.McpServer, (server) => Effect.andThen(subscribed.await, Changes.notices(server)))
  const all = Layer.merge(registrations, Layer.effectDiscard(Effect.forkScoped(notices)))
  const server = Server.layerStdio({ ...info, protocols, registrations: all }).pipe(
    Layer.provide(Layer.succeed(Stdio, stdio)),
    Layer.provide(logsToStderr)
  )
  const serving = yield* Effect.forkChild(Layer.launch(server as unknown as Layer.Layer<never, never, Filesystem>))
  yield* Effect.raceFirst(Fiber.await(serving), gone)
  yield* Fiber.interrupt(serving)
}, Effect.scoped)

/**
 * The same as a layer, which ends nothing when the client hangs up.
 *
 * @since 0.1.0
 */
export const layerStdio = (options?: Options): Layer.Layer<never, never, Filesystem | Stdio> =>
  Layer.effectDiscard(Effect.forkScoped(runStdio(options)))

/**
 * Serves many clients over HTTP, each with a session of its own that it may end. Where the server listens, and who may reach it, is for
 * the HTTP server to say: there is no other authentication. Change notices are for standard input and output alone.
 *
 * @since 0.1.0
 */
export const layerHttp = (options: HttpOptions = {}): Layer.Layer<never, never, Filesystem | HttpRouter.HttpRouter> =>
  Layer.unwrap(
    Effect.map(plan(options, Flow.make()), ({ info, registrations }) =>
      Server.layerHttp({
        ...info,
        protocols,
        path: options.path ?? "/mcp",
        allowedOrigins: options.allowedOrigins,
        allowSessionTermination: true,
        allowSubscriptions: false,
        registrations
      }).pipe(Layer.provide(Versions.layer))
    )
  ).pipe(Layer.provide(logsToStderr)) as unknown as Layer.Layer<never, never, Filesystem | HttpRouter.HttpRouter>
