/**
 * A server of the Model Context Protocol over whatever Filesystem there is: the tools with their policies, the files as resources, and
 * one prompt. What a client offers of its own, roots among it, is never asked for: what is given here is all that there is.
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
import type { Chosen } from "./mcp/choice.ts"

/**
 * What a server offers, with tools `T` of one's own.
 *
 * @since 0.1.0
 */
export interface Options<T extends AnyDefinition<unknown> = AnyDefinition> {
  /** @default "fs-algebra" */
  readonly name?: string | undefined
  /** Of the server. @default "0.1.0" */
  readonly version?: string | undefined
  /** What every client is told at the start. @default how to work with the files, for these tools */
  readonly instructions?: string | undefined
  /** A kit, or the names of tools: `all` is the seven and the extras, `vfs` the kit of four. @default "all" */
  readonly tools?: Chosen | undefined
  /** Offer only tools that change nothing, and let nothing be changed by any other way. @default false */
  readonly readOnly?: boolean | undefined
  /**
   * Send the value of each result as structured content too, with the schema of each. Many clients then show a model that content and
   * nothing else: it holds the message, and both are within the budget. @default false
   */
  readonly structured?: boolean | undefined
  /** What the files are called together, for the guidance. @default none */
  readonly workspace?: string | undefined
  /** Tools of one's own, beside those of `tools`; the services that they need, the server needs. @default none */
  readonly extra?: ReadonlyArray<T> | undefined
  /** What else is to be served, as layers of effect/ai's McpServer. @default nothing */
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
  /** Which pages of browsers may ask; programs have no origin. @default none */
  readonly allowedOrigins?: ReadonlyArray<string> | undefined
  /** Beyond this the session that was idle for longest ends; with none idle, a new one is refused with 503. @default 1000 */
  readonly maxSessions?: number | undefined
  /** A session without a request for this long ends. @default "1 day" */
  readonly sessionIdleTimeout?: Duration.Input | undefined
}

const server = Effect.promise(() => import("./mcp/server.ts"))

/**
 * The tools, resources and prompt alone, for a server of effect/ai that has others too or another transport.
 *
 * @since 0.1.0
 */
export const registrations = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options: Options<T> = {}
): Layer.Layer<never, never, Filesystem | Server.McpServer | Requirements<T>> =>
  Layer.unwrap(Effect.map(server, ({ registrations }) => registrations(options)))

/**
 * Serves one client over standard input and output until it hangs up; what it was still waiting for is then interrupted, and the files
 * are as they were before it.
 *
 * @since 0.1.0
 */
export const runStdio = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options: Options<T> = {}
): Effect.Effect<void, never, Filesystem | Stdio | Requirements<T>> =>
  Effect.flatMap(server, ({ runStdio }) => runStdio(options))

/**
 * The same as a layer, which ends nothing when the client hangs up.
 *
 * @since 0.1.0
 */
export const layerStdio = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options?: Options<T>
): Layer.Layer<never, never, Filesystem | Stdio | Requirements<T>> => Layer.effectDiscard(Effect.forkScoped(runStdio(options)))

/**
 * Serves many clients over HTTP, each with a session of its own that it may end. A session ends too when it was idle for long, or when
 * there are too many: its client is then answered 404, and begins another. Where the server listens, and who may reach it, is for
 * the HTTP server to say: there is no other authentication. Change notices are for standard input and output alone.
 *
 * @since 0.1.0
 */
export const layerHttp = <T extends AnyDefinition<unknown> = AnyDefinition>(
  options: HttpOptions<T> = {}
): Layer.Layer<never, never, Filesystem | HttpRouter.HttpRouter | Requirements<T>> =>
  Layer.unwrap(Effect.map(server, ({ layerHttp }) => layerHttp(options)))
