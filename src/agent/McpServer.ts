/**
 * A server of the Model Context Protocol over any Filesystem: the tools with their policies, the files as resources, and one
 * prompt. Optional features of the client, such as roots, do not configure the server.
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
 * The options of a server with custom tools of the type `T`.
 *
 * @since 0.1.0
 */
export interface Options<T extends AnyDefinition<unknown> = AnyDefinition> {
  /** @default "fs-algebra" */
  readonly name?: string | undefined
  /** The version that the server reports to clients. @default "0.1.0" */
  readonly version?: string | undefined
  /** The text that every client receives at the start. @default instructions for working on the files with these tools */
  readonly instructions?: string | undefined
  /**
   * The tools to serve: the name of a kit, or the names of tools. `seven` is FilesystemToolkit.seven, and `vfs` is the four tools
   * of VfsToolkit. `all` is FilesystemToolkit.toolkit, the snapshot tools and the sandbox tools. Snapshot tools are served only
   * with Snapshots, and sandbox tools only with a Sandbox. @default "all"
   */
  readonly tools?: "all" | "seven" | "vfs" | ReadonlyArray<string> | undefined
  /** True if the server offers only tools that change nothing, and the filesystem refuses all changes. @default false */
  readonly readOnly?: boolean | undefined
  /**
   * True if each result also contains its value as structured content, with a schema. Many clients then show a model only the
   * structured content, which therefore includes the message. Text and structured content both count against the budget.
   * @default false
   */
  readonly structured?: boolean | undefined
  /** The name of the workspace, for the instructions. @default none */
  readonly workspace?: string | undefined
  /**
   * Custom tools, served in addition to `tools`. The services that these tools need become requirements of the server. @default
   * none
   */
  readonly extra?: ReadonlyArray<T> | undefined
  /** A layer that registers further tools, resources or prompts on effect/ai's McpServer. @default nothing */
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
  /**
   * The origins whose web pages may send requests. Requests without an origin, as programs send them, are always admitted.
   * @default none
   */
  readonly allowedOrigins?: ReadonlyArray<string> | undefined
  /**
   * The largest number of sessions. A new session beyond the limit ends the session that has been idle longest. If no
   * session is idle, the server refuses the new session with status 503. @default 1000
   */
  readonly maxSessions?: number | undefined
  /** The time without a request after which the next request of any client ends a session. @default "1 day" */
  readonly sessionIdleTimeout?: Duration.Input | undefined
}

const server = Effect.promise(() => import("./mcp/server.ts"))

/**
 * Registers only the tools, resources and prompt. Use this layer for a server of effect/ai that also offers other tools, or
 * uses a transport other than stdio and HTTP.
 *
 * @since 0.1.0
 */
export const registrations = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options: Options<T> = {}
): Layer.Layer<never, never, Filesystem | Server.McpServer | Requirements<T>> =>
  Layer.unwrap(Effect.map(server, ({ registrations }) => registrations(options)))

/**
 * Serves one client over standard input and output until the client disconnects. After the end of the input, running calls have
 * one second to complete. Then the server interrupts them.
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
 * Serves many clients over HTTP, each in a session of its own. A client may end its session. The server ends a session that is
 * idle too long. At the maximum number of sessions, a new session ends the session that has been idle longest. The client of an
 * ended session gets status 404 and must start a new session. There is no authentication: the HTTP server decides on which
 * address it listens, and so which clients can reach it. Only a server over standard input and output sends notices of changed
 * files.
 *
 * Version 2026-07-28 of the protocol has no sessions, and several clients may have the same name. The server therefore cannot
 * know which files a client of this version has read. `Policy.readBeforeWrite` then refuses all changes of existing files.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerHttp = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options: HttpOptions<T> = {}
): Layer.Layer<never, never, Filesystem | HttpRouter.HttpRouter | Requirements<T>> =>
  Layer.unwrap(Effect.map(server, ({ layerHttp }) => layerHttp(options)))
