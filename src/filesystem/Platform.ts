/**
 * Effect's own FileSystem and ours, in both directions.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import { type Fault, type NotADirectory, promote, StatError, tagsOf } from "../model/FsError.ts"
import type { Backend, Info } from "../port/Backend.ts"
import { type CommonOptions, enforce, fromOptions, isReadOnly } from "../port/Rules.ts"
import { type Algebra, Filesystem, layer } from "./Filesystem.ts"
import * as Bridge from "./platform/bridge.ts"
import * as Changing from "./platform/changing.ts"
import * as Copy from "./platform/copy.ts"
import * as Ground from "./platform/ground.ts"
import * as Looking from "./platform/looking.ts"
import * as Open from "./platform/open.ts"
import * as Port from "./platform/port.ts"
import * as Temporary from "./platform/temporary.ts"

const served = (fs: Algebra): FileSystem.FileSystem => {
  const bridge = Bridge.make(fs)
  const open = Open.make(bridge)
  const { sink, ...changing } = Changing.make(bridge, open)
  return {
    ...FileSystem.make({
      ...Looking.make(bridge),
      ...changing,
      ...Temporary.make(bridge),
      copy: Copy.make(bridge),
      open
    }),
    sink
  }
}

/**
 * Effect's own FileSystem, confined to whatever Filesystem is provided. A leading slash is its root, and every answer is what effect's
 * Node implementation would give on the same tree, errors by the same tags with ours as their `cause`, except:
 *
 * - Paths mean what they mean in the service: `..` and a trailing slash are resolved by name, and nothing leads out of the root.
 * - Links that are absolute or leave the root are neither made nor followed (PermissionDenied). Walks do not enter linked directories,
 *   and a copied link keeps its text.
 * - There are no hard links, owners, access times, set-user-ID bits and device numbers: what asks for them fails with BadArgument, what
 *   tells of them says nothing. `access` goes by permission bits, whoever asks.
 * - What is written is staged and takes the file's place in one step. A `sink` does so at its end. A handle opened with `r+` or `w` (and
 *   `x`, `+`) does so at `sync`, which fails typed, and when its scope closes well, where a failure is a defect; until then, and for
 *   good when the scope fails, everyone else sees the old file. A file that opening has made is there at once, and empty. What
 *   has been written through such a handle is held in memory, at most `Limits.maxFileSize`. A handle opened with `a` appends at once.
 * - Temporary files are in the root, unless `directory` says where.
 *
 * @since 0.1.0
 */
export const toFileSystem: Layer.Layer<FileSystem.FileSystem, never, Filesystem> = Layer.effect(
  FileSystem.FileSystem,
  Effect.map(Filesystem, served)
)

/**
 * Which directory of effect's FileSystem becomes a filesystem of ours, and under which rules.
 *
 * @since 0.1.0
 */
export interface FileSystemOptions extends CommonOptions {
  /** A directory of the FileSystem, or a link to one: what it leads to is then the root for good. */
  readonly root: string
  /** Whether case distinguishes names there, which effect's FileSystem does not tell. @default true */
  readonly caseSensitive?: boolean | undefined
}

const notADirectory: Fault = { _tag: "NotADirectory" }

const rootTags = new Set([...tagsOf(StatError), "NotADirectory"])

const backend = Effect.fnUntraced(function* (
  options: FileSystemOptions
): Effect.fn.Return<Backend, Fault, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const top = yield* Ground.ask(fs.realPath(options.root), notADirectory)
  const found = yield* Ground.ask(fs.stat(top))
  if (found.type !== "Directory") return yield* Effect.fail(notADirectory)
  const rules = fromOptions(options)
  const info: Info = {
    name: "fromFileSystem",
    root: options.root,
    caseSensitive: options.caseSensitive !== false,
    readOnly: isReadOnly(rules),
    confinement: "best-effort"
  }
  return enforce(Port.make(yield* Ground.make(fs, top), info, rules))
})

/**
 * Any FileSystem of effect as a Filesystem, for runtimes without a native backend here. It promises what the others do, as far as that
 * can be had from such a FileSystem: no link that stands in the tree is followed out of the root, but a process that exchanges
 * directories for links while a call runs could win a race against it. Creating is atomic where there are hard links; elsewhere
 * an empty file may be seen for a moment.
 *
 * Fails with NotFound, NotADirectory and what else the root may meet.
 *
 * @since 0.1.0
 */
export const fromFileSystem = (
  options: FileSystemOptions
): Layer.Layer<Filesystem, StatError | NotADirectory, FileSystem.FileSystem> =>
  layer(
    Effect.mapError(
      backend(options),
      (fault) => promote(fault, "fromFileSystem", options.root, rootTags) as StatError | NotADirectory
    )
  )
