/**
 * The four tools for a virtual filesystem: `list_directory`, `read_file`, `write_file` and `delete_file`. `FilesystemToolkit`
 * also has tools with two of these names, so a list of tools contains only one of the two kits.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Filesystem } from "../filesystem/Filesystem.ts"
import { type Bind, bindSession, recoveredFilesystem, toTool } from "./toolkit.ts"
import { deleteFile, listDirectory, readFile, writeFile } from "./tools/vfs.ts"

const kit = "vfs"

/**
 * The four tools: `list_directory`, `read_file`, `write_file`, `delete_file`.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const toolkit = Toolkit.make(
  toTool(listDirectory, kit),
  toTool(readFile, kit),
  toTool(writeFile, kit),
  toTool(deleteFile, kit)
)

const handlers = (bind: Bind) =>
  toolkit.of({
    list_directory: bind(listDirectory),
    read_file: bind(readFile),
    write_file: bind(writeFile),
    delete_file: bind(deleteFile)
  })

/**
 * Handlers on the filesystem provided to the layer, for one session.
 *
 * @example
 * ```ts
 * const tools = yield* Effect.provide(VfsToolkit.toolkit, VfsToolkit.layer)
 * yield* Stream.runDrain(yield* tools.handle("delete_file", { path: "src/main.ts" }))
 * yield* fs.exists("src/main.ts") // => false
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>, never, Filesystem> = toolkit.toLayer(
  Effect.map(recoveredFilesystem, (filesystem) => handlers(bindSession(Context.make(Filesystem, filesystem))))
)

/**
 * Handlers on the filesystem in the context of each call. Without a filesystem, a call fails with "No filesystem available".
 *
 * @category layers
 * @since 0.1.0
 */
export const layerContextual: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> = toolkit.toLayer(
  Effect.sync(() => handlers(bindSession(Context.empty())))
)
