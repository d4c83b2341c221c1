/** The kinds of entry, one class each. */
import * as Schema from "effect/Schema"
import { FileEntry, FileStat as Stat } from "../../model/Entry.ts"
import { FsError } from "../../model/FsError.ts"

/**
 * Content by its hash.
 *
 * @since 0.1.0
 */
export interface ContentRef {
  /** Of the bytes, in hex. */
  readonly sha256: string
  /** Bytes. */
  readonly size: number
}
/** @since 0.1.0 */
export const ContentRef = Schema.Struct({
  sha256: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/)),
  size: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
})

/**
 * Bytes, or where they are: a journal holds what is over 4 KiB by its hash. In JSON base64, or the reference.
 *
 * @since 0.1.0
 */
export type Content = Uint8Array | ContentRef
/** @since 0.1.0 */
export const Content = Schema.Union([Schema.Uint8Array, ContentRef])

const whole = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
/**
 * How symbolic links are taken, for a branch that follows them itself. `refuse`: AccessDenied `link` where the path leads through one or is
 * one, of a delete and a move only where it leads through one. `leave`: each link stands for itself, as at the port of a backend, and
 * nothing is found behind one.
 */
const links = { links: Schema.optionalKey(Schema.Literals(["refuse", "leave"])) }

const asked = { correlationId: Schema.String, path: Schema.String, ...links }
const answered = { correlationId: Schema.String }

/**
 * What a write does where something is, or nothing. The names of the seed on the left, the one union of modes of this library on the right.
 *
 * @since 0.1.0
 */
export const CreateMode = {
  /** Exists: AlreadyExists. Missing: made. */
  CreateNew: "create",
  /** Exists: replaced. Missing: made. */
  CreateOrReplace: "overwrite",
  /** Exists: added to. Missing: made. */
  CreateOrAppend: "append",
  /** Exists: replaced. Missing: NotFound. */
  ReplaceExisting: "replace",
  /** Exists: added to. Missing: NotFound. */
  AppendExisting: "appendExisting"
} as const
/** @since 0.1.0 */
export type CreateMode = (typeof CreateMode)[keyof typeof CreateMode]

const createMode = Schema.Literals(["create", "overwrite", "append", "replace", "appendExisting"])

/** What a write may be told beyond the thirteen: see `WriteOptions` of Filesystem. */
const writing = {
  /** Conflict unless this is the version of what is there; `null`: unless there is nothing. */
  ifMatch: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** @default true */
  createParents: Schema.optionalKey(Schema.Boolean),
  /** Answer the version too. @default false */
  version: Schema.optionalKey(Schema.Boolean)
}

// ── efferent ──

/**
 * Asks for the content of a file, or some of it.
 *
 * @since 0.1.0
 */
export class FileRead extends Schema.TaggedClass<FileRead>("fs-algebra/FileRead")("FileRead", {
  ...asked,
  /** Bytes. @default 0 */
  offset: Schema.optionalKey(whole),
  /** Bytes. @default to the end */
  length: Schema.optionalKey(whole)
}) {}

/**
 * Asks for a file to be written.
 *
 * @since 0.1.0
 */
export class FileWrite extends Schema.TaggedClass<FileWrite>("fs-algebra/FileWrite")("FileWrite", {
  ...asked,
  content: Content,
  createMode,
  ...writing
}) {}

/**
 * A part of a content that is too large for one entry. All parts of one write have one correlation id; the one at offset 0 says where and
 * how; nothing is visible before the last has been written.
 *
 * @since 0.1.0
 */
export class FileWriteChunk extends Schema.TaggedClass<FileWriteChunk>("fs-algebra/FileWriteChunk")("FileWriteChunk", {
  correlationId: Schema.String,
  offset: whole,
  data: Content,
  isFinal: Schema.Boolean,
  /** At offset 0, and only there. */
  path: Schema.optionalKey(Schema.String),
  /** At offset 0, and only there. @default "overwrite" */
  createMode: Schema.optionalKey(createMode),
  ...writing,
  /** At offset 0, and only there. */
  ...links,
  /** The write is given up: what came so far is forgotten, and nothing is answered. Only with `isFinal`. */
  discard: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * Asks what is in a directory.
 *
 * @since 0.1.0
 */
export class FileList extends Schema.TaggedClass<FileList>("fs-algebra/FileList")("FileList", {
  ...asked,
  /** A glob, as `Filesystem.glob` takes it, relative to the path. */
  pattern: Schema.optionalKey(Schema.String),
  /** Everything below, with paths relative to `path`. @default false */
  recursive: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * Asks for something to be removed.
 *
 * @since 0.1.0
 */
export class FileDelete extends Schema.TaggedClass<FileDelete>("fs-algebra/FileDelete")("FileDelete", {
  ...asked,
  /** @default false */
  recursive: Schema.optionalKey(Schema.Boolean),
  ifMatch: Schema.optionalKey(Schema.NullOr(Schema.String))
}) {}

/**
 * Asks for the metadata; what a filesystem answers to `stat` is `Entry.FileStat`.
 *
 * @since 0.1.0
 */
export class FileStat extends Schema.TaggedClass<FileStat>("fs-algebra/FileStat")("FileStat", {
  ...asked,
  /** With `links: "leave"`: asks what stands at each component of the path too, also where nothing is at the path. @default false */
  way: Schema.optionalKey(Schema.Boolean)
}) {}

// ── afferent ──

/**
 * Answers the content of a file, whole.
 *
 * @since 0.1.0
 */
export class FileContent extends Schema.TaggedClass<FileContent>("fs-algebra/FileContent")("FileContent", {
  ...answered,
  content: Content,
  /** Bytes of the whole file. */
  totalSize: whole,
  /** It is not the whole file. */
  isPartial: Schema.Boolean,
  /** Of the file that was read, as it was then. */
  stat: Schema.optionalKey(Stat)
}) {}

/**
 * Answers one portion of the content of a file.
 *
 * @since 0.1.0
 */
export class FileContentChunk extends Schema.TaggedClass<FileContentChunk>("fs-algebra/FileContentChunk")("FileContentChunk", {
  ...answered,
  /** Absolute in the file. */
  offset: whole,
  data: Content,
  /** The end of what was asked for. */
  isFinal: Schema.Boolean,
  /** On the first chunk of an answer. */
  stat: Schema.optionalKey(Stat)
}) {}

/**
 * Answers that a file was written.
 *
 * @since 0.1.0
 */
export class FileWritten extends Schema.TaggedClass<FileWritten>("fs-algebra/FileWritten")("FileWritten", {
  ...answered,
  path: Schema.String,
  bytesWritten: whole,
  /** Of the file as published. */
  stat: Schema.optionalKey(Stat),
  version: Schema.optionalKey(Schema.String),
  /** What the file held before, where the recorder keeps that; `null`: there was nothing. */
  previous: Schema.optionalKey(Schema.NullOr(Content))
}) {}

/**
 * Answers what is in a directory.
 *
 * @since 0.1.0
 */
export class FileListing extends Schema.TaggedClass<FileListing>("fs-algebra/FileListing")("FileListing", {
  ...answered,
  /** In path order. Paths are relative to the directory that was listed. */
  entries: Schema.Array(FileEntry)
}) {}

/**
 * One thing that was removed, for bringing it back.
 *
 * @since 0.1.0
 */
export interface Removed {
  /** From the root. */
  readonly path: string
  readonly kind: "file" | "directory" | "symlink" | "other"
  /** Of a file. */
  readonly content?: Content
  /** Of a link. */
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
 * Answers that something was removed.
 *
 * @since 0.1.0
 */
export class FileDeleted extends Schema.TaggedClass<FileDeleted>("fs-algebra/FileDeleted")("FileDeleted", {
  ...answered,
  path: Schema.String,
  /** Files, links and others. */
  deletedCount: whole,
  directories: Schema.optionalKey(whole),
  /** What went, parents first, where the recorder keeps that. */
  removed: Schema.optionalKey(Schema.Array(Removed))
}) {}

const metadata = {
  /** Bytes; 0 for a directory. */
  size: whole,
  modified: Schema.optionalKey(Schema.DateTimeUtc),
  created: Schema.optionalKey(Schema.DateTimeUtc),
  isDirectory: Schema.Boolean,
  /** POSIX permission bits where the disk has them. */
  permissions: Schema.optionalKey(Schema.Int),
  isSymlink: Schema.optionalKey(Schema.Boolean),
  kind: Schema.optionalKey(Schema.Literals(["file", "directory", "symlink", "other"])),
  /** The text of a link, where `links: "leave"` was asked. */
  target: Schema.optionalKey(Schema.String),
  /** The link may be read, and not followed. @default false */
  noFollow: Schema.optionalKey(Schema.Boolean)
}

/**
 * Answers what is at a path.
 *
 * @since 0.1.0
 */
export class FileMetadata extends Schema.TaggedClass<FileMetadata>("fs-algebra/FileMetadata")("FileMetadata", {
  ...answered,
  ...metadata,
  /** The metadata of each component, the root first, down to the first that is no directory. */
  way: Schema.optionalKey(Schema.Array(Schema.Struct(metadata)))
}) {}

/**
 * The kinds of fault that an answer can have.
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
 * An operation that failed. The same operation on the same state fails with the same kind.
 *
 * @since 0.1.0
 */
export class FileFault extends Schema.TaggedClass<FileFault>("fs-algebra/FileFault")("FileFault", {
  ...answered,
  faultKind: FaultKind,
  path: Schema.String,
  message: Schema.String,
  /** The whole error, so that a caller fails as the backend did, also where the eleven kinds have no word for it. */
  error: Schema.optionalKey(FsError)
}) {}

// ── beyond the thirteen ──

/**
 * Asks for a directory to be made.
 *
 * @since 0.1.0
 */
export class FileMakeDirectory extends Schema.TaggedClass<FileMakeDirectory>("fs-algebra/FileMakeDirectory")(
  "FileMakeDirectory",
  {
    ...asked,
    /** @default true */
    parents: Schema.optionalKey(Schema.Boolean),
    /** @default true */
    existOk: Schema.optionalKey(Schema.Boolean)
  }
) {}

/**
 * Answers that a directory is there.
 *
 * @since 0.1.0
 */
export class FileDirectoryMade extends Schema.TaggedClass<FileDirectoryMade>("fs-algebra/FileDirectoryMade")(
  "FileDirectoryMade",
  { ...answered, path: Schema.String }
) {}

/**
 * Asks for something to be moved.
 *
 * @since 0.1.0
 */
export class FileMove extends Schema.TaggedClass<FileMove>("fs-algebra/FileMove")("FileMove", {
  ...asked,
  to: Schema.String,
  /** @default false */
  overwrite: Schema.optionalKey(Schema.Boolean),
  /** @default true */
  createParents: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * Answers that something was moved.
 *
 * @since 0.1.0
 */
export class FileMoved extends Schema.TaggedClass<FileMoved>("fs-algebra/FileMoved")("FileMoved", {
  ...answered,
  path: Schema.String,
  to: Schema.String,
  files: whole,
  directories: whole,
  bytes: whole,
  /** What was replaced at `to`, where the recorder keeps that. */
  replaced: Schema.optionalKey(Removed)
}) {}

/**
 * One change of a text, as `Filesystem.edit` takes it.
 *
 * @since 0.1.0
 */
export const Edit = Schema.Struct({
  oldText: Schema.String,
  newText: Schema.String,
  match: Schema.optionalKey(Schema.Literals(["unique", "first", "all"]))
})

/**
 * Asks for replacements in a text file.
 *
 * @since 0.1.0
 */
export class FileEdit extends Schema.TaggedClass<FileEdit>("fs-algebra/FileEdit")("FileEdit", {
  ...asked,
  edits: Schema.Array(Edit),
  ifMatch: Schema.optionalKey(Schema.NullOr(Schema.String)),
  version: Schema.optionalKey(Schema.Boolean)
}) {}

/**
 * Answers that a text file was edited.
 *
 * @since 0.1.0
 */
export class FileEdited extends Schema.TaggedClass<FileEdited>("fs-algebra/FileEdited")("FileEdited", {
  ...answered,
  path: Schema.String,
  bytesWritten: whole,
  replacements: whole,
  /** Unified. */
  diff: Schema.String,
  version: Schema.optionalKey(Schema.String)
}) {}

/**
 * Asks for a symbolic link to be made.
 *
 * @since 0.1.0
 */
export class FileMakeLink extends Schema.TaggedClass<FileMakeLink>("fs-algebra/FileMakeLink")("FileMakeLink", {
  ...asked,
  target: Schema.String
}) {}

/**
 * Answers that a symbolic link was made.
 *
 * @since 0.1.0
 */
export class FileLinkMade extends Schema.TaggedClass<FileLinkMade>("fs-algebra/FileLinkMade")("FileLinkMade", {
  ...answered,
  path: Schema.String
}) {}

/**
 * Asks for permission bits or the time of modification to be set.
 *
 * @since 0.1.0
 */
export class FileSetAttributes extends Schema.TaggedClass<FileSetAttributes>("fs-algebra/FileSetAttributes")(
  "FileSetAttributes",
  {
    ...asked,
    /** POSIX permission bits. */
    mode: Schema.optionalKey(Schema.Int),
    modified: Schema.optionalKey(Schema.DateTimeUtc),
    /** The bits are those of the original of a copy: a leaf sets them only with `preservePermissions`. @default false */
    isCopy: Schema.optionalKey(Schema.Boolean)
  }
) {}

/**
 * Answers that attributes were set.
 *
 * @since 0.1.0
 */
export class FileAttributesSet extends Schema.TaggedClass<FileAttributesSet>("fs-algebra/FileAttributesSet")(
  "FileAttributesSet",
  {
    ...answered,
    path: Schema.String,
    /** The permission bits of a copy were not set, as `preservePermissions` has it. @default false */
    skippedMode: Schema.optionalKey(Schema.Boolean),
    /** What they were, where the recorder keeps that. */
    previous: Schema.optionalKey(
      Schema.Struct({ mode: Schema.optionalKey(Schema.Int), modified: Schema.optionalKey(Schema.DateTimeUtc) })
    )
  }
) {}

/**
 * A leaf has begun to carry out a change. What it met lets the leaf that takes its place tell whether the change was made.
 *
 * @since 0.1.0
 */
export class FileStarted extends Schema.TaggedClass<FileStarted>("fs-algebra/FileStarted")("FileStarted", {
  ...answered,
  /** Of the leaf that has begun. */
  instance: Schema.String,
  /** What was at the path; `null`: nothing. */
  size: Schema.optionalKey(Schema.NullOr(whole)),
  /** The version that the file will have, where it is known beforehand. */
  after: Schema.optionalKey(Schema.String),
  /** What a delete will answer: how much there was to remove. */
  removes: Schema.optionalKey(Schema.Struct({ deleted: whole, directories: whole })),
  /** What an edit will answer. */
  edits: Schema.optionalKey(Schema.Struct({ bytesWritten: whole, replacements: whole, diff: Schema.String }))
}) {}
