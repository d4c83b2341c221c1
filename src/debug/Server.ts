/**
 * The server of the debug view, which shows a dump, a workspace or a store as a page and through an HTTP API. The server listens
 * only on a loopback address, and refuses requests that name another address. The server changes no files of the source, except
 * that it settles the transaction of a killed process.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { Operations } from "../history/Snapshots.ts"
import type { SnapshotError } from "../history/errors.ts"
import type { Entry, Scrivener } from "../journal/Journal.ts"
import { make as makeDump } from "./dump/source.ts"
import type { DebugError } from "./errors.ts"
import { guardRoutes } from "./server/guarded.ts"
import * as Handlers from "./server/handlers.ts"
import * as Page from "./server/page.ts"
import { unreadyServer } from "./server/unready.ts"
import type { Source } from "./source.ts"
import type { Operations as BlobOperations } from "../repository/BlobStore.ts"
import type { Operations as HeadOperations } from "../repository/HeadStore.ts"
import { make as makeStore } from "./store.ts"
import { make as makeWorkspace } from "./workspace.ts"

export {
  /** @since 0.1.0 */
  DebugError
} from "./errors.ts"

/**
 * A dump as the source to show.
 *
 * @since 0.1.0
 */
export interface DumpSource {
  /** The path of a `.jsonl`, of its `.fs.zip`, or of a directory of dumps, whose newest dump is shown. */
  readonly dump: string
}

/**
 * A live filesystem as the source to show.
 *
 * @since 0.1.0
 */
export interface WorkspaceSource {
  readonly filesystem: Algebra
  /**
   * The snapshots, or an effect that returns the snapshots. The effect runs at each request, and returns `undefined` while
   * there are no snapshots. @default none
   */
  readonly snapshots?: Operations | Effect.Effect<Operations | undefined, SnapshotError> | undefined
  /** The title of the page. @default the last segment of the root's path */
  readonly title?: string | undefined
}

/**
 * A store of workspaces as the source to show.
 *
 * @since 0.1.0
 */
export interface StoreSource {
  readonly blobs: BlobOperations
  readonly heads: HeadOperations
  /** The workspace to show first. @default the workspace with the newest commit */
  readonly workspace?: string | undefined
  /** The title of the page. @default "store" */
  readonly title?: string | undefined
}

/**
 * The source of a debug view, and the address it is served on.
 *
 * @since 0.1.0
 */
export interface Options {
  readonly source: DumpSource | WorkspaceSource | StoreSource
  /** The journal of the filesystem. If another process writes the journal, open it here with `readOnly`. @default none */
  readonly journal?: Scrivener<Entry> | undefined
  /** @default "127.0.0.1" */
  readonly host?: "127.0.0.1" | "::1" | undefined
  /** The port to listen on. @default a free port */
  readonly port?: number | undefined
  /** The version of the program, which the API returns to clients. @default "0.0.0" */
  readonly version?: string | undefined
}

/**
 * The error that the server cannot listen on an address, for example because another program uses it.
 *
 * @since 0.1.0
 */
export class ListenError extends Data.TaggedError("ListenError")<{
  readonly host: string
  readonly port: number
  /** The system's error code, such as `EADDRINUSE`. */
  readonly code: string
}> {
  override get message(): string {
    return `cannot listen on port ${this.port} of ${this.host} (${this.code})`
  }
}

/**
 * The address of a debug view.
 *
 * @since 0.1.0
 */
export interface Address {
  readonly url: string
  readonly port: number
}

const sourceOf = ({ journal, source }: Options): Effect.Effect<Source, DebugError, Scope.Scope> => {
  if ("dump" in source) return makeDump(source.dump, journal)
  if ("heads" in source) {
    const { blobs, heads, title = "store", workspace } = source
    return makeStore({ blobs, heads, workspace, title, journal })
  }
  const { filesystem, snapshots, title } = source
  return makeWorkspace({
    filesystem,
    journal,
    snapshots: snapshots === undefined || !Effect.isEffect(snapshots) ? Effect.succeed(snapshots) : snapshots,
    title: title ?? filesystem.root.split(/[/\\]/).findLast((name) => name !== "") ?? filesystem.root,
    path: filesystem.root
  })
}

const listen = Effect.fnUntraced(function* (host: string, port: number) {
  const node = unreadyServer()
  const server = yield* Effect.mapError(
    NodeHttpServer.make(() => node, { host, port, gracefulShutdownTimeout: "1 second" }),
    ({ cause }) => new ListenError({ host, port, code: (cause as NodeJS.ErrnoException).code ?? String(cause) })
  )
  // Close the connections of unfinished requests, so that the shutdown does not wait for these requests.
  yield* Effect.addFinalizer(() => Effect.sync(() => node.closeAllConnections()))
  return server
})

/**
 * The largest length of an encoded segment of a URL path, in UTF-16 units. A slice name, which has at most 200 characters, must
 * fit.
 */
const maxNameCharacters = 4096

/**
 * Starts the server, which runs until the scope closes, and returns its address. Fails with DebugError if the source cannot be
 * shown, and with ListenError if the address cannot be used.
 *
 * @example
 * ```ts
 * const { url } = yield* Server.serve({ source: { filesystem: fs, title: "my files" } })
 * yield* Effect.log(`The page is at ${url}`)
 * ```
 * @category running
 * @since 0.1.0
 */
export const serve = (options: Options): Effect.Effect<Address, DebugError | ListenError, Scope.Scope> =>
  Effect.gen(function* () {
    const { host = "127.0.0.1", port: requestedPort = 0, version = "0.0.0" } = options
    const source = yield* sourceOf(options)
    const server = yield* listen(host, requestedPort)
    const { port } = server.address as { readonly port: number }
    const shutdownStarted = yield* Deferred.make<void>()
    const live = Stream.interruptWhen(Stream.concat(source.live, Stream.never), Deferred.await(shutdownStarted))
    const routes = Handlers.layer({ ...source, live }, version).pipe(Layer.provide(HttpServer.layerServices))
    const api = yield* Effect.provideService(HttpRouter.toHttpEffect(routes), HttpRouter.RouterConfig, {
      maxParamLength: maxNameCharacters
    })
    yield* server.serve(guardRoutes(port, api, Page.servePageFile))
    yield* Effect.addFinalizer(() => Deferred.succeed(shutdownStarted, undefined))
    return { url: `http://${host === "::1" ? "[::1]" : host}:${port}/`, port }
  })

/**
 * Runs `serve` for the lifetime of the layer.
 *
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<never, DebugError | ListenError> => Layer.effectDiscard(serve(options))
