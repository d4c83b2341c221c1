/** A body that is not UTF-8 is refused: decoded as it is, a file would get characters that nobody sent. */
import { isUtf8 } from "../../runtime/node.ts"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

type Request = HttpServerRequest.HttpServerRequest

const refusal = HttpServerResponse.jsonUnsafe(
  { jsonrpc: "2.0", id: null, error: { code: -32_700, message: "Parse error: a message must be UTF-8" } },
  { status: 400 }
)

/** The request with its text, which it has only once, or the answer to one that has none. */
export const withText = (request: Request): Effect.Effect<Request | HttpServerResponse.HttpServerResponse> =>
  request.method !== "POST"
    ? Effect.succeed(request)
    : Effect.match(request.arrayBuffer, {
        // Too large or cut off: whoever reads it meets the same.
        onFailure: () => request,
        onSuccess: (body) => {
          const bytes = Buffer.from(body)
          if (!isUtf8(bytes)) return refusal
          return Object.create(request, { text: { value: Effect.succeed(bytes.toString("utf8")) } }) as Request
        }
      })
