/** Implements `Remote`, which loads this module at the first use, because this module loads effect's servers and clients. */
import type * as NodeWorkerThreads from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as RpcClient from "effect/rpc/RpcClient"
import * as RpcServer from "effect/rpc/RpcServer"
import { readOnly } from "../filesystem/Decorator.ts"
import { Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { AccessDenied, type BackendError, InvalidArgument, Unavailable } from "../model/FsError.ts"
import { Limits } from "../model/Limits.ts"
import { hasher } from "../runtime/hash.ts"
import * as Address from "./address.ts"
import { splitUrl, workspaceParameter } from "./choice.ts"
import * as Connection from "./connection.ts"
import * as Port from "./port.ts"
import { Authentication, FilesystemRpcs } from "./protocol.ts"
import type { ClientOptions, ServerOptions } from "./Remote.ts"
import * as Searches from "./searches.ts"
import { handlers } from "./server.ts"

const digestOf = (text: string): string => {
  const hash = hasher()
  hash.update(new TextEncoder().encode(text))
  return hash.digest()
}

/** Returns a function that tests whether the header `authorization` has the token, or `undefined` without a token. */
const authorizationOf = (token: Redacted.Redacted | undefined): Address.IsAuthorized | undefined => {
  if (token === undefined) return undefined
  // The comparison of digests does not reveal the token by its duration.
  const expected = digestOf(`Bearer ${Redacted.value(token)}`)
  return (authorization) => digestOf(authorization ?? "") === expected
}

const layerAuthentication = (token: Redacted.Redacted | undefined): Layer.Layer<Authentication> => {
  const isAuthorized = authorizationOf(token)
  return Layer.succeed(Authentication, (effect, { headers, rpc }) =>
    isAuthorized === undefined || isAuthorized(headers["authorization"])
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

type Handlers = Layer.Success<ReturnType<typeof layerHandlers>>

const layerAnswers = (options: ServerOptions) => Layer.merge(layerHandlers(options), layerAuthentication(options.token))

export const layerServer = (options: ServerOptions): Layer.Layer<never, never, Filesystem | RpcServer.Protocol> =>
  Layer.provide(layerRequests, layerAnswers(options))

export const listen = (
  address: string,
  options: ServerOptions
): Effect.Effect<string, Unavailable | InvalidArgument, Filesystem | Scope.Scope> =>
  listenWith(address, options.token, layerHandlers(options))

/** Listens as `listen` does, with other answers to the requests. */
export const listenWith = <E, R>(
  address: string,
  token: Redacted.Redacted | undefined,
  answers: Layer.Layer<Handlers, E, R>
): Effect.Effect<string, Unavailable | InvalidArgument | E, R | Scope.Scope> =>
  Effect.gen(function* () {
    const parsed = Address.parse(address)
    const refuse = (detail: string) =>
      new InvalidArgument({ operation: "Remote.listen", path: "", argument: "address", detail })
    if (parsed === undefined) return yield* refuse("it must be HOST:PORT or unix:PATH")
    if (!Address.isLocal(parsed) && token === undefined) {
      return yield* refuse("other machines can reach it, so the server needs a token; give a token, or listen on 127.0.0.1")
    }
    const serve = yield* serveOver(Layer.merge(answers, layerAuthentication(token)))
    if (parsed._tag === "Tcp") return yield* Address.listenTcp(parsed, serve, authorizationOf(token))
    yield* Layer.build(Layer.provide(serve, Address.unixProtocol(parsed.path)))
    return `unix:${parsed.path}`
  })

const serveOver = <E, R>(answers: Layer.Layer<Handlers | Authentication, E, R>) =>
  Effect.map(Layer.build(answers), (answers): Layer.Layer<never, never, RpcServer.Protocol> =>
    Layer.provide(layerRequests, Layer.succeedContext(answers))
  )

export const serveStandardStreams = (options: ServerOptions): Effect.Effect<void, Unavailable, Filesystem> =>
  Effect.scoped(Effect.flatMap(serveOver(layerAnswers(options)), Address.serveStandardStreams))

export const layerServerWorker = (options: ServerOptions): Layer.Layer<never, Unavailable, Filesystem> =>
  Layer.provide(layerServer(options), Address.ownWorkerProtocol)

const tokenHint = "Give the token of the server: the option token in a program, FS_ALGEBRA_TOKEN or --token-file for a command."

const wrongAddress = (detail: string, hint: string): Unavailable =>
  new Unavailable({ operation: "Remote.layer", path: "", detail, hint })

export const layer = (
  options: ClientOptions & { readonly workspace?: string | undefined }
): Layer.Layer<Filesystem, BackendError, RpcClient.Protocol> =>
  Layer.effect(
    Filesystem,
    Effect.gen(function* () {
      const connection = yield* Connection.make(options)
      const info = yield* Connection.greet(connection, "Remote.layer", "server", tokenHint)
      if (info.workspace !== options.workspace) {
        return yield* wrongAddress(
          "the server serves one root, and no workspaces of a store",
          `Leave out ${workspaceParameter}NAME, or give the address of fs-algebra serve --store URL.`
        )
      }
      return Searches.make(connection, makeAlgebra(Port.make(connection, info)))
    })
  )

export const layerCommand = (
  command: readonly [string, ...ReadonlyArray<string>],
  options: ClientOptions
): Layer.Layer<Filesystem, BackendError> => Layer.provide(layer(options), Address.commandProtocol(command))

export const layerWorker = (
  start: () => NodeWorkerThreads.Worker,
  options: ClientOptions
): Layer.Layer<Filesystem, BackendError> => Layer.provide(layer(options), Address.workerProtocol(start))

export const layerUrl = (url: string, options: ClientOptions): Layer.Layer<Filesystem, BackendError> =>
  Layer.suspend(() => {
    const choice = splitUrl(url)
    return choice === undefined
      ? Layer.effectContext(
          Effect.fail(
            wrongAddress(
              "the name of the workspace in the address of the server is not valid percent-encoding",
              "Write % as %25, and other characters as encodeURIComponent does."
            )
          )
        )
      : Layer.provide(layer({ ...options, workspace: choice.workspace }), Address.clientProtocol(choice.url, options.token))
  })
