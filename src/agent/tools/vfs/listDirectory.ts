/** Lists a directory, with the facts about each file that a later write needs. A missing directory counts as empty. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Algebra } from "../../../filesystem/Filesystem.ts"
import type { FileEntry, FileStat, Kind } from "../../../model/Entry.ts"
import type { BackendError, ListError, NotFound, StatError, StreamError } from "../../../model/FsError.ts"
import { type FsPath, root } from "../../../model/FsPath.ts"
import { define } from "../../definition.ts"
import { joinFitting } from "../../text/fit.ts"
import { plural } from "../../text/words.ts"
import { formatFacts } from "./metadata.ts"

/** The number of files whose versions are listed; each version costs a read of the file. */
const maxVersions = 500

interface FoundEntry {
  readonly entry: FileEntry
  /** The kind of a link's target; for a dangling link, of the link itself. */
  readonly kind: Kind
  readonly stat?: FileStat
}

/** Ignores errors about a single entry: one that disappears meanwhile or may not be read still has its name. */
const orUnknown = <A>(effect: Effect.Effect<A, StatError | StreamError>) =>
  Effect.catchIf(
    effect,
    (error: StatError | StreamError): error is Exclude<typeof error, BackendError> =>
      error._tag !== "IoError" && error._tag !== "Timeout" && error._tag !== "Unavailable",
    () => Effect.succeed(undefined)
  )

const statEntry = (fs: Algebra, entry: FileEntry): Effect.Effect<FoundEntry, StatError> =>
  entry.kind === "directory"
    ? Effect.succeed({ entry, kind: entry.kind })
    : Effect.map(orUnknown(fs.stat(entry.path)), (stat) =>
        stat === undefined ? { entry, kind: entry.kind } : { entry, kind: stat.kind, stat }
      )

const formatLine = Effect.fnUntraced(function* (
  fs: Algebra,
  { entry, kind, stat }: FoundEntry,
  isVersioned: boolean
): Effect.fn.Return<string, StreamError> {
  if (kind === "directory") return `${entry.name}/`
  if (kind !== "file" || stat === undefined) {
    return `${entry.name} (${kind === "symlink" ? "a link that leads nowhere" : kind === "other" ? "neither file nor directory" : "unreadable"})`
  }
  const version = isVersioned ? yield* orUnknown(fs.version(entry.path)) : undefined
  return `${entry.name} (${formatFacts(stat, version)})`
})

const orEmpty = (listing: Effect.Effect<ReadonlyArray<FileEntry>, ListError>) =>
  Effect.catchTag(listing, "NotFound", (_: NotFound) => Effect.succeed<ReadonlyArray<FileEntry> | undefined>(undefined))

const displayPath = (path: FsPath): string => (path === root ? "the root" : path)

export const listDirectory = define({
  name: "list_directory",
  description:
    "List one directory, not its subdirectories: names, and for files size, version and times. A missing directory is empty.",
  parameters: Schema.Struct({
    path: Schema.optionalKey(Schema.String.annotate({ description: "A directory, relative to the root. Default: the root." }))
  }),
  value: Schema.Struct({
    path: Schema.String,
    directories: Schema.Array(Schema.String),
    files: Schema.Array(Schema.String)
  }),
  does: "reads",
  idempotent: true,
  examples: [{}, { path: "notes" }],
  touches: ({ path = "" }, call) => Effect.map(call.path(path, { blank: "root" }), (at) => [{ access: "read", path: at }]),
  handle: Effect.fnUntraced(function* ({ path = "" }, call) {
    const fs = call.filesystem
    const at = yield* call.path(path, { blank: "root" })
    const entries = yield* orEmpty(fs.list(at))
    if (entries === undefined) {
      return { message: `${displayPath(at)} does not exist yet: it is empty`, value: { path: at, directories: [], files: [] } }
    }
    const found = yield* Effect.forEach(
      entries.filter(({ addressable }) => addressable),
      (entry) => statEntry(fs, entry),
      { concurrency: 16 }
    )
    const unaddressableCount = entries.length - found.length
    const lines = yield* Effect.forEach(found, (one, index) => formatLine(fs, one, index < maxVersions), { concurrency: 4 })
    const directories = found.filter(({ kind }) => kind === "directory").map(({ entry }) => entry.name)
    const files = found.filter(({ kind }) => kind !== "directory").map(({ entry }) => entry.name)
    const head =
      entries.length === 0
        ? `${displayPath(at)} is empty`
        : `${displayPath(at)}: ${plural(directories.length, "directory", "directories")}, ${plural(files.length, "file")}`
    const hidden = unaddressableCount === 0 ? [] : [`not shown: ${plural(unaddressableCount, "name")} that no path can express`]
    return {
      message: joinFitting(
        [head, ...lines, ...hidden],
        call.settings,
        (shown) => `[cut: ${shown - 1} of ${plural(lines.length, "entry", "entries")}]`
      ),
      value: { path: at, directories, files }
    }
  })
})
