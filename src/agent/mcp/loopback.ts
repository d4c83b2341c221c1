/**
 * Admits only requests whose Host header has a loopback name and, if they come from a web page, whose Origin header names this
 * server. A page of another site therefore cannot send requests, even with DNS rebinding.
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

const names = ["localhost", "127.0.0.1", "[::1]"]

export const hosts = (port: number): ReadonlyArray<string> => [
  ...names.map((name) => `${name}:${port}`),
  ...(port === 80 ? names : [])
]

export const origins = (port: number): ReadonlyArray<string> => hosts(port).map((host) => `http://${host}`)

const forbidden = HttpServerResponse.text("Forbidden: this server accepts requests only from programs on this machine.\n", {
  status: 403
})

export const layer = (port: number): Layer.Layer<never, never, HttpRouter.HttpRouter> => {
  const [allowedHosts, allowedOrigins] = [hosts(port), origins(port)]
  return HttpRouter.middleware(
    (handler) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
        const { host, origin } = headers
        const isLocal =
          host !== undefined &&
          allowedHosts.includes(host.toLowerCase()) &&
          (origin === undefined || allowedOrigins.includes(origin.toLowerCase()))
        return isLocal ? handler : Effect.succeed(forbidden)
      }),
    { global: true }
  )
}
