/**
 * The debug view: a page and an HTTP API for programs of this machine, over a dump or a workspace. It listens on a loopback address and
 * nowhere else, answers only who calls it by that, and changes nothing of what it shows.
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
import { createServer } from "node:http"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { Operations } from "../history/Snapshots.ts"
import type { SnapshotError } from "../history/errors.ts"
import type { Entry, Scrivener } from "../journal/Journal.ts"
import { make as makeDump } from "./dump/source.ts"
import type { DebugError } from "./errors.ts"
import { guarded } from "./server/guarded.ts"
import * as Handlers from "./server/handlers.ts"
import * as Page from "./server/page.ts"
import type { Source } from "./source.ts"
import { make as makeWorkspace } from "./workspace.ts"

export {
  /** @since 0.1.0 */
  DebugError
} from "./errors.ts"

/**
 * What is shown: what a run has left.
 *
 * @since 0.1.0
 */
export interface DumpSource {
  /** A `.jsonl`, its `.fs.zip`, or a directory of them, of which the newest is shown. */
  readonly dump: string
}

/**
 * What is shown: a filesystem as it is.
 *
 * @since 0.1.0
 */
export interface WorkspaceSource {
  /** It is only read. */
  readonly filesystem: Algebra
  /** An effect is asked again whenever somebody looks; it may answer `undefined` for none yet. @default none */
  readonly snapshots?: Operations | Effect.Effect<Operations | undefined, SnapshotError> | undefined
  /** For the title. @default the last name of its root */
  readonly title?: string | undefined
}

/**
 * What is shown, and where it is served.
 *
 * @since 0.1.0
 */
export interface Options {
  readonly source: DumpSource | WorkspaceSource
  /** What has been asked of the filesystem; opened with `readOnly` it may be that of another process. @default none */
  readonly journal?: Scrivener<Entry> | undefined
  /** @default "127.0.0.1" */
  readonly host?: "127.0.0.1" | "::1" | undefined
  /** @default any that is free */
  readonly port?: number | undefined
  /** Of the program, for who asks. @default "0.0.0" */
  readonly version?: string | undefined
}

/**
 * Nobody can listen there, such as where another program does.
 *
 * @since 0.1.0
 */
export class ListenError extends Data.TaggedError("ListenError")<{
  readonly host: string
  readonly port: number
  /** Of the system, such as `EADDRINUSE`. */
  readonly code: string
}> {
  override get message(): string {
    return `cannot listen on port ${this.port} of ${this.host} (${this.code})`
  }
}

/**
 * Where it is served.
 *
 * @since 0.1.0
 */
export interface Address {
  /** Of the page, with a slash at its end. */
  readonly url: string
  readonly port: number
}

const sourceOf = ({ journal, source }: Options): Effect.Effect<Source, DebugError, Scope.Scope> => {
  if ("dump" in source) return makeDump(source.dump, journal)
  const { filesystem, snapshots, title } = source
  return makeWorkspace({
    filesystem,
    journal,
    snapshots: snapshots === undefined || !Effect.isEffect(snapshots) ? Effect.succeed(snapshots) : snapshots,
    title: title ?? filesystem.root.split(/[/\\]/).findLast((name) => name !== "") ?? filesystem.root,
    path: filesystem.root
  })
}

/** A port is taken before there is anything to serve: who comes too early is told so, and not left waiting. */
const impatient = () => {
  const server = createServer((_, response) => {
    if (server.listenerCount("request") === 1) response.writeHead(503, { "Retry-After": "1" }).end()
  })
  return server
}

const listening = Effect.fnUntraced(function* (host: string, port: number) {
  const node = impatient()
  const server = yield* Effect.mapError(
    NodeHttpServer.make(() => node, { host, port, gracefulShutdownTimeout: "1 second" }),
    ({ cause }) => new ListenError({ host, port, code: (cause as NodeJS.ErrnoException).code ?? String(cause) })
  )
  // Whoever has begun to ask, and does not go on, is not waited for any longer.
  yield* Effect.addFinalizer(() => Effect.sync(() => node.closeAllConnections()))
  return server
})

/** UTF-16 units of a name in a path, encoded: of slices, which have 200 at most. */
const longestName = 4096

/**
 * Serves until the scope ends, and answers where. Fails with DebugError where there is nothing to show, and with ListenError.
 *
 * @since 0.1.0
 */
export const serve = (options: Options): Effect.Effect<Address, DebugError | ListenError, Scope.Scope> =>
  Effect.gen(function* () {
    const { host = "127.0.0.1", port: asked = 0, version = "0.0.0" } = options
    const source = yield* sourceOf(options)
    const server = yield* listening(host, asked)
    const { port } = server.address as { readonly port: number }
    const ended = yield* Deferred.make<void>()
    const live = Stream.interruptWhen(Stream.concat(source.live, Stream.never), Deferred.await(ended))
    const routes = Handlers.layer({ ...source, live }, version).pipe(Layer.provide(HttpServer.layerServices))
    const api = yield* Effect.provideService(HttpRouter.toHttpEffect(routes), HttpRouter.RouterConfig, {
      maxParamLength: longestName
    })
    yield* server.serve(guarded(port, api, Page.answer))
    yield* Effect.addFinalizer(() => Deferred.succeed(ended, undefined))
    return { url: `http://${host === "::1" ? "[::1]" : host}:${port}/`, port }
  })

/**
 * `serve`, for as long as the layer lives.
 *
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<never, DebugError | ListenError> => Layer.effectDiscard(serve(options))
