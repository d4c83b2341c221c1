/**
 * What a run has left, and a workspace as it is, to be looked at: readers of dumps, an HTTP API with its OpenAPI description, and a server
 * of both for this machine alone, with a page.
 *
 * @since 0.1.0
 */
export * as Api from "./Api.ts"
export * as Dump from "./Dump.ts"
export * as Model from "./model.ts"
export * as Server from "./Server.ts"
