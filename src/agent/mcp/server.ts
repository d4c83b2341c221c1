/**
 * The implementation of McpServer.ts, loaded on first use, because the server of effect/ai loads slowly.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { Stdio } from "effect/Stdio"
import * as Server from "effect/ai/McpServer"
import * as Headers from "effect/http/Headers"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { isUtf8 } from "../../runtime/node.ts"
import type { HttpOptions, Options } from "../McpServer.ts"
import * as Prompt from "../Prompt.ts"
import { make as makeRun } from "../adapter/run.ts"
import type { AnyDefinition, Requirements } from "../definition.ts"
import type { Adapter, Given, McpOptions, Prompt as PromptOf, PromptError, SectionError } from "../model.ts"
import { mergeContexts } from "../policy/core.ts"
import { changeNotices, makeServing, plan, type Plan } from "./plan.ts"
import * as Resources from "./resources.ts"
import { logsToStderr, protocols, serve } from "./serve.ts"
import { type Flow, makeFlow, pipeOf } from "./stdio.ts"
import * as Tools from "./tools.ts"

// Refuses a request body that is not UTF-8. A lenient decoder would replace invalid bytes, and the replacement characters could
// get into a file.

type Request = HttpServerRequest.HttpServerRequest

const notUtf8Response = HttpServerResponse.jsonUnsafe(
  { jsonrpc: "2.0", id: null, error: { code: -32_700, message: "Parse error: a message must be UTF-8" } },
  { status: 400 }
)

const withText = (request: Request): Effect.Effect<Request | HttpServerResponse.HttpServerResponse> =>
  request.method !== "POST"
    ? Effect.succeed(request)
    : Effect.match(request.arrayBuffer, {
        // The body is too large or incomplete. The server gets the same error when it reads the body.
        onFailure: () => request,
        onSuccess: (body) => {
          const bytes = Buffer.from(body)
          if (!isUtf8(bytes)) return notUtf8Response
          return Object.create(request, { text: { value: Effect.succeed(bytes.toString("utf8")) } }) as Request
        }
      })

// Removes the header `mcp-protocol-version` from the requests of a session, so that the version on which the session has
// agreed applies. Keeps the header if it names a version without sessions.

const versionsWithSessions: ReadonlySet<string> = new Set(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])

const withoutWrongVersion = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  const { "mcp-protocol-version": version, "mcp-session-id": session } = request.headers
  return session === undefined || version === undefined || !versionsWithSessions.has(version)
    ? request
    : request.modify({ headers: Headers.remove(request.headers, "mcp-protocol-version") })
}

const layer = HttpRouter.middleware((handler) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    Effect.flatMap(withText(withoutWrongVersion(request)), (checkedRequest) =>
      HttpServerResponse.isHttpServerResponse(checkedRequest)
        ? Effect.succeed(checkedRequest)
        : Effect.provideService(handler, HttpServerRequest.HttpServerRequest, checkedRequest)
    )
  )
).layer

// Limits the sessions of an HTTP server. effect/ai keeps each session until the client ends the session, and many clients never
// do. The limiter ends a session through the server's DELETE route. The client then gets status 404 and must start a new session.

interface SessionLimits {
  readonly maxSessions?: number | undefined
  readonly sessionIdleTimeout?: Duration.Input | undefined
}

const sessionHeader = "mcp-session-id"

interface Session {
  requests: number
  usedAt: number
}

type Handler = (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<HttpServerResponse.HttpServerResponse>

const tooManySessions = HttpServerResponse.text("Too many sessions are in use. Try again later.\n", {
  status: 503,
  headers: { "retry-after": "1" }
})

const makeHandlers = ({ maxSessions = 1000, sessionIdleTimeout = "1 day" }: SessionLimits) => {
  const idleTimeoutMillis = Duration.toMillis(sessionIdleTimeout)
  /** The sessions in order of use. The most recently used session is last. */
  const sessions = new Map<string, Session>()
  let deleteHandler: Handler | undefined

  const touch = (id: string, session: Session, now: number): void => {
    session.usedAt = now
    sessions.delete(id)
    sessions.set(id, session)
  }
  const endSession = (id: string, request: HttpServerRequest.HttpServerRequest) => {
    sessions.delete(id)
    const deleteRequest = request.modify({ headers: Headers.fromInput({ [sessionHeader]: id }) })
    return deleteHandler === undefined ? Effect.void : Effect.asVoid(deleteHandler(deleteRequest))
  }
  const idleSessions = (isOver: (session: Session) => boolean): ReadonlyArray<string> =>
    [...sessions].filter(([, session]) => session.requests === 0 && isOver(session)).map(([id]) => id)

  const admitSession = Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    response: HttpServerResponse.HttpServerResponse,
    now: number
  ) {
    const sessionId = response.headers[sessionHeader]
    if (sessionId === undefined || sessions.has(sessionId)) return response
    const [oldest] = sessions.size < maxSessions ? [] : idleSessions(() => true)
    if (sessions.size >= maxSessions && oldest === undefined) {
      yield* endSession(sessionId, request)
      return tooManySessions
    }
    if (oldest !== undefined) yield* endSession(oldest, request)
    sessions.set(sessionId, { requests: 0, usedAt: now })
    return response
  })

  const wrapPost = (handler: Handler): Handler =>
    Effect.fnUntraced(function* (request) {
      const now = yield* Clock.currentTimeMillis
      const expired = idleSessions(({ usedAt }) => now - usedAt >= idleTimeoutMillis)
      yield* Effect.forEach(expired, (id) => endSession(id, request), { discard: true })
      const id = request.headers[sessionHeader]
      const session = id === undefined ? undefined : sessions.get(id)
      if (id === undefined || session === undefined) {
        const response = yield* handler(request)
        // The server sets the session header in its own pre-response handler, which runs before this handler.
        return yield* Effect.withFiber((fiber) => {
          HttpEffect.appendPreResponseHandlerUnsafe(fiber.context, (_, response) => admitSession(request, response, now))
          return Effect.succeed(response)
        })
      }
      session.requests++
      touch(id, session, now)
      return yield* Effect.ensuring(
        handler(request),
        Effect.map(Clock.currentTimeMillis, (endedAt) => {
          session.requests--
          if (sessions.get(id) === session) touch(id, session, endedAt)
        })
      )
    })

  const wrapDelete = (handler: Handler): Handler => {
    deleteHandler = handler
    return (request) =>
      Effect.tap(handler(request), ({ status }) =>
        Effect.sync(() => status === 204 && sessions.delete(request.headers[sessionHeader] ?? ""))
      )
  }
  return { wrapDelete, wrapPost }
}

const layerBounded = (sessionLimits: SessionLimits): Layer.Layer<HttpRouter.HttpRouter, never, HttpRouter.HttpRouter> =>
  Layer.effect(
    HttpRouter.HttpRouter,
    Effect.map(HttpRouter.HttpRouter, (router) => {
      const { wrapDelete, wrapPost } = makeHandlers(sessionLimits)
      const add: typeof router.add = (method, path, handler, options) => {
        // The handlers of effect's server have no errors and no requirements, which the type of the router cannot express.
        const bounded =
          method === "POST" ? wrapPost(handler as never) : method === "DELETE" ? wrapDelete(handler as never) : handler
        return router.add(method, path, bounded as typeof handler, options)
      }
      return { ...router, add }
    })
  )

export type ServerPlanner<E, R> = (flow: Flow) => Effect.Effect<Plan<R>, E, R | Scope.Scope>

export const registrationLayer = <E, R>(planServer: ServerPlanner<E, R>): Layer.Layer<never, E, R | Server.McpServer> =>
  Layer.unwrap(Effect.map(planServer(makeFlow()), ({ registrations }) => registrations))

export const serveStdio = <E, R>(planServer: ServerPlanner<E, R>): Effect.Effect<void, E, R | Stdio> =>
  Effect.gen(function* () {
    const flow = makeFlow()
    const { changes, info, registrations } = yield* planServer(flow)
    const register = (subscribed: Effect.Effect<void>) => Layer.merge(registrations, changes(subscribed))
    yield* serve({ info, flow, ends: pipeOf(yield* Stdio), register })
  }).pipe(Effect.scoped) as Effect.Effect<void, E, R | Stdio>

export const serveHttp = <E, R>(
  planServer: ServerPlanner<E, R>,
  options: Pick<HttpOptions, "path" | "allowedOrigins" | "maxSessions" | "sessionIdleTimeout">
): Layer.Layer<never, E, R | HttpRouter.HttpRouter> =>
  Layer.unwrap(
    Effect.map(planServer(makeFlow()), ({ info, registrations }) =>
      Server.layerHttp({
        ...info,
        protocols,
        path: options.path ?? "/mcp",
        allowedOrigins: options.allowedOrigins,
        allowSessionTermination: true,
        allowSubscriptions: false,
        registrations
      }).pipe(Layer.provide(layer), Layer.provide(layerBounded(options)))
    )
  ).pipe(Layer.provide(logsToStderr)) as unknown as Layer.Layer<never, E, R | HttpRouter.HttpRouter>

const plannerOf =
  <T extends AnyDefinition<unknown>>(options: Options<T>): ServerPlanner<never, Filesystem | Requirements<T>> =>
  (flow) =>
    plan(options, flow)

export const registrations = <T extends AnyDefinition<unknown>>(options: Options<T>) => registrationLayer(plannerOf(options))

export const runStdio = <T extends AnyDefinition<unknown>>(options: Options<T>) => serveStdio(plannerOf(options))

export const layerHttp = <T extends AnyDefinition<unknown>>(options: HttpOptions<T>) => serveHttp(plannerOf(options), options)

export const planPrompt =
  <R>(
    adapter: Adapter,
    prompt: PromptOf<R>,
    options: McpOptions
  ): ServerPlanner<PromptError | SectionError, Exclude<R, Given>> =>
  (flow: Flow) =>
    Effect.gen(function* () {
      const { invoke, run } = yield* makeRun(adapter, prompt, options)
      const workspace = Option.getOrUndefined(Prompt.workspace(prompt))
      const workspaceServices = yield* Effect.option(workspace?.services ?? Effect.succeed(Context.empty()))
      const surroundingContext = yield* Effect.context<never>()
      // Use the services of the section, so that change notices omit the paths that its policies hide.
      const watchContext = Option.map(Option.all([run.context.filesystem, workspaceServices]), ([filesystem, services]) =>
        Context.add(mergeContexts(surroundingContext, services), Filesystem, filesystem)
      )
      const calls = yield* makeServing(flow, options.structured, (definition, input) => {
        const offered = run.tools.find((tool) => tool.definition === definition)
        // A definition that is not in the list of tools reads a resource, and runs in the workspace section.
        return offered === undefined ? invoke({ definition, section: workspace! }, input) : run.call(definition.name, input)
      })
      const register = Effect.gen(function* () {
        for (const { definition } of run.tools) yield* Tools.register(definition, calls)
        if (workspace !== undefined) yield* Resources.register(calls)
        yield* Resources.registerPrompts(run.rendered.text)
      })
      return {
        info: {
          name: options.name ?? prompt.name ?? prompt.key,
          version: options.version ?? "0.1.0",
          instructions: run.rendered.text
        },
        registrations: Layer.effectDiscard(register),
        changes: (subscribed) =>
          Option.match(watchContext, {
            onNone: () => Layer.empty,
            onSome: (context) => Layer.provide(changeNotices(subscribed), Layer.succeedContext(context))
          })
      } satisfies Plan<never>
    })
