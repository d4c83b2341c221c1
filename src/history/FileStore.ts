/**
 * A store of text files with eight methods, over any Filesystem.
 *
 * The size limits of `Limits` apply only to the archives of `snapshot` and `restore`. `delete` is recursive. For a missing path,
 * `delete` gives 0 and `list` gives an empty list.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { isBytes } from "../model/realms.ts"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { FileEntry, GlobMatch, GrepMatch, ReadResult } from "../model/Entry.ts"
import type { DeleteError, FsError, GlobError, GrepError, ListError, ReadError, WriteError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, unlimited } from "../model/Limits.ts"
import { exportBytesOf, importBytesOf, importZipOf } from "./Archive.ts"
import { ArchiveError } from "./errors.ts"

/**
 * The range of lines to read.
 *
 * @since 0.1.0
 */
export interface PageOptions {
  /** The 0-based first line. @default 0 */
  readonly offset?: number | undefined
  /** The number of lines. -1 means all lines. @default all */
  readonly limit?: number | undefined
}

/**
 * The files to search.
 *
 * @since 0.1.0
 */
export interface SearchOptions {
  /** A glob for the files to search. @default every file */
  readonly fileGlob?: string | undefined
}

/**
 * The operations of a FileStore.
 *
 * The operations ignore the current `Limits`, except `patternBudget`, `maxArchiveEntries` and `maxArchiveBytes`.
 *
 * @since 0.1.0
 */
export interface Operations {
  readonly read: (path: string, options?: PageOptions) => Effect.Effect<ReadResult, ReadError>
  /** Writes a file and returns the number of bytes. Creates missing parent directories, and replaces an existing file. */
  readonly write: (path: string, content: string) => Effect.Effect<number, WriteError>
  /**
   * Deletes a file, or a directory with everything in it. Returns the number of deleted files. A directory without files counts
   * as 1; a missing path gives 0.
   */
  readonly delete: (path: string) => Effect.Effect<number, DeleteError>
  /**
   * Lists the entries of a directory with their sizes, sorted by name. A missing directory gives an empty list.
   *
   * @default the root
   */
  readonly list: (path?: string) => Effect.Effect<ReadonlyArray<FileEntry>, ListError>
  /**
   * Finds files by a glob. Returns the files with their sizes in path order. A pattern without a slash matches names at any
   * depth. A pattern with a slash matches paths from the root.
   */
  readonly glob: (pattern: string) => Effect.Effect<ReadonlyArray<FileEntry>, GlobError>
  /** Searches files. Returns the first match of each matching line, ordered by path and line. */
  readonly grep: (pattern: string, options?: SearchOptions) => Effect.Effect<ReadonlyArray<GrepMatch>, GrepError>
  /**
   * The whole tree as a ZIP archive. A backend without symlinks can restore only an archive without symlinks.
   *
   * Omits each entry that an import would reject, such as a symlink that leads out of the tree, and logs a warning.
   * `Snapshots` keeps such entries. Fails with ArchiveError `tooLarge` if the tree exceeds the limits of an archive.
   */
  readonly snapshot: Effect.Effect<Uint8Array, ArchiveError | FsError>
  /**
   * Makes the tree equal to a ZIP archive of any origin. Removes entries that the archive does not contain.
   *
   * Checks the whole archive before it changes any visible entry, so a failure changes nothing. Fails with ArchiveError if the
   * archive is invalid or contains unsupported symlinks, and with AccessDenied `readOnly` if writing or deleting is not permitted.
   */
  readonly restore: (data: Uint8Array) => Effect.Effect<void, ArchiveError | FsError>
}

/**
 * The service that stores text files.
 *
 * @category services
 * @since 0.1.0
 */
export class FileStore extends Context.Service<FileStore, Operations>()("fs-algebra/FileStore") {}

const withoutSizeLimits = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.flatMap(Limits, ({ maxArchiveBytes, maxArchiveEntries, patternBudget }) =>
    Effect.provideService(effect, Limits, { ...unlimited, maxArchiveBytes, maxArchiveEntries, patternBudget })
  )

const allLines = -1

const entryOf = ({ isFile, kind, path, sizeBytes }: GlobMatch): FileEntry => ({
  name: FsPath.name(path),
  path,
  kind,
  isFile,
  isDirectory: kind === "directory",
  ...(sizeBytes === undefined ? undefined : { sizeBytes }),
  addressable: true
})

/** Restores an archive. A value that is not a byte array fails like a corrupt archive. */
const restoreOf = (fs: Algebra, data: Uint8Array): Effect.Effect<number, ArchiveError | FsError> =>
  isBytes(data)
    ? importBytesOf(fs, data)
    : importZipOf(fs, Stream.fail(new ArchiveError({ reason: "corrupt", detail: "the archive is not a Uint8Array" })))

/**
 * Creates a store over a filesystem.
 *
 * @example
 * ```ts
 * const store = FileStore.make(fs)
 * const bytes = yield* store.snapshot
 * yield* store.write("notes/todo.md", "") // => 0
 * yield* store.restore(bytes)
 * yield* fs.readString("notes/todo.md") // => "- [ ] tea\n- [ ] bread\n"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const make = (fs: Algebra): Operations => ({
  read: (path, options) => withoutSizeLimits(fs.read(path, { offset: options?.offset, limit: options?.limit ?? allLines })),
  write: (path, content) => withoutSizeLimits(Effect.map(fs.write(path, content), ({ bytesWritten }) => bytesWritten)),
  delete: (path) =>
    withoutSizeLimits(Effect.map(fs.delete(path, { recursive: true, missing: "ignore" }), ({ deleted }) => deleted)),
  list: (path) => withoutSizeLimits(Effect.catchTag(fs.list(path), "NotFound", () => Effect.succeed([]))),
  glob: (pattern) => withoutSizeLimits(Effect.map(fs.glob(pattern, { sizes: true }), ({ matches }) => matches.map(entryOf))),
  grep: (pattern, options) => withoutSizeLimits(Stream.runCollect(fs.grepStream(pattern, { glob: options?.fileGlob }))),
  snapshot: withoutSizeLimits(exportBytesOf(fs)),
  restore: (data) => withoutSizeLimits(Effect.asVoid(restoreOf(fs, data)))
})

/**
 * Provides a store over the current filesystem.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<FileStore, never, Filesystem> = Layer.effect(FileStore, Effect.map(Filesystem, make))
