/**
 * What operations answer: plain records, because they are made by the hundred thousand, each with a companion Schema of the same
 * name for where they have to be encoded.
 *
 * @since 0.1.0
 */
import type * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import { FsPath } from "./FsPath.ts"

/** @since 0.1.0 */
export const Kind = Schema.Literals(["file", "directory", "symlink", "other"])
/**
 * `other` is a FIFO, a socket or a device: it can be listed, moved and deleted, never read or written.
 *
 * @since 0.1.0
 */
export type Kind = "file" | "directory" | "symlink" | "other"

/**
 * What is at one path: its kind, its size in bytes, its times.
 *
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
  /** POSIX permission bits where the backend has them. */
  readonly mode?: number
  /** The name is a link: with `symlinks: "report"` kind is "symlink", otherwise the rest describes its target. */
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
 * One entry of a listing or a walk.
 *
 * @since 0.1.0
 */
export interface FileEntry {
  readonly name: string
  readonly path: FsPath
  /** The entry's own kind: a link is "symlink", whatever it points to. */
  readonly kind: Kind
  readonly isFile: boolean
  readonly isDirectory: boolean
  /** Bytes, 0 for a directory. In `list` always; in `walk` and `glob` only with `sizes: true`. */
  readonly sizeBytes?: number
  /** False for a name on disk that no path can express (control characters, bytes that are not UTF-8); `name` is then escaped. */
  readonly addressable: boolean
}
/** @since 0.1.0 */
export const FileEntry = Schema.Struct({
  name: Schema.String,
  // An escaped name is not a path that could be parsed again.
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
  /** The window's lines joined as they stand in the file, without the last line's terminator. */
  readonly content: string
  readonly totalLines: number
  /** 0-based line at which the window starts. */
  readonly offset: number
  /** Lines in this window. */
  readonly limit: number
  /** There are lines after this window. */
  readonly truncated: boolean
  /** Where the next page starts; absent on the last. */
  readonly next?: number
  readonly endsWithNewline: boolean
  /** SHA-256 of the whole file, in hex. */
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
  /** Bytes of the whole file. */
  readonly sizeBytes: number
  /** 0-based byte at which the window starts. */
  readonly offset: number
  /** Bytes in this window. */
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
 * CreateNew, CreateOrReplace, CreateOrAppend, ReplaceExisting, AppendExisting, in that order.
 *
 * @since 0.1.0
 */
export type WriteMode = "create" | "overwrite" | "append" | "replace" | "appendExisting"

/**
 * What a write has left: the path as it was understood, and how much was written.
 *
 * @since 0.1.0
 */
export interface WriteResult {
  readonly path: FsPath
  /** Bytes of this write, not of the file. */
  readonly bytesWritten: number
  readonly mode: WriteMode
  /** With `version: true`: the SHA-256 of the file's bytes after this write, in hex, equal on every backend. */
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
 * What an edit has changed, or would change.
 *
 * @since 0.1.0
 */
export interface EditResult extends WriteResult {
  readonly replacements: number
  /** Unified diff, three lines of context. */
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
 * What a copy or a move has brought over.
 *
 * @since 0.1.0
 */
export interface TransferResult {
  /** Files, links and others. */
  readonly files: number
  readonly directories: number
  readonly bytes: number
}
/** @since 0.1.0 */
export const TransferResult = Schema.Struct({ files: Schema.Int, directories: Schema.Int, bytes: Schema.Int })

/**
 * How much a delete has removed.
 *
 * @since 0.1.0
 */
export interface DeleteResult {
  /** Files, links and others removed; at least 1 when anything was removed. */
  readonly deleted: number
  readonly directories: number
}
/** @since 0.1.0 */
export const DeleteResult = Schema.Struct({ deleted: Schema.Int, directories: Schema.Int })

/**
 * A path that a glob has found.
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
 * What a search looked past, so that "nothing found" can be believed. Counts reach to the last answered path, in order.
 *
 * @since 0.1.0
 */
export interface Skipped {
  readonly ignored: number
  readonly binary: number
  readonly tooLarge: number
  /** At most 100 are named in `unreadablePaths`. */
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
 * Something below a watched directory has been made, changed or removed.
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
 * What a glob has found, whether that is all, and what was left out on the way.
 *
 * @since 0.1.0
 */
export interface GlobResult {
  readonly matches: ReadonlyArray<GlobMatch>
  readonly truncated: boolean
  /** Give it as `after` to continue. */
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
 * A line that a search has found, with the columns of its first match.
 *
 * @since 0.1.0
 */
export interface GrepMatch {
  readonly path: FsPath
  /** 1-based. */
  readonly lineNumber: number
  /** Without its terminator. */
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
 * What a search has found, whether that is all, and what was left out on the way.
 *
 * @since 0.1.0
 */
export interface GrepResult {
  /** Sorted by (path, lineNumber). */
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
