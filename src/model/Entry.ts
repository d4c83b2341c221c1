/**
 * The results of operations. Results are plain records, because one operation can return hundreds of thousands of them.
 *
 * Each record has a companion Schema of the same name for encoding.
 *
 * @since 0.1.0
 */
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

/** @since 0.1.0 */
export const FileStat = Schema.Struct({
  path: FsPath,
  kind: Kind,
  isFile: Schema.Boolean,
  isDirectory: Schema.Boolean,
  /** The size in bytes; 0 for a directory. */
  sizeBytes: Schema.Int,
  createdAt: Schema.optionalKey(Schema.DateTimeUtc),
  modifiedAt: Schema.optionalKey(Schema.DateTimeUtc),
  /** The POSIX permission bits; absent on backends without permissions. */
  mode: Schema.optionalKey(Schema.Int),
  /**
   * True if the path itself is a symlink. With `symlinks: "report"` the kind is "symlink"; otherwise the other fields
   * describe the target.
   */
  isSymlink: Schema.optionalKey(Schema.Boolean),
  /**
   * Equal for two paths exactly if both paths lead to the same entry at this moment, for example through a hard link. The
   * format is not specified. Absent if the backend cannot identify entries, and in answers from a journal.
   */
  identity: Schema.optionalKey(Schema.String)
})
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
export interface FileStat extends Schema.Schema.Type<typeof FileStat> {}

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

/** @since 0.1.0 */
export const FileEntry = Schema.Struct({
  name: Schema.String,
  // An entry with an escaped name has no valid `FsPath`, so this schema accepts any string.
  path: Schema.String as unknown as Schema.Codec<FsPath, string>,
  /** The kind of the entry itself: a symlink is "symlink", whatever it points to. */
  kind: Kind,
  isFile: Schema.Boolean,
  isDirectory: Schema.Boolean,
  /**
   * The size in bytes; 0 for a directory. `list` always sets this field; `walk` sets it only with `sizes: true`.
   */
  sizeBytes: Schema.optionalKey(Schema.Int),
  /**
   * True if a path can express the name. Otherwise `name` is escaped, because the name on disk contains control
   * characters or bytes that are not UTF-8.
   */
  addressable: Schema.Boolean
})
/**
 * An entry of a listing or a walk.
 *
 * @since 0.1.0
 */
export interface FileEntry extends Schema.Schema.Type<typeof FileEntry> {}

/** @since 0.1.0 */
export const ReadResult = Schema.Struct({
  path: FsPath,
  /** The lines of the window, with the line terminators of the file. The last line has no terminator. */
  content: Schema.String,
  totalLines: Schema.Int,
  /** The 0-based line at which the window starts. */
  offset: Schema.Int,
  /** The number of lines in this window. */
  limit: Schema.Int,
  /** True if lines follow after this window. */
  truncated: Schema.Boolean,
  /** The 0-based line at which the next page starts; absent on the last page. */
  next: Schema.optionalKey(Schema.Int),
  endsWithNewline: Schema.Boolean,
  /** The SHA-256 of the whole file, in hex. */
  version: Schema.optionalKey(Schema.String)
})
/**
 * A window of lines of a text file.
 *
 * @since 0.1.0
 */
export interface ReadResult extends Schema.Schema.Type<typeof ReadResult> {}

/** @since 0.1.0 */
export const ReadBytesResult = Schema.Struct({
  path: FsPath,
  content: Schema.Uint8Array,
  /** The size of the whole file in bytes. */
  sizeBytes: Schema.Int,
  /** The 0-based byte at which the window starts. */
  offset: Schema.Int,
  /** The number of bytes in this window. */
  limit: Schema.Int,
  truncated: Schema.Boolean,
  version: Schema.optionalKey(Schema.String)
})
/**
 * A window of bytes of a file.
 *
 * @since 0.1.0
 */
export interface ReadBytesResult extends Schema.Schema.Type<typeof ReadBytesResult> {}

/** @since 0.1.0 */
export const WriteMode = Schema.Literals(["create", "overwrite", "append", "replace", "appendExisting"])
/**
 * The mode of a write.
 *
 * - `create`: creates a new file
 * - `overwrite`: creates a file or replaces its content
 * - `append`: creates a file or appends to it
 * - `replace`: replaces the content of an existing file
 * - `appendExisting`: appends to an existing file
 *
 * @since 0.1.0
 */
export type WriteMode = "create" | "overwrite" | "append" | "replace" | "appendExisting"

/** @since 0.1.0 */
export const WriteResult = Schema.Struct({
  path: FsPath,
  /** The size of the written content in bytes: for an append only the added bytes, for an edit the whole new file. */
  bytesWritten: Schema.Int,
  mode: WriteMode,
  /**
   * The SHA-256 of the file after this write, in hex; present with `version: true`. Equal content has the same version
   * on every backend.
   */
  version: Schema.optionalKey(Schema.String)
})
/**
 * The result of a write.
 *
 * @since 0.1.0
 */
export interface WriteResult extends Schema.Schema.Type<typeof WriteResult> {}

/** @since 0.1.0 */
export const EditResult = Schema.Struct({
  ...WriteResult.fields,
  replacements: Schema.Int,
  /** A unified diff with three lines of context. */
  diff: Schema.String
})
/**
 * The result of an edit or of its dry run.
 *
 * @since 0.1.0
 */
export interface EditResult extends Schema.Schema.Type<typeof EditResult> {}

/** @since 0.1.0 */
export const TransferResult = Schema.Struct({
  /** The number of files, symlinks and entries of kind `other`. */
  files: Schema.Int,
  directories: Schema.Int,
  bytes: Schema.Int
})
/**
 * The counts of a copy or a move.
 *
 * @since 0.1.0
 */
export interface TransferResult extends Schema.Schema.Type<typeof TransferResult> {}

/** @since 0.1.0 */
export const DeleteResult = Schema.Struct({
  /** The number of removed files, symlinks and entries of kind `other`; 1 if only directories were removed. */
  deleted: Schema.Int,
  directories: Schema.Int
})
/**
 * The counts of a delete.
 *
 * @since 0.1.0
 */
export interface DeleteResult extends Schema.Schema.Type<typeof DeleteResult> {}

/** @since 0.1.0 */
export const GlobMatch = Schema.Struct({
  path: FsPath,
  kind: Kind,
  isFile: Schema.Boolean,
  sizeBytes: Schema.optionalKey(Schema.Int)
})
/**
 * A path that matches a glob.
 *
 * @since 0.1.0
 */
export interface GlobMatch extends Schema.Schema.Type<typeof GlobMatch> {}

/** @since 0.1.0 */
export const Skipped = Schema.Struct({
  ignored: Schema.Int,
  binary: Schema.Int,
  tooLarge: Schema.Int,
  /** The number of unreadable entries; `unreadablePaths` names at most 100 of them. */
  unreadable: Schema.Int,
  unreadablePaths: Schema.Array(FileEntry.fields.path)
})
/**
 * The counts of entries that a search skipped, so that a caller can trust an empty result.
 *
 * The counts of a page begin after its cursor. If the result is truncated, the counts end at the last returned path.
 *
 * @since 0.1.0
 */
export interface Skipped extends Schema.Schema.Type<typeof Skipped> {}

/** @since 0.1.0 */
export const WatchEvent = Schema.Struct({
  _tag: Schema.Literals(["Created", "Updated", "Removed"]),
  path: FsPath
})
/**
 * A change of an entry below a watched directory.
 *
 * @since 0.1.0
 */
export interface WatchEvent extends Schema.Schema.Type<typeof WatchEvent> {}

/** @since 0.1.0 */
export const GlobResult = Schema.Struct({
  matches: Schema.Array(GlobMatch),
  truncated: Schema.Boolean,
  /** The cursor of the next page: pass it as `after`. */
  next: Schema.optionalKey(Schema.String),
  skipped: Skipped
})
/**
 * The matches of a glob, with a cursor if there are more, and the counts of skipped entries.
 *
 * @since 0.1.0
 */
export interface GlobResult extends Schema.Schema.Type<typeof GlobResult> {}

/** @since 0.1.0 */
export const GrepMatch = Schema.Struct({
  path: FsPath,
  /** The 1-based line number. */
  lineNumber: Schema.Int,
  /** The line without its terminator. */
  lineContent: Schema.String,
  /** The UTF-16 columns of the first match, which is `lineContent.slice(matchStart, matchEnd)`. */
  matchStart: Schema.Int,
  matchEnd: Schema.Int,
  before: Schema.optionalKey(Schema.Array(Schema.String)),
  after: Schema.optionalKey(Schema.Array(Schema.String))
})
/**
 * A line that matches a search, with the columns of its first match.
 *
 * @since 0.1.0
 */
export interface GrepMatch extends Schema.Schema.Type<typeof GrepMatch> {}

/** @since 0.1.0 */
export const GrepResult = Schema.Struct({
  /** The matches in path order, then by line number. */
  matches: Schema.Array(GrepMatch),
  filesSearched: Schema.Int,
  filesMatched: Schema.Int,
  truncated: Schema.Boolean,
  next: Schema.optionalKey(Schema.String),
  skipped: Skipped
})
/**
 * The matches of a search, with a cursor if there are more, and the counts of skipped files.
 *
 * @since 0.1.0
 */
export interface GrepResult extends Schema.Schema.Type<typeof GrepResult> {}
