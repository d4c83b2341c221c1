import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as RpcClient from "effect/rpc/RpcClient"
import type { FromClientEncoded, FromServerEncoded } from "effect/rpc/RpcMessage"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as RpcServer from "effect/rpc/RpcServer"
import { directory } from "../conformance/filesystems.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { join } from "node:path"
import * as Remote from "../../src/remote/Remote.ts"
import { Bench } from "../../src/testing/Law.ts"

/** A transport within the process. Every message is encoded as a line of JSON and decoded again. */
export const inProcess = Layer.effectContext(
  Effect.gen(function* () {
    const toServer = yield* Queue.unbounded<string | Uint8Array>()
    const toClient = yield* Queue.unbounded<string | Uint8Array>()
    const { codecFor } = RpcSerialization.ndjson
    const [atClient, atServer] = [RpcSerialization.ndjson.makeUnsafe(), RpcSerialization.ndjson.makeUnsafe()]
    const clientIds = new Set([0])
    const server = yield* RpcServer.Protocol.make((writeRequest) =>
      Effect.gen(function* () {
        const serve = Effect.flatMap(Queue.take(toServer), (line) =>
          Effect.forEach(atServer.decode(line) as ReadonlyArray<FromClientEncoded>, (message) => writeRequest(0, message), {
            discard: true
          })
        )
        yield* Effect.forkScoped(Effect.forever(serve))
        return {
          disconnects: yield* Queue.unbounded<number>(),
          send: (_, response) => Effect.asVoid(Queue.offer(toClient, atServer.encode(response)!)),
          end: () => Effect.void,
          clientIds: Effect.succeed(clientIds),
          initialMessage: Effect.succeed(Option.none()),
          supportsAck: true,
          supportsTransferables: false,
          supportsSpanPropagation: false,
          supportsNotifications: true,
          codecFor
        }
      })
    )
    const client = yield* RpcClient.Protocol.make((writeResponse) =>
      Effect.gen(function* () {
        const owners = new Map<unknown, number>()
        const receive = Effect.flatMap(Queue.take(toClient), (line) =>
          Effect.forEach(
            atClient.decode(line) as ReadonlyArray<FromServerEncoded>,
            (message) =>
              writeResponse(owners.get("requestId" in message ? message.requestId : "") ?? owners.get("last")!, message),
            { discard: true }
          )
        )
        yield* Effect.forkScoped(Effect.forever(receive))
        return {
          send: (clientId, request) => {
            owners.set("last", clientId)
            if (request._tag === "Request") owners.set(request.id, clientId)
            return Effect.asVoid(Queue.offer(toServer, atClient.encode(request)!))
          },
          supportsAck: true,
          supportsTransferables: false,
          codecFor
        }
      })
    )
    return Layer.succeed(RpcServer.Protocol, server).pipe(Layer.merge(Layer.succeed(RpcClient.Protocol, client)))
  }).pipe(Effect.flatMap(Layer.build))
)

/** The filesystem of a layer, used through a server in the same process. */
export const remoteInProcess = <E>(
  local: Layer.Layer<Filesystem, E>,
  options: { readonly server?: Remote.ServerOptions; readonly client?: Remote.ClientOptions } = {}
): Layer.Layer<Filesystem, unknown> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const context = yield* Layer.build(local)
      const served = Layer.provide(Remote.layerServer(options.server), Layer.succeedContext(context))
      const remote = Layer.merge(Remote.layer(options.client), served)
      return Layer.merge(Layer.provide(remote, inProcess), Layer.succeed(Bench, yield* Effect.provideContext(Bench, context)))
    })
  )

/** The filesystem of a layer, used through a server that listens on an address in the same process. */
export const remoteAt = <E>(
  local: Layer.Layer<Filesystem, E>,
  address: Effect.Effect<string, never, Scope.Scope>,
  toUrl: (address: string) => string = (address) => address,
  options: { readonly server?: Remote.ServerOptions; readonly client?: Remote.ClientOptions } = {}
): Layer.Layer<Filesystem, unknown> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const context = yield* Layer.build(local)
      const listening = yield* Effect.provideContext(Remote.listen(yield* address, options.server), context)
      return Layer.merge(
        Remote.layerUrl(toUrl(listening), options.client),
        Layer.succeed(Bench, yield* Effect.provideContext(Bench, context))
      )
    })
  )

let sockets = 0

/** An address in a temporary directory. The directory is removed with its scope. */
export const unixAddress: Effect.Effect<string, never, Scope.Scope> = Effect.map(
  directory,
  (path) => `unix:${join(path, `${sockets++}.sock`)}`
)

export const anyPort = Effect.succeed("127.0.0.1:0")

/** A new filesystem in memory. */
export const memory = Effect.map(InMemory.make(), make)

/** Serves a filesystem. Returns the address. */
export const serve = (fs: Algebra, at: Effect.Effect<string, never, Scope.Scope> = unixAddress) =>
  Effect.flatMap(at, (address) => Effect.provideService(Remote.listen(address), Filesystem, fs))

/** Returns the filesystem of a layer, which ends with the scope. */
export const open = <E>(layer: Layer.Layer<Filesystem, E>) =>
  Effect.flatMap(Layer.build(layer), (context) => Effect.provideContext(Filesystem, context))

/** Returns the filesystem at an address. */
export const remote = (address: string, timeout: `${number} second` | `${number} seconds` = "1 second") =>
  open(Remote.layerUrl(address, { timeout }))
