/**
 * Tools to inspect dumps, workspaces and stores: functions that read dumps, an HTTP API with an OpenAPI description, and a server
 * with a page. The server accepts only requests from this machine.
 *
 * @since 0.1.0
 */
export * as Api from "./Api.ts"
export * as Dump from "./Dump.ts"
export * as Model from "./model.ts"
export * as Server from "./Server.ts"
