/**
 * The file tools for agents, on effect/ai. Each layer of handlers is one session. A session records the versions of the files
 * that its tools read and write, for `Policy.readBeforeWrite` and for the messages of conflicts. ToolSettings, Policies and
 * ToolEvents provided to a layer apply to its handlers.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Filesystem } from "../filesystem/Filesystem.ts"
import { Snapshots } from "../history/snapshots/tag.ts"
import { type Bind, bindSession, recoveredFilesystem, toTool } from "./toolkit.ts"
import { applyPatch } from "./tools/applyPatch.ts"
import { copy, mkdir, move } from "./tools/transfer.ts"
import { editFile } from "./tools/editFile.ts"
import { glob } from "./tools/glob.ts"
import { grep } from "./tools/grep.ts"
import { ls, stat } from "./tools/ls.ts"
import { readFile } from "./tools/readFile.ts"
import { rm } from "./tools/rm.ts"
import { diff } from "./tools/diff.ts"
import { restore, snapshot, snapshots as snapshotList } from "./tools/snapshots.ts"
import { tree } from "./tools/tree.ts"
import { writeFile } from "./tools/writeFile.ts"

/**
 * The seven basic tools: `ls`, `read_file`, `write_file`, `edit_file`, `glob`, `grep`, `rm`.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const seven = Toolkit.make(
  toTool(ls),
  toTool(readFile),
  toTool(writeFile),
  toTool(editFile),
  toTool(glob),
  toTool(grep),
  toTool(rm)
)

const extras = Toolkit.make(toTool(move), toTool(copy), toTool(mkdir), toTool(stat), toTool(tree), toTool(applyPatch))

/**
 * The whole kit: the seven basic tools and `move`, `copy`, `mkdir`, `stat`, `tree`, `apply_patch`.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const toolkit = Toolkit.merge(seven, extras)

/**
 * The snapshot tools: `snapshot`, `snapshots`, `restore`, `diff`.
 *
 * @since 0.1.0
 */
export const snapshots = Toolkit.make(toTool(snapshot), toTool(snapshotList), toTool(restore), toTool(diff))

/**
 * The tools of `toolkit`, and the snapshot tools.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const all = Toolkit.merge(toolkit, snapshots)

const sevenHandlers = (bind: Bind) =>
  seven.of({
    ls: bind(ls),
    read_file: bind(readFile),
    write_file: bind(writeFile),
    edit_file: bind(editFile),
    glob: bind(glob),
    grep: bind(grep),
    rm: bind(rm)
  })

const handlers = (bind: Bind) =>
  toolkit.of({
    ...sevenHandlers(bind),
    move: bind(move),
    copy: bind(copy),
    mkdir: bind(mkdir),
    stat: bind(stat),
    tree: bind(tree),
    apply_patch: bind(applyPatch)
  })

const snapshotHandlers = (bind: Bind) =>
  snapshots.of({ snapshot: bind(snapshot), snapshots: bind(snapshotList), restore: bind(restore), diff: bind(diff) })

const allHandlers = (bind: Bind) => all.of({ ...handlers(bind), ...snapshotHandlers(bind) })

const ownSession = Effect.map(recoveredFilesystem, (filesystem) => bindSession(Context.make(Filesystem, filesystem)))

const contextualSession = Effect.sync(() => bindSession(Context.empty()))

/**
 * Handlers of the whole kit, on the filesystem provided to the layer.
 *
 * @example
 * ```ts
 * const tools = yield* Effect.provide(FilesystemToolkit.toolkit, FilesystemToolkit.layer)
 * yield* Stream.runDrain(yield* tools.handle("write_file", { path: "a.txt", content: "one" }))
 * yield* fs.readString("a.txt") // => "one"
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>, never, Filesystem> = toolkit.toLayer(
  Effect.map(ownSession, handlers)
)

/**
 * Handlers of the whole kit, on the filesystem in the context of each call. Without a filesystem, a call fails with "No
 * filesystem available".
 *
 * @category layers
 * @since 0.1.0
 */
export const layerContextual: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> = toolkit.toLayer(
  Effect.map(contextualSession, handlers)
)

/**
 * Handlers of the seven basic tools, on the filesystem provided to the layer.
 *
 * @since 0.1.0
 */
export const layerSeven: Layer.Layer<Tool.HandlersFor<typeof seven.tools>, never, Filesystem> = seven.toLayer(
  Effect.map(ownSession, sevenHandlers)
)

/**
 * Handlers of the seven basic tools, on the filesystem in the context of each call.
 *
 * @since 0.1.0
 */
export const layerSevenContextual: Layer.Layer<Tool.HandlersFor<typeof seven.tools>> = seven.toLayer(
  Effect.map(contextualSession, sevenHandlers)
)

const ownSessionWithSnapshots = Effect.gen(function* () {
  return bindSession(Context.make(Filesystem, yield* recoveredFilesystem).pipe(Context.add(Snapshots, yield* Snapshots)))
})

/**
 * Handlers of the snapshot tools, on the filesystem and the snapshots provided to the layer.
 *
 * @since 0.1.0
 */
export const layerSnapshots: Layer.Layer<
  Tool.HandlersFor<typeof snapshots.tools>,
  never,
  Filesystem | Snapshots
> = snapshots.toLayer(Effect.map(ownSessionWithSnapshots, snapshotHandlers))

/**
 * Handlers of the whole kit with the snapshot tools, as one session. After a restore, the changed files count as not read, so
 * `Policy.readBeforeWrite` requires that a model reads them again.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerAll: Layer.Layer<Tool.HandlersFor<typeof all.tools>, never, Filesystem | Snapshots> = all.toLayer(
  Effect.map(ownSessionWithSnapshots, allHandlers)
)
