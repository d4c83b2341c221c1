/**
 * Serves one pipe with a server of effect/ai. The registrations may be made after the server starts: the client is greeted at
 * once, and its requests wait until everything is registered.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { Stdio } from "effect/Stdio"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as ClientRoots from "./clientRoots.ts"
import type { Flow } from "./flow.ts"
import { type Pipe, guard } from "./stdio.ts"
import { guideName, rootUri } from "./names.ts"

export const protocols = [
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26,
  McpProtocol.v2024_11_05,
  McpProtocol.v2026_07_28
] as const

export interface Info {
  readonly name: string
  readonly version: string
  readonly instructions: string
}

/** Sends logs to standard error, because standard output carries the protocol. */
export const logsToStderr = Layer.succeed(Logger.LogToStderr, true)

/**
 * Registers placeholders. The greeting must announce that there are tools, resources and prompts. The real ones replace them
 * before the first list is sent.
 */
const placeholders = (tool: string) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const server = yield* McpServer.McpServer
      const annotations = Context.empty()
      const none = Effect.fail(new McpSchema.InternalError({ message: "not yet" }))
      const inputSchema = { type: "object" } as const
      yield* server.addTool({ tool: new McpSchema.Tool({ name: tool, inputSchema }), annotations, handle: () => none })
      yield* server.addResource({
        resource: new McpSchema.Resource({ uri: rootUri, name: "root" }),
        annotations,
        handle: none
      })
      const prompt = new McpSchema.Prompt({ name: guideName })
      yield* server.addPrompt({ prompt, annotations, completions: {}, handle: () => none })
    })
  )

const noClient = McpSchema.McpRequestContext.of({
  clientId: -1,
  protocolVersion: "",
  clientCapabilities: new McpSchema.ClientCapabilities({})
})

/** Completes after everything that schedulers have deferred so far. A timer of any length may fire earlier than that. */
const afterDeferredWork = Effect.callback<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

/**
 * Waits until effect has sent all notices of these registrations, while no client listens yet. A notice within a request is
 * awaited, and comes after the others, which the scheduler defers.
 */
const awaitNotices = Effect.gen(function* () {
  const { notifications } = yield* McpServer.McpServer
  yield* afterDeferredWork
  const last = notifications["notifications/resources/updated"]({ uri: rootUri })
  yield* Effect.provideService(last, McpSchema.McpRequestContext, noClient)
  // The earlier notices are being sent now; each is decided in a macrotask of its own.
  yield* afterDeferredWork
})

const firstMessageTimeout = "250 millis"

export interface Serving<E, R> {
  readonly info: Info
  readonly ends: Pipe
  readonly flow: Flow
  /** Registers everything with the server. `subscribed` completes when a client subscribes to changes. */
  readonly register: (
    subscribed: Effect.Effect<void>,
    roots: ClientRoots.ClientRoots
  ) => Layer.Layer<never, E, R | McpServer.McpServer>
  /** A tool that will exist, for a greeting before the tools are loaded. */
  readonly certainTool?: string | undefined
}

export const serve = Effect.fnUntraced(function* <E, R>({ certainTool, ends, flow, info, register }: Serving<E, R>) {
  const [subscribed, ready] = [yield* Latch.make(), yield* Latch.make(certainTool === undefined)]
  const failed = yield* Deferred.make<never, E>()
  const onMethod = (method: string) =>
    method === "resources/subscribe" || method === "subscriptions/listen" ? Effect.asVoid(subscribed.open) : Effect.void
  const roots = yield* ClientRoots.make((text) => Effect.ignoreCause(ends.write(text)))
  const { answered, gone, stdio } = yield* guard(ends, { flow, onMethod, ready: ready.await, takes: roots.takes })
  const registrationLayer = register(subscribed.await, roots)
  const registerLater = Effect.gen(function* () {
    yield* Effect.raceFirst(answered, Effect.sleep(firstMessageTimeout))
    yield* Layer.buildWithScope(registrationLayer, yield* Effect.scope)
    yield* awaitNotices
    yield* ready.open
  }).pipe(Effect.onExit((exit) => (Exit.isFailure(exit) ? Deferred.failCause(failed, exit.cause) : Effect.void)))
  const registrations =
    certainTool === undefined
      ? registrationLayer
      : Layer.effectDiscard(Effect.forkScoped(Effect.exit(registerLater))).pipe(Layer.provideMerge(placeholders(certainTool)))
  const server = McpServer.layerStdio({ ...info, protocols, registrations }).pipe(
    Layer.provide(Layer.succeed(Stdio, stdio)),
    Layer.provide(logsToStderr)
  )
  // Fork into the scope: an interruption of this fiber then waits until the tools have rolled back, and the files close after
  // that.
  const serverFiber = yield* Effect.forkScoped(Layer.launch(server as unknown as Layer.Layer<never, E, R>))
  yield* Effect.raceFirst(Deferred.await(failed), Effect.raceFirst(Effect.exit(Fiber.join(serverFiber)), gone))
  yield* Fiber.interrupt(serverFiber)
}, Effect.scoped)
