/**
 * A server of the Model Context Protocol over any Filesystem: the tools with their policies, the files as resources, and one
 * prompt. The server never asks for features of the client, such as roots; only the options given here count.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Stdio } from "effect/Stdio"
import type * as Server from "effect/ai/McpServer"
import type * as HttpRouter from "effect/http/HttpRouter"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import type { AnyDefinition, Requirements } from "./definition.ts"

/**
 * The options of a server, with tools `T` of your own.
 *
 * @since 0.1.0
 */
export interface Options<T extends AnyDefinition<unknown> = AnyDefinition> {
  /** @default "fs-algebra" */
  readonly name?: string | undefined
  /** The version of the server. @default "0.1.0" */
  readonly version?: string | undefined
  /** The text that every client receives at the start. @default instructions for working on the files with these tools */
  readonly instructions?: string | undefined
  /**
   * The tools to serve: the name of a kit, or the names of tools. `all` is the seven basic tools and the extras; `vfs` is the
   * kit of four. @default "all"
   */
  readonly tools?: "all" | "seven" | "vfs" | ReadonlyArray<string> | undefined
  /** True to offer only tools that change nothing, and to refuse every other change too. @default false */
  readonly readOnly?: boolean | undefined
  /**
   * True to send the value of each result as structured content too, with its schema. Many clients then show a model that
   * content alone; the content therefore includes the message. Both count against the budget. @default false
   */
  readonly structured?: boolean | undefined
  /** The name of the files as a whole, for the instructions. @default none */
  readonly workspace?: string | undefined
  /** Tools of your own, beside those of `tools`. The server requires the services that these tools need. @default none */
  readonly extra?: ReadonlyArray<T> | undefined
  /** Further layers to serve, on effect/ai's McpServer. @default nothing */
  readonly registrations?: Layer.Layer<never, never, Server.McpServer> | undefined
}

/**
 * Options of a server over HTTP.
 *
 * @since 0.1.0
 */
export interface HttpOptions<T extends AnyDefinition<unknown> = AnyDefinition> extends Options<T> {
  /** @default "/mcp" */
  readonly path?: HttpRouter.PathInput | undefined
  /** The origins of web pages that may send requests; programs send no origin. @default none */
  readonly allowedOrigins?: ReadonlyArray<string> | undefined
  /**
   * The largest number of sessions. Beyond it the session that was idle longest ends; if none is idle, a new session is refused
   * with 503. @default 1000
   */
  readonly maxSessions?: number | undefined
  /** The time without a request after which a session ends. @default "1 day" */
  readonly sessionIdleTimeout?: Duration.Input | undefined
}

const server = Effect.promise(() => import("./mcp/server.ts"))

/**
 * Registers only the tools, resources and prompt, for a server of effect/ai that also serves other things or uses another
 * transport.
 *
 * @since 0.1.0
 */
export const registrations = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options: Options<T> = {}
): Layer.Layer<never, never, Filesystem | Server.McpServer | Requirements<T>> =>
  Layer.unwrap(Effect.map(server, ({ registrations }) => registrations(options)))

/**
 * Serves one client over standard input and output until it disconnects. Calls that still run are then interrupted and their
 * changes rolled back.
 *
 * @example
 * ```ts
 * yield* McpServer.runStdio({ tools: "seven" }).pipe(
 *   Effect.provide(Policy.readBeforeWrite),
 *   Effect.provide(PosixHost.layer({ root: "/srv/project" })),
 *   Effect.provide(NodeServices.layer)
 * )
 * ```
 * @category running
 * @since 0.1.0
 */
export const runStdio = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options: Options<T> = {}
): Effect.Effect<void, never, Filesystem | Stdio | Requirements<T>> =>
  Effect.flatMap(server, ({ runStdio }) => runStdio(options))

/**
 * Serves one client as `runStdio` does, as a layer. The program goes on when the client disconnects.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerStdio = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options?: Options<T>
): Layer.Layer<never, never, Filesystem | Stdio | Requirements<T>> => Layer.effectDiscard(Effect.forkScoped(runStdio(options)))

/**
 * Serves many clients over HTTP, each in a session of its own. A client may end its session; a session also ends when it is
 * idle too long or when there are too many. Its client then gets 404 and starts another. There is no authentication: the HTTP
 * server decides its address and who may reach it. Change notices are sent over standard input and output only.
 *
 * Version 2026-07-28 of the protocol has no sessions, and several of its clients may give the same name. Therefore no file
 * counts as read after the call that read it. `Policy.readBeforeWrite` refuses these clients each change of an existing file.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerHttp = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options: HttpOptions<T> = {}
): Layer.Layer<never, never, Filesystem | HttpRouter.HttpRouter | Requirements<T>> =>
  Layer.unwrap(Effect.map(server, ({ layerHttp }) => layerHttp(options)))
