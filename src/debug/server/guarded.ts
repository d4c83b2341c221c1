/**
 * Wraps all routes: checks access, adds common headers, and turns failures below `/api` into JSON. Only programs on this
 * machine may send requests. Among web pages, only pages of this server may send requests.
 */
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApi from "effect/http-api/HttpApi"
import * as Loopback from "../../agent/mcp/loopback.ts"
import { Api } from "../Api.ts"
import type { Failure } from "../model.ts"
import { headers, makeNonce } from "./page.ts"

/**
 * Tests whether a request comes from another site. Browsers send the Sec-Fetch headers even with requests without an Origin,
 * such as requests for images. Links to the page are allowed.
 */
const isFromOtherSite = (
  path: string,
  { "sec-fetch-mode": mode, "sec-fetch-site": site }: Readonly<Record<string, string | undefined>>
) => (site === "cross-site" || site === "same-site") && (mode !== "navigate" || isApi(path))

const failureResponse = (status: number, error: string, message: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe({ error, message } satisfies Failure, { status })

const forbiddenResponse = failureResponse(
  403,
  "Forbidden",
  "the request is refused: it must come from this machine, and name the address of this server"
)

interface Route {
  readonly method: string
  readonly pattern: RegExp
}

const routes: ReadonlyArray<Route> = (() => {
  const all: Array<Route> = [{ method: "GET", pattern: /^\/openapi\.json$/ }]
  HttpApi.reflect(Api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint: { method, path } }) => {
      all.push({ method, pattern: new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/:\w+/g, "[^/]+")}$`) })
    }
  })
  return all
})()

const methodsOf = (path: string): ReadonlyArray<string> =>
  routes.filter(({ pattern }) => pattern.test(path)).flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]))

const isApi = (path: string): boolean => path === "/openapi.json" || path === "/api" || path.startsWith("/api/")

const notAllowed = (methods: ReadonlyArray<string>) =>
  HttpServerResponse.setHeader(
    failureResponse(405, "MethodNotAllowed", `this route only accepts ${methods.join(" or ")}`),
    "allow",
    methods.join(", ")
  )

/** Turns a response with status 415 into JSON, because the framework sends this response as text. */
const asJson = (answer: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
  answer.status === 415 ? failureResponse(415, "BadRequest", "the request body must be application/json") : answer

type Handler<R> = Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, R>

const isRouteless = (error: unknown): boolean =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"

const answerApi = <R>(api: Handler<R>) =>
  Effect.catch(Effect.map(api, asJson), (error) =>
    isRouteless(error)
      ? Effect.succeed(failureResponse(404, "NotFound", "there is no such route; /openapi.json lists all routes"))
      : Effect.succeed(failureResponse(400, "BadRequest", "the request cannot be read"))
  )

/** Tests whether an incomplete or too large body caused a defect. Such a body is a client error. */
const isUnreadable = (defect: unknown): boolean =>
  HttpServerError.isHttpServerError(defect) && defect.reason._tag === "RequestParseError"

const toDefectResponse = (defect: unknown): HttpServerResponse.HttpServerResponse =>
  isUnreadable(defect)
    ? failureResponse(413, "BadRequest", "the request body is too large or cannot be read")
    : failureResponse(500, "Failed", "internal error of fs-algebra; please report it")

const pathOf = (url: string): string => url.split("?", 1)[0]!

/** The largest request body. A body contains only the path of a dump. */
const maxBodyBytes = ByteSize.kibibytes(64)

export const guardRoutes = <R>(
  port: number,
  api: Handler<R>,
  page: (path: string, nonce: string) => Effect.Effect<HttpServerResponse.HttpServerResponse | undefined>
) => {
  const [hosts, origins] = [Loopback.hosts(port), Loopback.origins(port)]
  const isLocal = (host: string | undefined, origin: string | undefined): boolean =>
    host !== undefined && hosts.includes(host.toLowerCase()) && (origin === undefined || origins.includes(origin.toLowerCase()))

  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const nonce = makeNonce()
    const path = pathOf(request.url)
    const answer = Effect.suspend((): Handler<R | HttpServerRequest.HttpServerRequest> => {
      if (!isLocal(request.headers["host"], request.headers["origin"]) || isFromOtherSite(path, request.headers))
        return Effect.succeed(forbiddenResponse)
      if (isApi(path)) {
        const methods = methodsOf(path)
        return methods.length > 0 && !methods.includes(request.method) ? Effect.succeed(notAllowed(methods)) : answerApi(api)
      }
      if (request.method !== "GET" && request.method !== "HEAD") return Effect.succeed(notAllowed(["GET", "HEAD"]))
      return Effect.map(
        page(path, nonce),
        (found) => found ?? HttpServerResponse.text("This page does not exist.\n", { status: 404 })
      )
    })
    return HttpServerResponse.setHeaders(
      yield* Effect.catchDefect(answer, (defect) => Effect.succeed(toDefectResponse(defect))),
      headers(nonce)
    )
  }).pipe(Effect.provideService(HttpIncomingMessage.MaxBodySize, maxBodyBytes))
}
