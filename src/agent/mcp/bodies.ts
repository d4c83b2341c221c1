/** Refuses a request body that is not UTF-8. Decoding it leniently would put characters into a file that no client sent. */
import { isUtf8 } from "../../runtime/node.ts"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

type Request = HttpServerRequest.HttpServerRequest

const notUtf8Response = HttpServerResponse.jsonUnsafe(
  { jsonrpc: "2.0", id: null, error: { code: -32_700, message: "Parse error: a message must be UTF-8" } },
  { status: 400 }
)

/** Returns the request with its text, which can be read only once, or a refusal if the body is not UTF-8. */
export const withText = (request: Request): Effect.Effect<Request | HttpServerResponse.HttpServerResponse> =>
  request.method !== "POST"
    ? Effect.succeed(request)
    : Effect.match(request.arrayBuffer, {
        // The body is too large or cut off; the server meets the same error when it reads the body.
        onFailure: () => request,
        onSuccess: (body) => {
          const bytes = Buffer.from(body)
          if (!isUtf8(bytes)) return notUtf8Response
          return Object.create(request, { text: { value: Effect.succeed(bytes.toString("utf8")) } }) as Request
        }
      })
