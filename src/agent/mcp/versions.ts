/**
 * A session has agreed on its version of the protocol. A request of it that names another one that has sessions too is of a client that
 * is careless, and is answered by what was agreed on.
 */
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"

const withSessions: ReadonlySet<string> = new Set(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])

export const layer = HttpRouter.middleware((handler) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    const { "mcp-protocol-version": version, "mcp-session-id": session } = request.headers
    if (session === undefined || version === undefined || !withSessions.has(version)) return handler
    const agreed = request.modify({ headers: Headers.remove(request.headers, "mcp-protocol-version") })
    return Effect.provideService(handler, HttpServerRequest.HttpServerRequest, agreed)
  })
).layer
