/**
 * Bounds the sessions of an HTTP server, because effect/ai keeps each session until its client ends it, and most never do. A
 * session ends through the server's own DELETE route; its client then gets 404 and begins another.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as HttpEffect from "effect/http/HttpEffect"
import * as Headers from "effect/http/Headers"
import * as HttpRouter from "effect/http/HttpRouter"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

export interface SessionLimits {
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
  /** The sessions in order of use, the most recently used last. */
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
        // The server sets the session header in a handler of its own, which runs before this one.
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
  return { deleting: wrapDelete, posting: wrapPost }
}

export const layer = (sessionLimits: SessionLimits): Layer.Layer<HttpRouter.HttpRouter, never, HttpRouter.HttpRouter> =>
  Layer.effect(
    HttpRouter.HttpRouter,
    Effect.map(HttpRouter.HttpRouter, (router) => {
      const { deleting: wrapDelete, posting: wrapPost } = makeHandlers(sessionLimits)
      const add: typeof router.add = (method, path, handler, options) => {
        // The handlers of that server have no errors and no requirements, which the router's type cannot express.
        const bounded =
          method === "POST" ? wrapPost(handler as never) : method === "DELETE" ? wrapDelete(handler as never) : handler
        return router.add(method, path, bounded as typeof handler, options)
      }
      return { ...router, add }
    })
  )
