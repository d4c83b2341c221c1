import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as McpServer from "../agent/McpServer.ts"
import * as Loopback from "../agent/mcp/loopback.ts"
import { maxLineBytes } from "../agent/mcp/stdio.ts"
import { unreadyServer } from "../debug/server/unready.ts"
import { Complaint, systemErrorCode } from "./exit.ts"
import type { Address } from "./mcpArgs.ts"
import { Screen } from "./screen.ts"

const listenComplaint = ({ host, port }: Address, code: string): Complaint =>
  new Complaint({
    error: { _tag: "ListenError", host, port, code },
    message: `cannot listen on port ${port} of ${host} (${code})`,
    hint: "Give another port, give --http 0 to use any free port, or give another --host.",
    code: systemErrorCode
  })

const listen = (address: Address) =>
  Effect.mapError(NodeHttpServer.make(unreadyServer, { ...address, gracefulShutdownTimeout: "1 second" }), ({ cause }) =>
    listenComplaint(address, (cause as NodeJS.ErrnoException).code ?? String(cause))
  )

const urlOf = ({ host }: Address, port: number): string => `http://${host === "::1" ? "[::1]" : host}:${port}/mcp`

export const serve = Effect.fnUntraced(function* (address: Address, options: McpServer.Options) {
  const screen = yield* Screen
  const server = yield* listen(address)
  const { port } = server.address as { readonly port: number }
  const routes = McpServer.layerHttp({ ...options, allowedOrigins: Loopback.origins(port) })
  const app = HttpRouter.serve(Layer.merge(routes, Loopback.layer(port)), { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provide(Layer.succeed(HttpServer.HttpServer, server)),
    Layer.provide(Layer.succeed(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(maxLineBytes)))
  )
  yield* Layer.build(app)
  yield* screen.warn(`The MCP server listens at ${urlOf(address, port)}`)
  return yield* Effect.never
}, Effect.scoped)
