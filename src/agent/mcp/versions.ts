/**
 * Removes a wrong protocol version from requests. A session has agreed on its version. If a careless client names another
 * version that has sessions, the agreed one applies.
 */
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { withText } from "./bodies.ts"

const versionsWithSessions: ReadonlySet<string> = new Set(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])

const withoutWrongVersion = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  const { "mcp-protocol-version": version, "mcp-session-id": session } = request.headers
  return session === undefined || version === undefined || !versionsWithSessions.has(version)
    ? request
    : request.modify({ headers: Headers.remove(request.headers, "mcp-protocol-version") })
}

export const layer = HttpRouter.middleware((handler) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    Effect.flatMap(withText(withoutWrongVersion(request)), (checkedRequest) =>
      HttpServerResponse.isHttpServerResponse(checkedRequest)
        ? Effect.succeed(checkedRequest)
        : Effect.provideService(handler, HttpServerRequest.HttpServerRequest, checkedRequest)
    )
  )
).layer
