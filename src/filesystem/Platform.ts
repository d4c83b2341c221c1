/**
 * Converts between effect's FileSystem and the Filesystem of this library, in both directions.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Sink from "effect/Sink"
import { notADirectory } from "../model/Fault.ts"
import { type Fault, type NotADirectory, promote, StatError, tagsOf } from "../model/FsError.ts"
import type { Backend, Info } from "../port/Backend.ts"
import { type CommonOptions, enforce, fromOptions, isReadOnly } from "../port/Rules.ts"
import { type Algebra, Filesystem, layer } from "./Filesystem.ts"
import * as Bridge from "./platform/bridge.ts"
import { makeLooking } from "./platform/bridge.ts"
import * as Changing from "./platform/changing.ts"
import { makeCopy, makeTemporary } from "./platform/changing.ts"
import * as Port from "./platform/port.ts"
import { makeGround } from "./platform/port.ts"
import * as Open from "./platform/open.ts"

const toEffectFileSystem = (fs: Algebra): FileSystem.FileSystem => {
  const bridge = Bridge.make(fs)
  const { open, publishPending } = Open.make(bridge)
  const readMethods = makeLooking(bridge)
  const changeMethods = Changing.make(bridge, open)
  const copy = makeCopy(bridge)
  /** Wraps a call. Before the call, open handles publish their changes to the files at the call's path. */
  const withSettledPath =
    <Rest extends ReadonlyArray<unknown>, A, E>(
      call: (path: string, ...rest: Rest) => Effect.Effect<A, E>,
      extent: Open.PathExtent = "file"
    ) =>
    (path: string, ...rest: Rest): Effect.Effect<A, E> =>
      Effect.andThen(publishPending(path, extent), call(path, ...rest))
  const withSettledPaths =
    <Rest extends ReadonlyArray<unknown>, A, E>(
      call: (from: string, to: string, ...rest: Rest) => Effect.Effect<A, E>,
      extent: Open.PathExtent
    ) =>
    (from: string, to: string, ...rest: Rest): Effect.Effect<A, E> =>
      Effect.andThen(Effect.andThen(publishPending(from, extent), publishPending(to, extent)), call(from, to, ...rest))
  return {
    ...FileSystem.make({
      ...readMethods,
      ...changeMethods,
      ...makeTemporary(bridge),
      readFile: withSettledPath(readMethods.readFile),
      stat: withSettledPath(readMethods.stat),
      lstat: withSettledPath(readMethods.lstat, "entry"),
      writeFile: withSettledPath(changeMethods.writeFile),
      utimes: withSettledPath(changeMethods.utimes),
      remove: (path, options) =>
        Effect.andThen(
          publishPending(path, options?.recursive === true ? "tree" : "file"),
          changeMethods.remove(path, options)
        ),
      rename: withSettledPaths(changeMethods.rename, "tree"),
      copyFile: withSettledPaths(changeMethods.copyFile, "file"),
      copy: withSettledPaths(copy, "tree"),
      open
    }),
    sink: (path, options) => Sink.unwrap(Effect.as(publishPending(path, "file"), changeMethods.sink(path, options)))
  }
}

/**
 * Provides effect's own FileSystem, confined to the current Filesystem, whose root is "/".
 *
 * Every result equals the result of effect's Node implementation on the same tree. Errors have the same tags, and the error
 * of this library as their `cause`. The exceptions:
 *
 * - Paths have the meaning of the service: `..` and a trailing slash are resolved by name, and nothing leads out of the
 *   root.
 * - Symlinks that leave the root are neither made nor followed (PermissionDenied). Absolute symlinks count as leaving the
 *   root, unless they begin with the path of a host's root, or the filesystem is an InMemory with `absoluteLinks: "root"`.
 *   Walks do not enter symlinked directories, and a copied symlink keeps its target.
 * - There are no hard links, owners, access times, set-user-ID bits or device numbers, and results omit all of these. A
 *   request for a hard link, an owner or a set-user-ID bit fails with BadArgument. `utimes` ignores the access time.
 *   `access` only checks whether the permission bits allow the access to some user.
 * - Writes are staged and replace the file in one step. A `sink` replaces the file at the end of its stream.
 * - A handle opened with `r+` or `w` (also with `x` or `+`) publishes its writes at `sync`, and when its scope closes
 *   successfully. A failure is a typed error of `sync`, but a defect when the scope closes. Until the handle publishes, all other
 *   readers see the old file. If the scope fails, the writes are discarded. A file that `open` creates exists immediately and is
 *   empty. Written data is kept in memory, at most `Limits.maxFileSize`.
 * - A call through this FileSystem that reads, stats, writes, copies, moves or removes a file, or sets its times, first
 *   publishes the data of open `w` handles. The call sees the published data, and the handle does not undo the call.
 * - Moving, copying or removing a directory publishes all files below it first. Other calls on a directory publish nothing.
 * - If the scope of an open `w` handle fails later, an existing file keeps the published data, and a file that the handle
 *   created is removed.
 * - A handle keeps its path. If the handle writes after its file was renamed or removed, it publishes its whole content
 *   under the old path again.
 * - A handle opened with `a` appends immediately.
 * - Temporary files are in the root, unless `directory` is given.
 *
 * @example
 * ```ts
 * const read = FileSystem.FileSystem.use((platform) => platform.readFileString("notes/todo.md"))
 * yield* Effect.provide(read, Platform.toFileSystem) // => "- [ ] tea\n- [ ] bread\n"
 * ```
 * @category layers
 * @since 0.1.0
 */
export const toFileSystem: Layer.Layer<FileSystem.FileSystem, never, Filesystem> = Layer.effect(
  FileSystem.FileSystem,
  Effect.map(Filesystem, toEffectFileSystem)
)

/**
 * The options of `fromFileSystem`: the root, its case rule, and the common rules.
 *
 * @since 0.1.0
 */
export interface FileSystemOptions extends CommonOptions {
  /** A directory of the FileSystem, or a symlink to a directory. The target is resolved once and stays the root. */
  readonly root: string
  /** False if the directory ignores case, which effect's FileSystem does not report. @default true */
  readonly caseSensitive?: boolean | undefined
}

const rootTags = new Set([...tagsOf(StatError), "NotADirectory"])

const openBackend = Effect.fnUntraced(function* (
  options: FileSystemOptions
): Effect.fn.Return<Backend, Fault, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const realRoot = yield* Port.toFaults(fs.realPath(options.root), notADirectory)
  const rootInfo = yield* Port.toFaults(fs.stat(realRoot))
  if (rootInfo.type !== "Directory") return yield* Effect.fail(notADirectory)
  const rules = fromOptions(options)
  const info: Info = {
    name: "fromFileSystem",
    root: options.root,
    caseSensitive: options.caseSensitive !== false,
    readOnly: isReadOnly(rules),
    confinement: "best-effort"
  }
  return enforce(Port.make(yield* makeGround(fs, realRoot), info, rules))
})

/**
 * Provides any FileSystem of effect as a Filesystem, for runtimes without a native backend.
 *
 * The Filesystem has the guarantees of the other backends as far as the FileSystem permits. An existing symlink is never
 * followed out of the root. But if another process replaces a directory by a symlink during a call, the call may leave the
 * root. A new file appears with its content if the FileSystem has hard links; otherwise an empty file may be visible for a
 * moment.
 *
 * Fails with NotFound if the root is missing, with NotADirectory if it is not a directory, or with another error of `stat`.
 *
 * @category layers
 * @since 0.1.0
 */
export const fromFileSystem = (
  options: FileSystemOptions
): Layer.Layer<Filesystem, StatError | NotADirectory, FileSystem.FileSystem> =>
  layer(
    Effect.mapError(
      openBackend(options),
      (fault) => promote(fault, "fromFileSystem", options.root, rootTags) as StatError | NotADirectory
    )
  )
