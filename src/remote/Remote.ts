/**
 * A filesystem on another machine or in another process, over any transport of effect/rpc.
 *
 * A server provides its `Filesystem` with `layerServer`. A client uses it with `layer` or `layerUrl`, as every other
 * filesystem: all operations, errors, combinators, snapshots and tools work the same way.
 *
 * - Most calls are one request. Searches, walks, versions and copies run on the server.
 * - Each change has an id. If the answer is lost, the client sends the change again. For five minutes, the server then
 *   repeats its answer instead of the change. The client does not send a change again later, even with a longer timeout.
 * - An interrupted call is interrupted on the server too. If a client disappears while it streams content to a file, the file
 *   keeps its old content.
 * - If the server does not answer in time, a call fails with `Unavailable`. A change may then have been made.
 *
 * Limits: a transaction excludes other writers of the same client only. Preconditions (`ifMatch`) also detect changes of other
 * clients. Permissions that depend on a path are checked on the server only. A snapshot of a remote filesystem is an archive.
 *
 * @since 0.1.0
 */
import type * as NodeWorkerThreads from "node:worker_threads"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as RpcClient from "effect/rpc/RpcClient"
import type * as RpcServer from "effect/rpc/RpcServer"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import type { BackendError, InvalidArgument, Unavailable } from "../model/FsError.ts"

/**
 * The options of a server.
 *
 * @since 0.1.0
 */
export interface ServerOptions {
  /** If true, the server refuses all changes. @default false */
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
   * The time without an answer after which a call fails with `Unavailable`. A long call continues as long as the server still
   * answers other requests.
   * @default 10 seconds
   */
  readonly timeout?: Duration.Input | undefined
  /** The token for the server. @default none */
  readonly token?: Redacted.Redacted | undefined
}

const layers = Effect.promise(() => import("./layers.ts"))

/**
 * Serves the current Filesystem over the current `RpcServer.Protocol`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerServer = (options: ServerOptions = {}): Layer.Layer<never, never, Filesystem | RpcServer.Protocol> =>
  Layer.unwrap(Effect.map(layers, ({ layerServer }) => layerServer(options)))

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
  Effect.flatMap(layers, ({ listen }) => listen(address, options))

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

/**
 * Serves the current Filesystem to the program that has started this one, over standard input and output, until the input
 * ends. `layerCommand` is the client. The program must write nothing else to standard output.
 *
 * Fails with `Unavailable` if the package `@effect/platform-node` is missing.
 *
 * @category constructors
 * @since 0.1.0
 */
export const serveStandardStreams = (options: ServerOptions = {}): Effect.Effect<void, Unavailable, Filesystem> =>
  Effect.flatMap(layers, ({ serveStandardStreams }) => serveStandardStreams(options))

/**
 * Serves the current Filesystem to the thread that has started this worker. `layerWorker` is the client.
 *
 * Fails with `Unavailable` outside a worker thread, or if the package `@effect/platform-node` is missing.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerServerWorker = (options: ServerOptions = {}): Layer.Layer<never, Unavailable, Filesystem> =>
  Layer.unwrap(Effect.map(layers, ({ layerServerWorker }) => layerServerWorker(options)))

/**
 * Provides a filesystem of a server over the current `RpcClient.Protocol`.
 *
 * Fails with `Unavailable` if no server answers, or if the server refuses the token.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: ClientOptions = {}): Layer.Layer<Filesystem, BackendError, RpcClient.Protocol> =>
  Layer.unwrap(Effect.map(layers, ({ layer }) => layer(options)))

/**
 * Provides a filesystem that a program serves over its standard streams with `serveStandardStreams`. The program is started for
 * each connection, without a shell, and ends with the layer.
 *
 * `layerCommand(["ssh", "host", "fs-algebra serve --listen stdio --root notes"])` uses files on another machine.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerCommand = (
  command: readonly [string, ...ReadonlyArray<string>],
  options: ClientOptions = {}
): Layer.Layer<Filesystem, BackendError> =>
  Layer.unwrap(Effect.map(layers, ({ layerCommand }) => layerCommand(command, options)))

/**
 * Provides a filesystem that a worker thread serves with `layerServerWorker`. The worker ends with the layer. If the worker
 * ends earlier, running calls fail, and the next call starts another worker.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerWorker = (
  start: () => NodeWorkerThreads.Worker,
  options: ClientOptions = {}
): Layer.Layer<Filesystem, BackendError> => Layer.unwrap(Effect.map(layers, ({ layerWorker }) => layerWorker(start, options)))

/**
 * Provides a filesystem of a server at `http://HOST:PORT`, `ws://HOST:PORT` or `unix:PATH`, as `listen` serves it.
 * `ssh://USER@HOST/PATH` starts `fs-algebra serve` on another machine with the program `ssh`; `/~/PATH` is relative to the
 * home directory there.
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
  Layer.unwrap(Effect.map(layers, ({ layerUrl }) => layerUrl(url, options)))
