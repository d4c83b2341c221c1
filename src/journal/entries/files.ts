import * as Schema from "effect/Schema"
import { FileEntry, FileStat as Stat } from "../../model/Entry.ts"
import { FsError } from "../../model/FsError.ts"

/**
 * A reference to a content by its hash.
 *
 * @since 0.1.0
 */
export interface ContentRef {
  /** The SHA-256 of the bytes, in hexadecimal. */
  readonly sha256: string
  /** The size in bytes. */
  readonly size: number
}
/** @since 0.1.0 */
export const ContentRef = Schema.Struct({
  sha256: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/)),
  size: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
})

/**
 * Bytes, or a reference to them. A journal stores a content above 4 KiB by its hash. The JSON form is base64 or the reference.
 *
 * @since 0.1.0
 */
export type Content = Uint8Array | ContentRef
/** @since 0.1.0 */
export const Content = Schema.Union([Schema.Uint8Array, ContentRef])

const nonNegativeInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
/**
 * The treatment of symbolic links, for a branch that follows links itself. With `refuse`, a path that is a link, or leads
 * through a link, fails with AccessDenied `link`. Only a delete and a move accept a link as their last component. With
 * `leave`, each link is an entry of its own, and a path through a link is missing.
 */
const links = { links: Schema.optionalKey(Schema.Literals(["refuse", "leave"])) }

const requestFields = { correlationId: Schema.String, path: Schema.String, ...links }
const answerFields = { correlationId: Schema.String }

/**
 * The modes of a write, for an existing and for a missing file. The keys are longer names for the write modes of `Filesystem`.
 *
 * @since 0.1.0
 */
export const CreateMode = {
  /** Creates the file. Fails with AlreadyExists if the file exists. */
  CreateNew: "create",
  /** Replaces the file, or creates it. */
  CreateOrReplace: "overwrite",
  /** Appends to the file, or creates it. */
  CreateOrAppend: "append",
  /** Replaces the file. Fails with NotFound if the file is missing. */
  ReplaceExisting: "replace",
  /** Appends to the file. Fails with NotFound if the file is missing. */
  AppendExisting: "appendExisting"
} as const
/** @since 0.1.0 */
export type CreateMode = (typeof CreateMode)[keyof typeof CreateMode]

const createMode = Schema.Literals(["create", "overwrite", "append", "replace", "appendExisting"])

/** The options of a write with `extended`. See `WriteOptions` of Filesystem. */
const writeFields = {
  /**
   * The required version of the existing file. If the version differs, the write fails with Conflict. `null` requires that no
   * file exists.
   */
  ifMatch: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** @default true */
  createParents: Schema.optionalKey(Schema.Boolean),
  /** True if the answer includes the version. @default false */
  version: Schema.optionalKey(Schema.Boolean)
}

/**
 * A request for the content of a file, or for a range of the content.
 *
 * @since 0.1.0
 */
export class FileRead extends Schema.TaggedClass<FileRead>("fs-algebra/FileRead")("FileRead", {
  ...requestFields,
  /** The offset in bytes. @default 0 */
  offset: Schema.optionalKey(nonNegativeInt),
  /** The length in bytes. @default up to the end of the file */
  length: Schema.optionalKey(nonNegativeInt)
}) {}

/**
 * A request to write a file.
 *
 * @since 0.1.0
 */
export class FileWrite extends Schema.TaggedClass<FileWrite>("fs-algebra/FileWrite")("FileWrite", {
  ...requestFields,
  content: Content,
  createMode,
  ...writeFields
}) {}

/**
 * A part of a content that is too large for one entry. All parts of one write have the same correlation id. The part at offset
 * 0 has `path` and `createMode`. The file changes only after the last part has been written.
 *
 * @since 0.1.0
 */
export class FileWriteChunk extends Schema.TaggedClass<FileWriteChunk>("fs-algebra/FileWriteChunk")("FileWriteChunk", {
  correlationId: Schema.String,
  offset: nonNegativeInt,
  data: Content,
  isFinal: Schema.Boolean,
  /** The path of the file. The part at offset 0 must have this field. */
  path: Schema.optionalKey(Schema.String),
  /** The treatment of an existing file. Counts only in the part at offset 0. @default "overwrite" */
  createMode: Schema.optionalKey(createMode),
  ...writeFields,
  /** The treatment of links. Counts only in the part at offset 0. */
  ...links,
  /** True to cancel the write. If so, the leaf discards the parts of the write, and sends no answer. */
  discard: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * A request for the entries of a directory.
 *
 * @since 0.1.0
 */
export class FileList extends Schema.TaggedClass<FileList>("fs-algebra/FileList")("FileList", {
  ...requestFields,
  /** A glob relative to the path, with the syntax of `Filesystem.glob`. */
  pattern: Schema.optionalKey(Schema.String),
  /** True to list all entries below the directory, with paths relative to `path`. @default false */
  recursive: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * A request to delete an entry.
 *
 * @since 0.1.0
 */
export class FileDelete extends Schema.TaggedClass<FileDelete>("fs-algebra/FileDelete")("FileDelete", {
  ...requestFields,
  /** @default false */
  recursive: Schema.optionalKey(Schema.Boolean),
  ifMatch: Schema.optionalKey(Schema.NullOr(Schema.String))
}) {}

/**
 * A request for the metadata of a path. `Entry.FileStat` is another type, the result of `Filesystem.stat`.
 *
 * @since 0.1.0
 */
export class FileStat extends Schema.TaggedClass<FileStat>("fs-algebra/FileStat")("FileStat", {
  ...requestFields,
  /**
   * If true, the answer also contains the metadata of each component of the path, even if the path is missing. Requires `links:
   * "leave"`.
   * @default false
   */
  way: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * The answer with the content of a file in one entry.
 *
 * @since 0.1.0
 */
export class FileContent extends Schema.TaggedClass<FileContent>("fs-algebra/FileContent")("FileContent", {
  ...answerFields,
  content: Content,
  /** The size of the whole file in bytes. */
  totalSize: nonNegativeInt,
  isPartial: Schema.Boolean,
  /** The metadata of the file at the time of the read. */
  stat: Schema.optionalKey(Stat)
}) {}

/**
 * The answer with one chunk of the content of a file.
 *
 * @since 0.1.0
 */
export class FileContentChunk extends Schema.TaggedClass<FileContentChunk>("fs-algebra/FileContentChunk")("FileContentChunk", {
  ...answerFields,
  /** The offset in the file, in bytes. */
  offset: nonNegativeInt,
  data: Content,
  isFinal: Schema.Boolean,
  /** The metadata of the file. Only the first chunk has this field. */
  stat: Schema.optionalKey(Stat)
}) {}

/**
 * The answer to a write.
 *
 * @since 0.1.0
 */
export class FileWritten extends Schema.TaggedClass<FileWritten>("fs-algebra/FileWritten")("FileWritten", {
  ...answerFields,
  path: Schema.String,
  bytesWritten: nonNegativeInt,
  stat: Schema.optionalKey(Stat),
  version: Schema.optionalKey(Schema.String),
  /** The previous content of the file, if it was recorded. `null` if there was no file. */
  previous: Schema.optionalKey(Schema.NullOr(Content))
}) {}

/**
 * The answer with the entries of a directory.
 *
 * @since 0.1.0
 */
export class FileListing extends Schema.TaggedClass<FileListing>("fs-algebra/FileListing")("FileListing", {
  ...answerFields,
  /** The entries in path order. Paths are relative to the listed directory. */
  entries: Schema.Array(FileEntry)
}) {}

/**
 * A removed entry, with the data to restore it.
 *
 * @since 0.1.0
 */
export interface Removed {
  /** The path from the root. */
  readonly path: string
  readonly kind: "file" | "directory" | "symlink" | "other"
  readonly content?: Content
  readonly target?: string
  /** POSIX permission bits. */
  readonly mode?: number
}
/** @since 0.1.0 */
export const Removed = Schema.Struct({
  path: Schema.String,
  kind: Schema.Literals(["file", "directory", "symlink", "other"]),
  content: Schema.optionalKey(Content),
  target: Schema.optionalKey(Schema.String),
  mode: Schema.optionalKey(Schema.Int)
})

/**
 * The answer to a delete.
 *
 * @since 0.1.0
 */
export class FileDeleted extends Schema.TaggedClass<FileDeleted>("fs-algebra/FileDeleted")("FileDeleted", {
  ...answerFields,
  path: Schema.String,
  /** The number of removed entries that are not directories; 1 if only directories were removed. */
  deletedCount: nonNegativeInt,
  directories: Schema.optionalKey(nonNegativeInt),
  /** The removed entries, parents first, if they were recorded. */
  removed: Schema.optionalKey(Schema.Array(Removed))
}) {}

const metadata = {
  /** The size in bytes; 0 for a directory. */
  size: nonNegativeInt,
  modified: Schema.optionalKey(Schema.DateTimeUtc),
  created: Schema.optionalKey(Schema.DateTimeUtc),
  isDirectory: Schema.Boolean,
  /** The POSIX permission bits, if the filesystem has them. */
  permissions: Schema.optionalKey(Schema.Int),
  isSymlink: Schema.optionalKey(Schema.Boolean),
  kind: Schema.optionalKey(Schema.Literals(["file", "directory", "symlink", "other"])),
  /** The target text of a link, if the request had `links: "leave"`. */
  target: Schema.optionalKey(Schema.String),
  /** The relative form of `target`, if `target` is an absolute path below the root of the leaf. @default `target` itself */
  relativeTarget: Schema.optionalKey(Schema.String),
  /** True if the link may be read but not followed. @default false */
  noFollow: Schema.optionalKey(Schema.Boolean)
}

/**
 * The answer with the metadata of a path.
 *
 * @since 0.1.0
 */
export class FileMetadata extends Schema.TaggedClass<FileMetadata>("fs-algebra/FileMetadata")("FileMetadata", {
  ...answerFields,
  ...metadata,
  /** The metadata of the components of the path, from the root to the first component that is not a directory. */
  way: Schema.optionalKey(Schema.Array(Schema.Struct(metadata)))
}) {}

/**
 * The kinds of fault in an answer.
 *
 * @since 0.1.0
 */
export const FaultKind = Schema.Literals([
  "NotFound",
  "AlreadyExists",
  "AccessDenied",
  "InvalidPath",
  "DirectoryNotEmpty",
  "NotADirectory",
  "NotAFile",
  "DiskFull",
  "IoError",
  "PathTooLong",
  "Timeout"
])
/** @since 0.1.0 */
export type FaultKind = typeof FaultKind.Type

/**
 * The answer to a failed operation.
 *
 * @since 0.1.0
 */
export class FileFault extends Schema.TaggedClass<FileFault>("fs-algebra/FileFault")("FileFault", {
  ...answerFields,
  faultKind: FaultKind,
  path: Schema.String,
  message: Schema.String,
  /** The complete error, because the eleven kinds cannot express every backend error. */
  error: Schema.optionalKey(FsError)
}) {}

/**
 * A request to create a directory.
 *
 * @since 0.1.0
 */
export class FileMakeDirectory extends Schema.TaggedClass<FileMakeDirectory>("fs-algebra/FileMakeDirectory")(
  "FileMakeDirectory",
  {
    ...requestFields,
    /** @default true */
    parents: Schema.optionalKey(Schema.Boolean),
    /** @default true */
    existOk: Schema.optionalKey(Schema.Boolean)
  }
) {}

/**
 * The answer to a request to create a directory.
 *
 * @since 0.1.0
 */
export class FileDirectoryMade extends Schema.TaggedClass<FileDirectoryMade>("fs-algebra/FileDirectoryMade")(
  "FileDirectoryMade",
  { ...answerFields, path: Schema.String }
) {}

/**
 * A request to move an entry.
 *
 * @since 0.1.0
 */
export class FileMove extends Schema.TaggedClass<FileMove>("fs-algebra/FileMove")("FileMove", {
  ...requestFields,
  to: Schema.String,
  /** @default false */
  overwrite: Schema.optionalKey(Schema.Boolean),
  /** @default true */
  createParents: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * The answer to a move.
 *
 * @since 0.1.0
 */
export class FileMoved extends Schema.TaggedClass<FileMoved>("fs-algebra/FileMoved")("FileMoved", {
  ...answerFields,
  path: Schema.String,
  to: Schema.String,
  files: nonNegativeInt,
  directories: nonNegativeInt,
  bytes: nonNegativeInt,
  /** The entry that was replaced at `to`, if it was recorded. */
  replaced: Schema.optionalKey(Removed)
}) {}

/**
 * One replacement in a text, as in `Filesystem.edit`.
 *
 * @since 0.1.0
 */
export const Edit = Schema.Struct({
  oldText: Schema.String,
  newText: Schema.String,
  match: Schema.optionalKey(Schema.Literals(["unique", "first", "all"]))
})

/**
 * A request to edit a text file.
 *
 * @since 0.1.0
 */
export class FileEdit extends Schema.TaggedClass<FileEdit>("fs-algebra/FileEdit")("FileEdit", {
  ...requestFields,
  edits: Schema.Array(Edit),
  ifMatch: Schema.optionalKey(Schema.NullOr(Schema.String)),
  version: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * The answer to an edit.
 *
 * @since 0.1.0
 */
export class FileEdited extends Schema.TaggedClass<FileEdited>("fs-algebra/FileEdited")("FileEdited", {
  ...answerFields,
  path: Schema.String,
  bytesWritten: nonNegativeInt,
  replacements: nonNegativeInt,
  diff: Schema.String,
  version: Schema.optionalKey(Schema.String)
}) {}

/**
 * A request to create a symbolic link.
 *
 * @since 0.1.0
 */
export class FileMakeLink extends Schema.TaggedClass<FileMakeLink>("fs-algebra/FileMakeLink")("FileMakeLink", {
  ...requestFields,
  target: Schema.String
}) {}

/**
 * The answer to a request to create a symbolic link.
 *
 * @since 0.1.0
 */
export class FileLinkMade extends Schema.TaggedClass<FileLinkMade>("fs-algebra/FileLinkMade")("FileLinkMade", {
  ...answerFields,
  path: Schema.String
}) {}

/**
 * A request to set permission bits, the modification time, or both.
 *
 * @since 0.1.0
 */
export class FileSetAttributes extends Schema.TaggedClass<FileSetAttributes>("fs-algebra/FileSetAttributes")(
  "FileSetAttributes",
  {
    ...requestFields,
    /** POSIX permission bits. */
    mode: Schema.optionalKey(Schema.Int),
    modified: Schema.optionalKey(Schema.DateTimeUtc),
    /**
     * True if the permission bits are copied from the original of a copy. A leaf sets these bits only with
     * `preservePermissions`.
     * @default false
     */
    isCopy: Schema.optionalKey(Schema.Boolean)
  }
) {}

/**
 * The answer to a request to set attributes.
 *
 * @since 0.1.0
 */
export class FileAttributesSet extends Schema.TaggedClass<FileAttributesSet>("fs-algebra/FileAttributesSet")(
  "FileAttributesSet",
  {
    ...answerFields,
    path: Schema.String,
    /** True if the permission bits of a copy were not set, because the leaf does not preserve permissions. @default false */
    skippedMode: Schema.optionalKey(Schema.Boolean),
    /** The previous attributes, if they were recorded. */
    previous: Schema.optionalKey(
      Schema.Struct({ mode: Schema.optionalKey(Schema.Int), modified: Schema.optionalKey(Schema.DateTimeUtc) })
    )
  }
) {}

/**
 * The notice that a leaf has begun a change. If the leaf is killed, its successor compares the recorded state with the files
 * to decide whether the change was made.
 *
 * @since 0.1.0
 */
export class FileStarted extends Schema.TaggedClass<FileStarted>("fs-algebra/FileStarted")("FileStarted", {
  ...answerFields,
  /** The run id of the leaf. */
  instance: Schema.String,
  /** The size of the entry at the path before the change, in bytes. `null` if there was no entry. Absent if the size is unknown. */
  size: Schema.optionalKey(Schema.NullOr(nonNegativeInt)),
  /** The version of the file after the change, if the leaf knows this version in advance. */
  after: Schema.optionalKey(Schema.String),
  /** The counts that the answer to a delete will contain. */
  removes: Schema.optionalKey(Schema.Struct({ deleted: nonNegativeInt, directories: nonNegativeInt })),
  /** The result that the answer to an edit will contain. */
  edits: Schema.optionalKey(Schema.Struct({ bytesWritten: nonNegativeInt, replacements: nonNegativeInt, diff: Schema.String }))
}) {}

const basicEntries = [
  FileRead,
  FileContent,
  FileContentChunk,
  FileWrite,
  FileWriteChunk,
  FileWritten,
  FileList,
  FileListing,
  FileDelete,
  FileDeleted,
  FileStat,
  FileMetadata,
  FileFault
] as const

const extendedEntries = [
  FileMakeDirectory,
  FileDirectoryMade,
  FileMove,
  FileMoved,
  FileEdit,
  FileEdited,
  FileMakeLink,
  FileLinkMade,
  FileSetAttributes,
  FileAttributesSet,
  FileStarted
] as const

/**
 * The thirteen basic kinds of entry.
 *
 * @since 0.1.0
 */
export const Thirteen = Schema.Union(basicEntries)
/** @since 0.1.0 */
export type Thirteen = typeof Thirteen.Type

/**
 * The kinds of entry beyond the thirteen. Branches and leaves use these kinds only with `extended: true`.
 *
 * @since 0.1.0
 */
export const Extended = Schema.Union(extendedEntries)
/** @since 0.1.0 */
export type Extended = typeof Extended.Type

/**
 * A request, an answer, or the notice FileStarted.
 *
 * @category schemas
 * @since 0.1.0
 */
export const FileSystemEntry = Schema.Union([...basicEntries, ...extendedEntries])
/** @since 0.1.0 */
export type FileSystemEntry = Thirteen | Extended

/**
 * An entry that requests an operation.
 *
 * @since 0.1.0
 */
export type Efferent =
  | FileRead
  | FileWrite
  | FileWriteChunk
  | FileList
  | FileDelete
  | FileStat
  | FileMakeDirectory
  | FileMove
  | FileEdit
  | FileMakeLink
  | FileSetAttributes
/**
 * An answer to a request, or the notice FileStarted.
 *
 * @since 0.1.0
 */
export type Afferent = Exclude<FileSystemEntry, Efferent>
/**
 * An entry that can end an answer. A FileContentChunk ends an answer only if it is final.
 *
 * @since 0.1.0
 */
export type Terminal = Exclude<Afferent, FileStarted>
