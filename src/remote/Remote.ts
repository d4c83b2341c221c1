/**
 * A filesystem on another machine or in another process, over any transport of effect/rpc.
 *
 * A server provides its `Filesystem` with `layerServer`. A client uses it with `layer` or `layerUrl`, as every other
 * filesystem: all operations, errors, combinators, snapshots and tools work the same way.
 *
 * - A call is one request. Searches, walks, versions and copies run on the server.
 * - A change has an id. If the answer is lost, the client sends the change again, and the server repeats its answer for five
 *   minutes.
 * - An interrupted call is interrupted on the server too. If a client disappears in the middle of a stream to a file, the file
 *   keeps its old content.
 * - If the server does not answer in time, a call fails with `Unavailable`. A change may then have happened.
 *
 * Limits: a transaction excludes the other writers of the same client, not those of other clients. Preconditions (`ifMatch`)
 * hold among all clients. Permissions that depend on a path are checked on the server only. A snapshot of a remote filesystem
 * is an archive.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as RpcClient from "effect/rpc/RpcClient"
import * as RpcServer from "effect/rpc/RpcServer"
import { readOnly } from "../filesystem/Decorator.ts"
import { Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { AccessDenied, type BackendError, type Fault, InvalidArgument, promote, Unavailable } from "../model/FsError.ts"
import { Limits } from "../model/Limits.ts"
import { hasher } from "../runtime/hash.ts"
import * as Address from "./address.ts"
import * as Connection from "./connection.ts"
import * as Port from "./port.ts"
import { Authentication, FilesystemRpcs, version } from "./protocol.ts"
import * as Searches from "./searches.ts"
import { handlers } from "./server.ts"

export {
  /**
   * The middleware that checks the token of each request.
   *
   * @since 0.1.0
   */
  Authentication,
  /**
   * The requests of a remote filesystem, for clients that do not use `layer`: one request for each operation, with the schemas of
   * the results and errors. `list`, `walk`, `glob`, `grep` and `lines` stream their results in parts.
   *
   * The requests that begin with `port.` are internal.
   *
   * @since 0.1.0
   */
  FilesystemRpcs
} from "./protocol.ts"

/**
 * The options of a server.
 *
 * @since 0.1.0
 */
export interface ServerOptions {
  /** True to refuse all changes. @default false */
  readonly readOnly?: boolean | undefined
  /** The token that each request must have in the header `authorization`, as `Bearer TOKEN`. @default no check */
  readonly token?: Redacted.Redacted | undefined
}

/**
 * The options of a client.
 *
 * @since 0.1.0
 */
export interface ClientOptions {
  /**
   * The time without an answer after which a call fails with `Unavailable`. A long call continues as long as the server answers
   * other requests.
   * @default 10 seconds
   */
  readonly timeout?: Duration.Input | undefined
  /** The token for the server. @default none */
  readonly token?: Redacted.Redacted | undefined
}

const digestOf = (text: string): string => {
  const hash = hasher()
  hash.update(new TextEncoder().encode(text))
  return hash.digest()
}

const layerAuthentication = (token: Redacted.Redacted | undefined): Layer.Layer<Authentication> => {
  // Comparing digests reveals nothing about the token by its time.
  const expected = token === undefined ? undefined : digestOf(`Bearer ${Redacted.value(token)}`)
  return Layer.succeed(Authentication, (effect, { headers, rpc }) =>
    expected === undefined || digestOf(headers["authorization"] ?? "") === expected
      ? effect
      : Effect.fail(
          new AccessDenied({
            operation: rpc._tag,
            path: "",
            why: "permission",
            detail: "the token is missing or wrong"
          })
        )
  )
}

const layerHandlers = (options: ServerOptions) =>
  FilesystemRpcs.toLayer(
    Effect.gen(function* () {
      const fs = yield* Filesystem
      return handlers(options.readOnly === true ? readOnly(fs) : fs, yield* Effect.scope, yield* Limits)
    })
  )

const layerRequests = RpcServer.layer(FilesystemRpcs, { disableTracing: true, disableFatalDefects: true })

const layerAnswers = (options: ServerOptions) => Layer.merge(layerHandlers(options), layerAuthentication(options.token))

/**
 * Serves the current Filesystem over the current `RpcServer.Protocol`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerServer = (options: ServerOptions = {}): Layer.Layer<never, never, Filesystem | RpcServer.Protocol> =>
  Layer.provide(layerRequests, layerAnswers(options))

/**
 * Serves the current Filesystem on a Unix socket (`unix:PATH`), or over HTTP and WebSocket (`HOST:PORT`; port 0 is any free
 * port). Returns the address to connect to. The scope ends the server.
 *
 * A server that other machines can reach needs a token. Without a token, the server refuses requests of web pages.
 *
 * Fails with `Unavailable` if the server cannot listen, and with `InvalidArgument` for an invalid address or a missing token.
 *
 * @category constructors
 * @since 0.1.0
 */
export const listen = (
  address: string,
  options: ServerOptions = {}
): Effect.Effect<string, Unavailable | InvalidArgument, Filesystem | Scope.Scope> =>
  Effect.gen(function* () {
    const parsed = Address.parse(address)
    const refuse = (detail: string) =>
      new InvalidArgument({ operation: "Remote.listen", path: "", argument: "address", detail })
    if (parsed === undefined) return yield* refuse("it must be HOST:PORT or unix:PATH")
    if (!Address.isLocal(parsed) && options.token === undefined) {
      return yield* refuse("other machines can reach it, so the server needs a token; give a token, or listen on 127.0.0.1")
    }
    const answers = yield* Layer.build(layerAnswers(options))
    const serve: Layer.Layer<never, never, RpcServer.Protocol> = Layer.provide(layerRequests, Layer.succeedContext(answers))
    if (parsed._tag === "Tcp") return yield* Address.listenTcp(parsed, serve, options.token !== undefined)
    yield* Layer.build(Layer.provide(serve, Address.unixProtocol(parsed.path)))
    return `unix:${parsed.path}`
  })

/**
 * Serves the current Filesystem as `listen` does, as long as the layer exists.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerListen = (
  address: string,
  options: ServerOptions = {}
): Layer.Layer<never, Unavailable | InvalidArgument, Filesystem> => Layer.effectDiscard(listen(address, options))

const toBackendError = (fault: Fault): BackendError => {
  const error = promote(fault, "Remote.layer", "")
  return error._tag === "IoError" || error._tag === "Timeout" || error._tag === "Unavailable"
    ? error
    : new Unavailable({ operation: "Remote.layer", path: "", detail: `the server refused the client: ${error.message}` })
}

/**
 * Provides a filesystem of a server over the current `RpcClient.Protocol`.
 *
 * Fails with `Unavailable` if no server answers, or if the server refuses the token.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: ClientOptions = {}): Layer.Layer<Filesystem, BackendError, RpcClient.Protocol> =>
  Layer.effect(
    Filesystem,
    Effect.gen(function* () {
      const connection = yield* Connection.make(options)
      const info = yield* Effect.mapError(connection.hello, toBackendError)
      if (info.version !== version) {
        return yield* new Unavailable({
          operation: "Remote.layer",
          path: "",
          detail: `the server speaks version ${info.version} of the protocol, and this client speaks version ${version}`
        })
      }
      return Searches.make(connection, makeAlgebra(Port.make(connection, info)))
    })
  )

/**
 * Provides a filesystem of a server at `http://HOST:PORT`, `ws://HOST:PORT` or `unix:PATH`, as `listen` serves it.
 *
 * @example
 * ```ts
 * yield* Remote.listen("unix:workspace.sock", { readOnly: true })
 * const remote = Remote.layerUrl("unix:workspace.sock")
 * const read = Filesystem.Filesystem.use((fs) => fs.readString("notes/todo.md"))
 * yield* Effect.provide(read, remote) // => "- [ ] tea\n- [ ] bread\n"
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layerUrl = (url: string, options: ClientOptions = {}): Layer.Layer<Filesystem, BackendError> =>
  Layer.provide(layer(options), Address.clientProtocol(url))
