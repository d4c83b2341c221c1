/**
 * Provides the files of an MCP filesystem server as a Filesystem. The server is the official
 * `@modelcontextprotocol/server-filesystem`, or one with the same tools and the same texts.
 *
 * @since 0.1.0
 */
import * as McpClient from "effect/ai/McpClient"
import { v2025_11_25 } from "effect/ai/McpProtocol"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as ChildProcess from "effect/process/ChildProcess"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { type Filesystem, layer as filesystemLayer } from "../filesystem/Filesystem.ts"
import {
  type Fault,
  FsError,
  type InvalidArgument,
  type NotADirectory,
  promote,
  type StatError,
  tagsOf,
  type Unsupported
} from "../model/FsError.ts"
import { type CommonOptions, enforce, fromOptions, isReadOnly } from "../port/Rules.ts"
import * as Port from "./mcpFilesystem/port.ts"
import * as Server from "./mcpFilesystem/server.ts"
import type { AdapterSupport } from "./support.ts"

/**
 * The tested version of the server, and its features that the adapter supports or does not support.
 *
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "McpFilesystem",
  package: "@modelcontextprotocol/server-filesystem",
  version: "2026.8.31",
  maps: [
    "`get_file_info`: `stat`, with times in whole seconds",
    "`list_directory`: `list`, and with it walks, globs and searches",
    "`read_media_file`: reading of text and binary files",
    "`write_file`, `move_file`: writing of UTF-8 text",
    "`create_directory`: `mkdir`",
    "`move_file`: moves to a free name"
  ],
  missing: [
    "deleting, and moves that replace an entry: the server has no tool for them (`Unsupported`)",
    "writing of bytes that are not UTF-8 (`Unsupported`)",
    "symlinks: listed as `symlink`, but never followed, made or moved",
    "attributes and watching",
    "names that differ from another entry's name only in case or Unicode form (`InvalidPath`)",
    "exclusion of other programs: the server checks and changes in two steps; an append rewrites the file",
    "removing the temporary file of a write whose last step failed",
    "servers on Windows (`Unsupported`)"
  ]
}

/**
 * The options of a filesystem on an MCP server.
 *
 * @since 0.1.0
 */
export interface McpFilesystemOptions extends CommonOptions {
  /** The root: a directory that the server allows. @default the only directory that it allows */
  readonly root?: string | undefined
  /** The time after which a request without an answer fails with Unavailable. @default "30 seconds" */
  readonly timeout?: Duration.Input | undefined
  /** The largest file in bytes. A read or write holds the whole file in memory. @default 8 MiB */
  readonly maxFileBytes?: number | undefined
}

/**
 * The errors of building the filesystem.
 *
 * @since 0.1.0
 */
export type OpenError = StatError | NotADirectory | InvalidArgument | Unsupported

const standardMaxFileBytes = 8 * 1024 * 1024

const toOpenError = (fault: Fault): OpenError => promote(fault, "McpFilesystem", "", tagsOf(FsError)) as OpenError

const open = Effect.fnUntraced(function* (options: McpFilesystemOptions) {
  const server = yield* Server.open(yield* McpClient.McpClient, options)
  const rules = fromOptions(options)
  const info = {
    name: "McpFilesystem",
    root: server.base,
    caseSensitive: true,
    readOnly: isReadOnly(rules),
    confinement: "best-effort"
  } as const
  return enforce(Port.make(server, info, rules, options.maxFileBytes ?? standardMaxFileBytes))
})

/**
 * Provides the files of the server to which an `McpClient` of effect is connected, over any transport.
 *
 * The server never sees a path outside the root. The server follows symlinks itself, so each path is resolved by the server
 * before it is used, and a path that leads through a symlink is refused. Another program that makes a symlink between
 * the check and the use can redirect a call to another directory that the server allows.
 *
 * An operation fails with `Unsupported` if the server has no tool for it. If the errors of the call do not include
 * `Unsupported`, the call fails with an `IoError` with the code `Unsupported`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: McpFilesystemOptions = {}): Layer.Layer<Filesystem, OpenError, McpClient.McpClient> =>
  filesystemLayer(Effect.mapError(open(options), toOpenError))

/**
 * Starts a server and provides its files. The server ends with the layer's scope.
 *
 * @example
 * ```ts
 * import { ChildProcess } from "effect/process"
 *
 * const command = ChildProcess.make("npx", ["mcp-server-filesystem", "."])
 * const files = Layer.provide(McpFilesystem.layerStdio({ command, readOnly: true }), NodeServices.layer)
 * const hasManifest = Filesystem.Filesystem.use((fs) => fs.exists("package.json"))
 * yield* Effect.provide(hasManifest, files) // => true
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layerStdio = (
  options: McpFilesystemOptions & { readonly command: ChildProcess.Command }
): Layer.Layer<Filesystem, OpenError, ChildProcessSpawner> =>
  Layer.provide(
    layer(options),
    McpClient.layerStdio({
      name: "fs-algebra",
      version: "0.1.0",
      command: options.command,
      protocol: v2025_11_25,
      timeout: options.timeout ?? "30 seconds",
      // The server sends the content of a file twice, in base64.
      maxMessageBytes: Math.ceil((options.maxFileBytes ?? standardMaxFileBytes) * (8 / 3)) + 1024 * 1024
    }).pipe(Layer.catch((error) => Layer.effect(McpClient.McpClient, Effect.fail(toOpenError(Server.faultOfClient(error))))))
  )
