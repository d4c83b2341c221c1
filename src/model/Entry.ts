/**
 * The results of operations: plain records, because operations create hundreds of thousands of them.
 *
 * Each record has a companion Schema of the same name for encoding.
 *
 * @since 0.1.0
 */
import type * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import { FsPath } from "./FsPath.ts"

/** @since 0.1.0 */
export const Kind = Schema.Literals(["file", "directory", "symlink", "other"])
/**
 * The kind of an entry. `other` is a FIFO, a socket or a device: it can be listed, moved and deleted, but never read or
 * written.
 *
 * @since 0.1.0
 */
export type Kind = "file" | "directory" | "symlink" | "other"

/**
 * The metadata of one path: kind, size in bytes, times.
 *
 * @example
 * ```ts
 * const { createdAt, modifiedAt, ...stat } = yield* fs.stat("src/main.ts")
 * yield* Schema.encodeEffect(Entry.FileStat)(stat) // => stat
 * ```
 * @category models
 * @since 0.1.0
 */
export interface FileStat {
  readonly path: FsPath
  readonly kind: Kind
  readonly isFile: boolean
  readonly isDirectory: boolean
  /** Bytes; 0 for a directory. */
  readonly sizeBytes: number
  readonly createdAt?: DateTime.Utc
  readonly modifiedAt?: DateTime.Utc
  /** POSIX permission bits; absent on backends without them. */
  readonly mode?: number
  /**
   * True if the name is a symlink. With `symlinks: "report"` the kind is "symlink"; otherwise the other fields describe the
   * target.
   */
  readonly isSymlink?: boolean
}
/** @since 0.1.0 */
export const FileStat = Schema.Struct({
  path: FsPath,
  kind: Kind,
  isFile: Schema.Boolean,
  isDirectory: Schema.Boolean,
  sizeBytes: Schema.Int,
  createdAt: Schema.optionalKey(Schema.DateTimeUtc),
  modifiedAt: Schema.optionalKey(Schema.DateTimeUtc),
  mode: Schema.optionalKey(Schema.Int),
  isSymlink: Schema.optionalKey(Schema.Boolean)
})

/**
 * Returns a `FileStat` whose `isFile` and `isDirectory` follow from the kind.
 *
 * @example
 * ```ts
 * Entry.stat({ path: FsPath.root, kind: "directory", sizeBytes: 0 }).isDirectory // => true
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const stat = ({ kind, path, ...rest }: Omit<FileStat, "isFile" | "isDirectory">): FileStat => ({
  path,
  kind,
  isFile: kind === "file",
  isDirectory: kind === "directory",
  ...rest
})

/**
 * An entry of a listing or a walk.
 *
 * @since 0.1.0
 */
export interface FileEntry {
  readonly name: string
  readonly path: FsPath
  /** The kind of the entry itself: a symlink is "symlink", whatever it points to. */
  readonly kind: Kind
  readonly isFile: boolean
  readonly isDirectory: boolean
  /** Bytes; 0 for a directory. `list` always sets this field; `walk` and `glob` only with `sizes: true`. */
  readonly sizeBytes?: number
  /**
   * False for a name on disk that no path can express (control characters, bytes that are not UTF-8); `name` is then
   * escaped.
   */
  readonly addressable: boolean
}
/** @since 0.1.0 */
export const FileEntry = Schema.Struct({
  name: Schema.String,
  // The path of an escaped name does not parse.
  path: Schema.String as unknown as Schema.Codec<FsPath, string>,
  kind: Kind,
  isFile: Schema.Boolean,
  isDirectory: Schema.Boolean,
  sizeBytes: Schema.optionalKey(Schema.Int),
  addressable: Schema.Boolean
})

/**
 * A window of lines of a text file.
 *
 * @since 0.1.0
 */
export interface ReadResult {
  readonly path: FsPath
  /** The lines of the window, joined with the file's own terminators, without the terminator of the last line. */
  readonly content: string
  readonly totalLines: number
  /** The 0-based line at which the window starts. */
  readonly offset: number
  /** The number of lines in this window. */
  readonly limit: number
  /** True if lines follow after this window. */
  readonly truncated: boolean
  /** The line at which the next page starts; absent on the last page. */
  readonly next?: number
  readonly endsWithNewline: boolean
  /** The SHA-256 of the whole file, in hex. */
  readonly version?: string
}
/** @since 0.1.0 */
export const ReadResult = Schema.Struct({
  path: FsPath,
  content: Schema.String,
  totalLines: Schema.Int,
  offset: Schema.Int,
  limit: Schema.Int,
  truncated: Schema.Boolean,
  next: Schema.optionalKey(Schema.Int),
  endsWithNewline: Schema.Boolean,
  version: Schema.optionalKey(Schema.String)
})

/**
 * A window of bytes of a file.
 *
 * @since 0.1.0
 */
export interface ReadBytesResult {
  readonly path: FsPath
  readonly content: Uint8Array
  /** The size of the whole file in bytes. */
  readonly sizeBytes: number
  /** The 0-based byte at which the window starts. */
  readonly offset: number
  /** The number of bytes in this window. */
  readonly limit: number
  readonly truncated: boolean
  readonly version?: string
}
/** @since 0.1.0 */
export const ReadBytesResult = Schema.Struct({
  path: FsPath,
  content: Schema.Uint8Array,
  sizeBytes: Schema.Int,
  offset: Schema.Int,
  limit: Schema.Int,
  truncated: Schema.Boolean,
  version: Schema.optionalKey(Schema.String)
})

/** @since 0.1.0 */
export const WriteMode = Schema.Literals(["create", "overwrite", "append", "replace", "appendExisting"])
/**
 * The mode of a write: CreateNew, CreateOrReplace, CreateOrAppend, ReplaceExisting, AppendExisting, in the order of the
 * literals.
 *
 * @since 0.1.0
 */
export type WriteMode = "create" | "overwrite" | "append" | "replace" | "appendExisting"

/**
 * The result of a write.
 *
 * @since 0.1.0
 */
export interface WriteResult {
  readonly path: FsPath
  /** Bytes that this write added, not the size of the file. */
  readonly bytesWritten: number
  readonly mode: WriteMode
  /**
   * The SHA-256 of the file after this write, in hex; present with `version: true`. The value is equal on every
   * backend.
   */
  readonly version?: string
}
/** @since 0.1.0 */
export const WriteResult = Schema.Struct({
  path: FsPath,
  bytesWritten: Schema.Int,
  mode: WriteMode,
  version: Schema.optionalKey(Schema.String)
})

/**
 * The result of an edit, or of a dry run of one.
 *
 * @since 0.1.0
 */
export interface EditResult extends WriteResult {
  readonly replacements: number
  /** A unified diff with three lines of context. */
  readonly diff: string
}
/** @since 0.1.0 */
export const EditResult = Schema.Struct({
  path: FsPath,
  bytesWritten: Schema.Int,
  mode: WriteMode,
  version: Schema.optionalKey(Schema.String),
  replacements: Schema.Int,
  diff: Schema.String
})

/**
 * The counts of a copy or a move.
 *
 * @since 0.1.0
 */
export interface TransferResult {
  /** The number of files, symlinks and entries of kind `other`. */
  readonly files: number
  readonly directories: number
  readonly bytes: number
}
/** @since 0.1.0 */
export const TransferResult = Schema.Struct({ files: Schema.Int, directories: Schema.Int, bytes: Schema.Int })

/**
 * The counts of a delete.
 *
 * @since 0.1.0
 */
export interface DeleteResult {
  /** The number of files, symlinks and entries of kind `other` removed; at least 1 if anything was removed. */
  readonly deleted: number
  readonly directories: number
}
/** @since 0.1.0 */
export const DeleteResult = Schema.Struct({ deleted: Schema.Int, directories: Schema.Int })

/**
 * A path that matches a glob.
 *
 * @since 0.1.0
 */
export interface GlobMatch {
  readonly path: FsPath
  readonly kind: Kind
  readonly isFile: boolean
  readonly sizeBytes?: number
}
/** @since 0.1.0 */
export const GlobMatch = Schema.Struct({
  path: FsPath,
  kind: Kind,
  isFile: Schema.Boolean,
  sizeBytes: Schema.optionalKey(Schema.Int)
})

/**
 * The counts of entries that a search skipped, so that a caller can trust an empty result.
 *
 * The counts cover the paths up to the last returned one, in order.
 *
 * @since 0.1.0
 */
export interface Skipped {
  readonly ignored: number
  readonly binary: number
  readonly tooLarge: number
  /** The number of unreadable entries; `unreadablePaths` names at most 100 of them. */
  readonly unreadable: number
  readonly unreadablePaths: ReadonlyArray<FsPath>
}
/** @since 0.1.0 */
export const Skipped = Schema.Struct({
  ignored: Schema.Int,
  binary: Schema.Int,
  tooLarge: Schema.Int,
  unreadable: Schema.Int,
  unreadablePaths: Schema.Array(FileEntry.fields.path)
})

/**
 * A change of an entry below a watched directory.
 *
 * @since 0.1.0
 */
export interface WatchEvent {
  readonly _tag: "Created" | "Updated" | "Removed"
  readonly path: FsPath
}
/** @since 0.1.0 */
export const WatchEvent = Schema.Struct({ _tag: Schema.Literals(["Created", "Updated", "Removed"]), path: FsPath })

/**
 * The matches of a glob, with a cursor if there are more, and the counts of skipped entries.
 *
 * @since 0.1.0
 */
export interface GlobResult {
  readonly matches: ReadonlyArray<GlobMatch>
  readonly truncated: boolean
  /** The cursor of the next page: pass it as `after`. */
  readonly next?: string
  readonly skipped: Skipped
}
/** @since 0.1.0 */
export const GlobResult = Schema.Struct({
  matches: Schema.Array(GlobMatch),
  truncated: Schema.Boolean,
  next: Schema.optionalKey(Schema.String),
  skipped: Skipped
})

/**
 * A line that matches a search, with the columns of its first match.
 *
 * @since 0.1.0
 */
export interface GrepMatch {
  readonly path: FsPath
  /** The 1-based line number. */
  readonly lineNumber: number
  /** The line without its terminator. */
  readonly lineContent: string
  /** UTF-16 columns of the first match: `lineContent.slice(matchStart, matchEnd)`. */
  readonly matchStart: number
  readonly matchEnd: number
  readonly before?: ReadonlyArray<string>
  readonly after?: ReadonlyArray<string>
}
/** @since 0.1.0 */
export const GrepMatch = Schema.Struct({
  path: FsPath,
  lineNumber: Schema.Int,
  lineContent: Schema.String,
  matchStart: Schema.Int,
  matchEnd: Schema.Int,
  before: Schema.optionalKey(Schema.Array(Schema.String)),
  after: Schema.optionalKey(Schema.Array(Schema.String))
})

/**
 * The matches of a search, with a cursor if there are more, and the counts of skipped files.
 *
 * @since 0.1.0
 */
export interface GrepResult {
  /** Sorted by path, then by line number. */
  readonly matches: ReadonlyArray<GrepMatch>
  readonly filesSearched: number
  readonly filesMatched: number
  readonly truncated: boolean
  readonly next?: string
  readonly skipped: Skipped
}
/** @since 0.1.0 */
export const GrepResult = Schema.Struct({
  matches: Schema.Array(GrepMatch),
  filesSearched: Schema.Int,
  filesMatched: Schema.Int,
  truncated: Schema.Boolean,
  next: Schema.optionalKey(Schema.String),
  skipped: Skipped
})
