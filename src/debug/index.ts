/**
 * Readers of dumps and workspaces for inspection, an HTTP API with its OpenAPI description, and a server with a page, for this
 * machine alone.
 *
 * @since 0.1.0
 */
export * as Api from "./Api.ts"
export * as Dump from "./Dump.ts"
export * as Model from "./model.ts"
export * as Server from "./Server.ts"
