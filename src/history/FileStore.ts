/**
 * A store of text by path in eight methods, over any Filesystem: no caps, deleting takes everything below, and what is not there is
 * empty, not an error.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { isBytes } from "../model/bytes.ts"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { FileEntry, GlobMatch, GrepMatch, ReadResult } from "../model/Entry.ts"
import type { DeleteError, FsError, GlobError, GrepError, ListError, ReadError, WriteError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, unlimited } from "../model/Limits.ts"
import { exportBytesOf, importBytesOf, importZipOf } from "./Archive.ts"
import { ArchiveError } from "./errors.ts"

/**
 * Which lines of a file.
 *
 * @since 0.1.0
 */
export interface PageOptions {
  /** 0-based line of the first one answered. @default 0 */
  readonly offset?: number | undefined
  /** Lines; -1 is all, 0 none. @default all */
  readonly limit?: number | undefined
}

/**
 * Which files `search` looks into.
 *
 * @since 0.1.0
 */
export interface SearchOptions {
  /** A glob for the files to search. @default every file */
  readonly fileGlob?: string | undefined
}

/**
 * The operations. They ignore the `Limits` in force, except those that guard the program and not the answer: how long a pattern may
 * work on one file, and how many entries and bytes an archive may hold.
 *
 * @since 0.1.0
 */
export interface Operations {
  readonly read: (path: string, options?: PageOptions) => Effect.Effect<ReadResult, ReadError>
  /** Makes the parents, replaces what is there, and answers the number of bytes. */
  readonly write: (path: string, content: string) => Effect.Effect<number, WriteError>
  /** A file, or a directory with all that is in it. Answers how many files went: at least 1 when anything did, 0 when nothing was there. */
  readonly delete: (path: string) => Effect.Effect<number, DeleteError>
  /** By name, with sizes; nothing where there is no such directory. @default the root */
  readonly list: (path?: string) => Effect.Effect<ReadonlyArray<FileEntry>, ListError>
  /** Files, with sizes, in path order. A pattern without a slash matches names at any depth, one with a slash paths from the root. */
  readonly glob: (pattern: string) => Effect.Effect<ReadonlyArray<FileEntry>, GlobError>
  /** The first match of each matching line, in the order of (path, line). */
  readonly grep: (pattern: string, options?: SearchOptions) => Effect.Effect<ReadonlyArray<GrepMatch>, GrepError>
  /**
   * The whole tree as the bytes of a ZIP archive, which any backend can restore. An entry that no import would take, such as a link that
   * leads out, is left out with a warning in the log; `Snapshots` keeps those too. Fails with ArchiveError `tooLarge`.
   */
  readonly snapshot: Effect.Effect<Uint8Array, ArchiveError | FsError>
  /**
   * Makes the tree what the bytes of a ZIP archive say, whoever made it; what is not in it goes. It is checked whole before: what fails
   * has changed nothing. Fails with ArchiveError, and with AccessDenied `readOnly` unless both writing and deleting are permitted.
   */
  readonly restore: (data: Uint8Array) => Effect.Effect<void, ArchiveError | FsError>
}

/**
 * The service of the eight methods.
 *
 * @since 0.1.0
 */
export class FileStore extends Context.Service<FileStore, Operations>()("fs-algebra/FileStore") {}

const boundless = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.flatMap(Limits, ({ maxArchiveBytes, maxArchiveEntries, patternBudget }) =>
    Effect.provideService(effect, Limits, { ...unlimited, maxArchiveBytes, maxArchiveEntries, patternBudget })
  )

const everyLine = -1

const entryOf = ({ isFile, kind, path, sizeBytes }: GlobMatch): FileEntry => ({
  name: FsPath.name(path),
  path,
  kind,
  isFile,
  isDirectory: kind === "directory",
  ...(sizeBytes === undefined ? undefined : { sizeBytes }),
  addressable: true
})

/** What is no bytes fails as late as bytes that are no archive. */
const restoreOf = (fs: Algebra, data: Uint8Array): Effect.Effect<number, ArchiveError | FsError> =>
  isBytes(data)
    ? importBytesOf(fs, data)
    : importZipOf(fs, Stream.fail(new ArchiveError({ reason: "corrupt", detail: "it is no Uint8Array" })))

/**
 * The store that a Filesystem is.
 *
 * @since 0.1.0
 */
export const make = (fs: Algebra): Operations => ({
  read: (path, options) => boundless(fs.read(path, { offset: options?.offset, limit: options?.limit ?? everyLine })),
  write: (path, content) => boundless(Effect.map(fs.write(path, content), ({ bytesWritten }) => bytesWritten)),
  delete: (path) => boundless(Effect.map(fs.delete(path, { recursive: true, missing: "ignore" }), ({ deleted }) => deleted)),
  list: (path) => boundless(Effect.catchTag(fs.list(path), "NotFound", () => Effect.succeed([]))),
  glob: (pattern) => boundless(Effect.map(fs.glob(pattern, { sizes: true }), ({ matches }) => matches.map(entryOf))),
  grep: (pattern, options) => boundless(Stream.runCollect(fs.grepStream(pattern, { glob: options?.fileGlob }))),
  snapshot: boundless(exportBytesOf(fs)),
  restore: (data) => boundless(Effect.asVoid(restoreOf(fs, data)))
})

/**
 * The facade over the filesystem in force.
 *
 * @since 0.1.0
 */
export const layer: Layer.Layer<FileStore, never, Filesystem> = Layer.effect(FileStore, Effect.map(Filesystem, make))
