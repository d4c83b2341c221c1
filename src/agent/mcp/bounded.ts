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

export interface Bounds {
  readonly maxSessions?: number | undefined
  readonly sessionIdleTimeout?: Duration.Input | undefined
}

const header = "mcp-session-id"

interface Session {
  requests: number
  usedAt: number
}

type Handler = (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<HttpServerResponse.HttpServerResponse>

const full = HttpServerResponse.text("Too many sessions are in use. Try again later.\n", {
  status: 503,
  headers: { "retry-after": "1" }
})

const bounding = ({ maxSessions = 1000, sessionIdleTimeout = "1 day" }: Bounds) => {
  const patience = Duration.toMillis(sessionIdleTimeout)
  /** The sessions in order of use, the most recently used last. */
  const sessions = new Map<string, Session>()
  let terminate: Handler | undefined

  const touch = (id: string, session: Session, now: number): void => {
    session.usedAt = now
    sessions.delete(id)
    sessions.set(id, session)
  }
  const end = (id: string, request: HttpServerRequest.HttpServerRequest) => {
    sessions.delete(id)
    const asked = request.modify({ headers: Headers.fromInput({ [header]: id }) })
    return terminate === undefined ? Effect.void : Effect.asVoid(terminate(asked))
  }
  const idle = (isOver: (session: Session) => boolean): ReadonlyArray<string> =>
    [...sessions].filter(([, session]) => session.requests === 0 && isOver(session)).map(([id]) => id)

  const begun = Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    response: HttpServerResponse.HttpServerResponse,
    now: number
  ) {
    const made = response.headers[header]
    if (made === undefined || sessions.has(made)) return response
    const [oldest] = sessions.size < maxSessions ? [] : idle(() => true)
    if (sessions.size >= maxSessions && oldest === undefined) {
      yield* end(made, request)
      return full
    }
    if (oldest !== undefined) yield* end(oldest, request)
    sessions.set(made, { requests: 0, usedAt: now })
    return response
  })

  const posting = (handler: Handler): Handler =>
    Effect.fnUntraced(function* (request) {
      const now = yield* Clock.currentTimeMillis
      const expired = idle(({ usedAt }) => now - usedAt >= patience)
      yield* Effect.forEach(expired, (id) => end(id, request), { discard: true })
      const id = request.headers[header]
      const session = id === undefined ? undefined : sessions.get(id)
      if (id === undefined || session === undefined) {
        const response = yield* handler(request)
        // The server sets the session header in a handler of its own, which runs before this one.
        return yield* Effect.withFiber((fiber) => {
          HttpEffect.appendPreResponseHandlerUnsafe(fiber.context, (_, response) => begun(request, response, now))
          return Effect.succeed(response)
        })
      }
      session.requests++
      touch(id, session, now)
      return yield* Effect.ensuring(
        handler(request),
        Effect.map(Clock.currentTimeMillis, (then) => {
          session.requests--
          if (sessions.get(id) === session) touch(id, session, then)
        })
      )
    })

  const deleting = (handler: Handler): Handler => {
    terminate = handler
    return (request) =>
      Effect.tap(handler(request), ({ status }) =>
        Effect.sync(() => status === 204 && sessions.delete(request.headers[header] ?? ""))
      )
  }
  return { deleting, posting }
}

export const layer = (bounds: Bounds): Layer.Layer<HttpRouter.HttpRouter, never, HttpRouter.HttpRouter> =>
  Layer.effect(
    HttpRouter.HttpRouter,
    Effect.map(HttpRouter.HttpRouter, (router) => {
      const { deleting, posting } = bounding(bounds)
      const add: typeof router.add = (method, path, handler, options) => {
        // The handlers of that server have no errors and no requirements, which the router's type cannot express.
        const bounded =
          method === "POST" ? posting(handler as never) : method === "DELETE" ? deleting(handler as never) : handler
        return router.add(method, path, bounded as typeof handler, options)
      }
      return { ...router, add }
    })
  )
