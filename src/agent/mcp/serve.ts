/**
 * Serves the client of one pipe with a server of effect/ai. If the name of one tool is known, the server answers `initialize`
 * before the tools, resources and prompts are registered. Other requests wait for the registration.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import { isReadonlyObject as isRecord } from "effect/Predicate"
import * as Queue from "effect/Queue"
import { Stdio } from "effect/Stdio"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import { guideName, rootUri } from "./guide.ts"
import { type Flow, guard, type Message, type Pipe } from "./stdio.ts"

// Requests the roots of a client directly over the pipe. The server of effect can send a request only while it answers a request
// of the client, but the roots must be known before any request is served.

export interface ClientRoots {
  readonly takes: (message: Message) => boolean
  /**
   * Requests the roots as soon as the client is ready. Succeeds with `undefined` if the client has no roots or does not answer
   * with a list. Succeeds with "late" after a timeout; a later answer then completes `changed`.
   */
  readonly list: Effect.Effect<ReadonlyArray<unknown> | "late" | undefined>
  readonly changed: Effect.Effect<void>
}

const answerTimeout = "10 seconds"

const maxUnanswered = 64

const requestIdPrefix = "fs-algebra/roots/"

const field = (value: unknown, ...names: ReadonlyArray<string>): unknown =>
  names.reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), value)

const parsed = ({ text }: Message): unknown => JSON.parse(text)

export const make = Effect.fnUntraced(function* (write: (text: string) => Effect.Effect<void>) {
  const clientReady = yield* Deferred.make<boolean>()
  const changes = yield* Queue.sliding<void>(1)
  const pendingRequests = new Map<string, Deferred.Deferred<unknown>>()
  const lateRequestIds = new Set<string>()
  let hasRoots = false
  let count = 0

  const answers = (message: Message): boolean => {
    if (message.method !== undefined || count === 0) return false
    const value = parsed(message)
    const id = field(value, "id")
    const pendingAnswer = typeof id === "string" ? pendingRequests.get(id) : undefined
    if (pendingAnswer !== undefined) Deferred.doneUnsafe(pendingAnswer, Effect.succeed(field(value, "result", "roots")))
    // The client may ask its user first and so answer late. Report a change, so that the roots are requested again.
    else if (typeof id === "string" && lateRequestIds.delete(id)) Queue.offerUnsafe(changes, undefined)
    return pendingAnswer !== undefined || (typeof id === "string" && id.startsWith(requestIdPrefix))
  }

  const takes = (message: Message): boolean => {
    const { isRequest, method } = message
    if (method === "initialize") hasRoots = isRecord(field(parsed(message), "params", "capabilities", "roots"))
    // Some clients never send "initialized", and one version of the protocol has no handshake. These clients are ready when they
    // send their first request.
    const isReady =
      method === "initialize" ? !hasRoots : method === "notifications/initialized" || (isRequest && method !== "ping")
    if (isReady) Deferred.doneUnsafe(clientReady, Effect.succeed(hasRoots))
    if (method === "notifications/roots/list_changed" && hasRoots) Queue.offerUnsafe(changes, undefined)
    return answers(message)
  }

  const requestRoots = Effect.gen(function* () {
    const id = `${requestIdPrefix}${++count}`
    const answer = yield* Deferred.make<unknown>()
    pendingRequests.set(id, answer)
    yield* write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "roots/list" })}\n`)
    const answerInTime = Effect.timeoutOption(Deferred.await(answer), answerTimeout)
    const roots = yield* Effect.ensuring(
      answerInTime,
      Effect.sync(() => pendingRequests.delete(id))
    )
    if (Option.isNone(roots)) {
      lateRequestIds.add(id)
      if (lateRequestIds.size > maxUnanswered) lateRequestIds.delete(lateRequestIds.values().next().value!)
      return "late" as const
    }
    return Array.isArray(roots.value) ? (roots.value as ReadonlyArray<unknown>) : undefined
  })

  return {
    takes,
    list: Effect.flatMap(Deferred.await(clientReady), (has) => (has ? requestRoots : Effect.succeed(undefined))),
    changed: Queue.take(changes)
  } satisfies ClientRoots
})

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
 * Registers placeholders, because the answer to `initialize` must announce tools, resources and prompts. The real registrations
 * replace the placeholders before the first list is sent.
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

/** Completes after all work that schedulers have deferred so far. A timer of any length may fire before that work. */
const afterDeferredWork = Effect.callback<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

/**
 * Waits, before any client is connected, until effect has sent the notices about new registrations. Sends one more notice
 * through the same queue: its delivery shows that effect has taken the earlier notices. Effect waits for the delivery of a
 * notice only if the notice has a request context, here `noClient`.
 */
const awaitNotices = Effect.gen(function* () {
  const { notifications } = yield* McpServer.McpServer
  yield* afterDeferredWork
  const last = notifications["notifications/resources/updated"]({ uri: rootUri })
  yield* Effect.provideService(last, McpSchema.McpRequestContext, noClient)
  // Effect has taken the earlier notices from the queue, but may still be sending them.
  yield* afterDeferredWork
})

const firstMessageTimeout = "250 millis"

interface Serving<E, R> {
  readonly info: Info
  readonly ends: Pipe
  readonly flow: Flow
  readonly register: (subscribed: Effect.Effect<void>, roots: ClientRoots) => Layer.Layer<never, E, R | McpServer.McpServer>
  readonly certainTool?: string | undefined
}

export const serve = Effect.fnUntraced(function* <E, R>({ certainTool, ends, flow, info, register }: Serving<E, R>) {
  const [subscribed, ready] = [yield* Latch.make(), yield* Latch.make(certainTool === undefined)]
  const failed = yield* Deferred.make<never, E>()
  const onMethod = (method: string) =>
    method === "resources/subscribe" || method === "subscriptions/listen" ? Effect.asVoid(subscribed.open) : Effect.void
  const roots = yield* make((text) => Effect.ignoreCause(ends.write(text)))
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
  // Fork into the scope. An interruption then waits until the tools have rolled back, and only then closes the files.
  const serverFiber = yield* Effect.forkScoped(Layer.launch(server as unknown as Layer.Layer<never, E, R>))
  yield* Effect.raceFirst(Deferred.await(failed), Effect.raceFirst(Effect.exit(Fiber.join(serverFiber)), gone))
  yield* Fiber.interrupt(serverFiber)
}, Effect.scoped)
