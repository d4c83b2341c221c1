/** Implements the transports: HTTP, WebSocket, Unix sockets, the standard streams of a program, worker threads. */
import type * as NodeHttp from "node:http"
import type * as NodeStream from "node:stream"
import type * as NodeWorkerThreads from "node:worker_threads"
import * as Deferred from "effect/Deferred"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as ByteSize from "effect/ByteSize"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcServer from "effect/rpc/RpcServer"
import * as Socket from "effect/socket/Socket"
import * as SocketServer from "effect/socket/SocketServer"
import { Unavailable } from "../model/FsError.ts"
import { builtin } from "../runtime/node.ts"
import { connectionProtocol, ownStreams, programStreams, sshCommand } from "./standardStreams.ts"
import { listenAt, SocketFileError } from "./unixSocket.ts"
import { withOwnBytes } from "./bytes.ts"
import * as Frames from "./frames.ts"
import { paced } from "./budget.ts"
import { guarded, type IsAuthorized, maxStrangerBytes, withSocket } from "./strangers.ts"

export type { IsAuthorized } from "./strangers.ts"

export type Address =
  | { readonly _tag: "Unix"; readonly path: string }
  | { readonly _tag: "Tcp"; readonly host: string; readonly port: number }

const unavailable = (operation: string, detail: string): Unavailable => new Unavailable({ operation, path: "", detail })

const rpcPath = "/rpc"

/** Parses `unix:PATH` or `HOST:PORT`. Returns `undefined` for any other text. */
export const parse = (text: string): Address | undefined => {
  if (text.startsWith("unix:")) {
    const path = text.slice("unix:".length).replace(/^\/\/(?=\/)/, "")
    // A name that begins with NUL would be an abstract socket, to which every program of the machine may connect.
    return path === "" || path.includes("\0") ? undefined : { _tag: "Unix", path }
  }
  const at = text.lastIndexOf(":")
  const host = text.slice(0, at).replace(/^\[(.*)\]$/, "$1")
  const port = text.slice(at + 1)
  return at > 0 && host !== "" && /^\d{1,5}$/.test(port) && Number(port) < 65_536
    ? { _tag: "Tcp", host, port: Number(port) }
    : undefined
}

/** Tests whether only programs on this machine can reach the address. */
export const isLocal = (address: Address): boolean =>
  address._tag === "Unix" ||
  address.host === "localhost" ||
  address.host === "::1" ||
  /^127(?:\.\d{1,3}){3}$/.test(address.host)

/** Throws the error again. Because a handler catches the failure of the import, bundlers treat the package as optional. */
const rethrow = (cause: unknown): never => {
  throw cause
}

const load = <A>(operation: string, imported: () => Promise<A>): Effect.Effect<A, Unavailable> =>
  Effect.tryPromise({
    try: imported,
    catch: (cause) => unavailable(operation, `the package @effect/platform-node cannot be loaded; install it: ${String(cause)}`)
  })

const platformSocketFor = (operation: string) =>
  load(operation, () => import("@effect/platform-node/NodeSocket").catch(rethrow))
const platformSocket = platformSocketFor("Remote.layerUrl")
const platformWorker = load("Remote.layerWorker", () => import("@effect/platform-node/NodeWorker").catch(rethrow))
const platformWorkerRunner = load("Remote.layerServerWorker", () =>
  import("@effect/platform-node/NodeWorkerRunner").catch(rethrow)
)
const platformSocketServer = load("Remote.listen", () => import("@effect/platform-node/NodeSocketServer").catch(rethrow))
const platformHttpServer = load("Remote.listen", () => import("@effect/platform-node/NodeHttpServer").catch(rethrow))
const fetchClient = Effect.promise(() => import("effect/http/FetchHttpClient"))

const codeOf = (error: unknown): string => {
  for (let at: unknown = error; typeof at === "object" && at !== null; at = (at as { cause?: unknown }).cause) {
    const { code } = at as { code?: unknown }
    if (typeof code === "string") return code
  }
  return String(error)
}

const failed = <A>(error: Unavailable): Layer.Layer<A, Unavailable> => Layer.effectContext(Effect.fail(error))

/** Converts the errors of a transport to Unavailable, with a detail from `detailOf`. */
const orUnavailable = <A, E, R>(
  layer: Layer.Layer<A, E, R>,
  operation: string,
  detailOf: (error: Exclude<E, Unavailable>) => string
): Layer.Layer<A, Unavailable, R> =>
  Layer.catch(layer, (error) =>
    failed(error instanceof Unavailable ? error : unavailable(operation, detailOf(error as Exclude<E, Unavailable>)))
  )

const overSocket = (socket: Layer.Layer<Socket.Socket, unknown>, name: string): Layer.Layer<RpcClient.Protocol, Unavailable> =>
  orUnavailable(
    Layer.provide(RpcClient.layerProtocolSocket({ retryTransientErrors: false }), Frames.layerSocketClient(socket)),
    "Remote.layer",
    (error) => `the connection to ${name} failed (${codeOf(error)})`
  )

/** Provides the client protocol over the standard streams of a program, which is started for each connection. */
export const commandProtocol = (
  command: readonly [string, ...ReadonlyArray<string>]
): Layer.Layer<RpcClient.Protocol, Unavailable> =>
  overSocket(
    Layer.effect(
      Socket.Socket,
      Effect.flatMap(platformSocket, ({ fromDuplex }) => fromDuplex(programStreams(command)))
    ),
    command[0]
  )

/** Provides the client protocol of a worker thread. One worker answers all requests, because requests share its state. */
export const workerProtocol = (start: () => NodeWorkerThreads.Worker): Layer.Layer<RpcClient.Protocol, Unavailable> =>
  orUnavailable(
    Layer.effect(
      RpcClient.Protocol,
      Effect.map(RpcClient.Protocol, (protocol) => ({
        ...protocol,
        send: (clientId, request, transferables) => protocol.send(clientId, withOwnBytes(request), transferables)
      }))
    ).pipe(
      Layer.provide(RpcClient.layerProtocolWorker({ size: 1, concurrency: Number.MAX_SAFE_INTEGER })),
      Layer.provide(Layer.unwrap(Effect.map(platformWorker, ({ layer }) => layer(start))))
    ),
    "Remote.layerWorker",
    (error) => `the worker failed (${error.message})`
  )

/** Provides the server protocol of this worker thread. */
export const ownWorkerProtocol: Layer.Layer<RpcServer.Protocol, Unavailable> = orUnavailable(
  Layer.effect(
    RpcServer.Protocol,
    Effect.map(RpcServer.Protocol, (protocol) => ({
      ...protocol,
      send: (clientId, response, transferables) => protocol.send(clientId, withOwnBytes(response), transferables)
    }))
  ).pipe(
    Layer.provide(RpcServer.layerProtocolWorkerRunner),
    Layer.provide(Layer.unwrap(Effect.map(platformWorkerRunner, ({ layer }) => layer)))
  ),
  "Remote.layerServerWorker",
  (error) => `the worker cannot serve (${error.message})`
)

/** Serves one connection over the standard streams of this process, until the client closes it. */
export const serveStandardStreams = (serve: Layer.Layer<never, never, RpcServer.Protocol>): Effect.Effect<void, Unavailable> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { fromDuplex } = yield* platformSocketFor("Remote.serveStandardStreams")
      const ended = yield* Deferred.make<void>()
      const streams = ownStreams()
      const socket = paced(yield* fromDuplex(Effect.succeed(streams)), streams)
      yield* Layer.build(Layer.provide(serve, connectionProtocol(socket, ended)))
      yield* Deferred.await(ended)
    })
  )

/** Opens WebSockets with headers. Browsers refuse headers, so only the messages contain the token there. */
const webSockets = Layer.succeed(Socket.WebSocketConstructor, (url, options) => {
  try {
    return new globalThis.WebSocket(url, options as string | undefined)
  } catch (error) {
    if (typeof options !== "object") throw error
    return new globalThis.WebSocket(url)
  }
})

/** Provides the client protocol for a URL. */
export const clientProtocol = (url: string, token?: Redacted.Redacted): Layer.Layer<RpcClient.Protocol, Unavailable> => {
  const authorization = token && `Bearer ${Redacted.value(token)}`
  if (url.startsWith("unix:")) {
    const address = parse(url)
    if (address?._tag === "Unix") {
      return overSocket(Layer.unwrap(Effect.map(platformSocket, ({ layerNet }) => layerNet({ path: address.path }))), url)
    }
  }
  const command = sshCommand(url)
  if (command !== undefined) return commandProtocol(command)
  const base = URL.canParse(url) ? new URL(url) : undefined
  if (base !== undefined && /^(?:ws|http)s?:$/.test(base.protocol)) {
    if (!base.pathname.endsWith(rpcPath)) base.pathname = base.pathname.replace(/\/$/, "") + rpcPath
    return base.protocol.startsWith("ws")
      ? overSocket(
          Layer.provide(
            Socket.layerWebSocket(base.href, authorization === undefined ? {} : { headers: { authorization } }),
            webSockets
          ),
          url
        )
      : RpcClient.layerProtocolHttp({
          url: base.href,
          transformClient: (client) =>
            authorization === undefined
              ? client
              : HttpClient.mapRequest(client, HttpClientRequest.setHeader("authorization", authorization))
        }).pipe(Layer.provide([Layer.unwrap(Effect.map(fetchClient, ({ layer }) => layer)), Frames.layerHttpClient]))
  }
  return failed(
    unavailable(
      "Remote.layerUrl",
      "the address of the server is not valid; it must be http://HOST:PORT, ws://HOST:PORT, unix:PATH or ssh://HOST/PATH"
    )
  )
}

/** Ends a connection quietly if its client disappears. effect's server would log an error with a stack trace. */
const ignoreLost = <A, E, R>(connection: Effect.Effect<A, E, R>): Effect.Effect<A | void, E, R> =>
  Effect.catchCause(connection, (cause) =>
    cause.reasons.every((reason) => Cause.isDieReason(reason) && Socket.isSocketError(reason.defect))
      ? Effect.void
      : Effect.failCause(cause)
  )

/** Provides the server protocol of a Unix socket. */
export const unixProtocol = (path: string): Layer.Layer<RpcServer.Protocol, Unavailable> =>
  orUnavailable(
    Layer.provide(RpcServer.layerProtocolSocketServer, [
      Layer.effect(
        SocketServer.SocketServer,
        Effect.flatMap(platformSocketServer, ({ make }) =>
          Effect.flatMap(platformSocketFor("Remote.listen"), ({ NetSocket }) =>
            Effect.map(
              listenAt(path, (path) => make({ path })),
              (server): SocketServer.SocketServer["Service"] => ({
                ...server,
                run: (handler) =>
                  server.run((socket) =>
                    Effect.flatMap(Effect.serviceOption(NetSocket), (connection) =>
                      ignoreLost(
                        handler(Option.isNone(connection) ? Frames.withContents(socket) : paced(socket, connection.value))
                      )
                    )
                  )
              })
            )
          )
        )
      ),
      Frames.layerServer(true)
    ]),
    "Remote.listen",
    (error) => `the server cannot listen on ${path} (${error instanceof SocketFileError ? error.message : codeOf(error)})`
  )

/**
 * The time without traffic after which the system probes a connection, in milliseconds. Otherwise a client whose machine has
 * vanished would hold its claims forever.
 */
const keepAliveInitialDelay = 30_000

/** The maximum size of an HTTP request body or a WebSocket message, in bytes. */
const maxBodyBytes = 16 * 1024 * 1024

/** The maximum number of connections to a server. Each may occupy memory for a message of `maxBodyBytes`. */
const maxConnections = 1000

/** The time that a closing server has to finish its answers, in milliseconds. */
const gracefulMillis = 1000

const forbidden = HttpServerResponse.text("Forbidden: this server accepts requests only from programs on this machine.\n", {
  status: 403
})

/**
 * Refuses requests from web pages, which have the header Origin. Also refuses requests for other hosts, which a page can send
 * after DNS rebinding.
 */
const localRequestsOnly = HttpRouter.middleware(
  (handler) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
      const host = /^(.*):\d+$/.exec(headers["host"] ?? "")?.[1] ?? headers["host"]
      const isAllowed =
        headers["origin"] === undefined &&
        host !== undefined &&
        isLocal({ _tag: "Tcp", host: host.replace(/^\[(.*)\]$/, "$1").toLowerCase(), port: 0 })
      return isAllowed ? handler : Effect.succeed(forbidden)
    }),
  { global: true }
)

/** Applies `paced` to WebSockets, with the TCP connection below each of them. */
const paceSockets = HttpRouter.middleware(
  (handler) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      request.method === "GET"
        ? Effect.provideService(
            handler,
            HttpServerRequest.HttpServerRequest,
            withSocket(request, (socket, connection) => paced(socket, connection))
          )
        : handler
    ),
  { global: true }
)

/** Limits the size of the HTTP bodies and WebSocket messages that a client without the token can send. */
const boundStrangers = (isAuthorized: IsAuthorized) =>
  HttpRouter.middleware(
    (handler) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
        isAuthorized(request.headers["authorization"])
          ? handler
          : handler.pipe(
              Effect.provideService(HttpServerRequest.HttpServerRequest, guarded(request, isAuthorized)),
              Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(maxStrangerBytes))
            )
      ),
    { global: true }
  )

/**
 * Listens on a TCP address. `serve` is the server of one protocol; HTTP and WebSocket use the same path. Returns the address,
 * with the port that the system has chosen for port 0.
 */
export const listenTcp = (
  address: Address & { readonly _tag: "Tcp" },
  serve: Layer.Layer<never, never, RpcServer.Protocol>,
  isAuthorized: IsAuthorized | undefined
): Effect.Effect<string, Unavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const { make } = yield* platformHttpServer
    const { host, port } = address
    const listening = builtin<typeof NodeHttp>("node:http").createServer({ keepAlive: true, keepAliveInitialDelay })
    listening.maxConnections = maxConnections
    const connections = new Set<NodeStream.Duplex>()
    listening.on("connection", (connection) => {
      connections.add(connection)
      connection.once("close", () => connections.delete(connection))
    })
    // At the first WebSocket, the server adds a finalizer that waits for all WebSockets. This scope makes the finalizer run
    // last.
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit))
    const server = yield* Effect.mapError(
      make(() => listening, {
        host,
        port,
        gracefulShutdownTimeout: gracefulMillis,
        websocket: { maxPayload: maxBodyBytes }
      }).pipe(Scope.provide(scope)),
      (error) => unavailable("Remote.listen", `the server cannot listen on ${host}:${port} (${codeOf(error)})`)
    )
    const routes = Layer.mergeAll(
      Layer.provide(
        Layer.fresh(serve),
        Layer.provide(RpcServer.layerProtocolHttp({ path: rpcPath }), Frames.layerServer(false, maxBodyBytes))
      ),
      Layer.provide(
        Layer.fresh(serve),
        Layer.provide(RpcServer.layerProtocolWebsocket({ path: rpcPath }), Frames.layerServer(true, maxBodyBytes))
      )
    )
    const app = HttpRouter.serve(
      Layer.mergeAll(routes, paceSockets, isAuthorized === undefined ? localRequestsOnly : boundStrangers(isAuthorized)),
      {
        disableLogger: true,
        disableListenLog: true
      }
    ).pipe(
      Layer.provide(Layer.succeed(HttpServer.HttpServer, server)),
      Layer.provide(Layer.succeed(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(maxBodyBytes)))
    )
    yield* Layer.build(app)
    // The finalizers of the server wait for all connections, but a client can keep a WebSocket open forever.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        setTimeout(() => connections.forEach((connection) => connection.destroy()), gracefulMillis + 500).unref()
      })
    )
    const bound = server.address as { readonly port: number }
    return `${host.includes(":") ? `[${host}]` : host}:${bound.port}`
  })
