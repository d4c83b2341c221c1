/**
 * The errors of the service.
 *
 * Below the service a failure is a `Fault`: plain data without an operation. The service turns each fault into a tagged
 * error of this module, with the operation and the caller's own path.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

const at = { operation: Schema.String, path: Schema.String }

const formatMessage = (self: { readonly operation: string; readonly path: string }, reason: string): string =>
  `${self.operation} ${JSON.stringify(self.path)}: ${reason}`

/**
 * The error for a file or directory that does not exist.
 *
 * @example
 * ```ts
 * const read = fs.readString("missing.md")
 * yield* Effect.catchTag(read, "NotFound", ({ path }) => Effect.succeed(`no file ${path}`)) // => "no file missing.md"
 * ```
 * @category errors
 * @since 0.1.0
 */
export class NotFound extends Schema.TaggedError<NotFound>("fs-algebra/NotFound")("NotFound", {
  ...at,
  /** Up to three existing paths that resemble a missing base of `glob` or `grep`. */
  nearest: Schema.optionalKey(Schema.Array(Schema.String))
}) {
  override get message(): string {
    const names = (this.nearest ?? []).map((path) => JSON.stringify(path)).join(", ")
    return formatMessage(this, `there is no such file or directory${names === "" ? "" : `; did you mean ${names}?`}`)
  }
}

/**
 * The error for a path that already exists.
 *
 * @category errors
 * @since 0.1.0
 */
export class AlreadyExists extends Schema.TaggedError<AlreadyExists>("fs-algebra/AlreadyExists")("AlreadyExists", { ...at }) {
  override get message(): string {
    return formatMessage(this, "it exists already")
  }
}

const deniedReasons = {
  permission: "the operating system does not permit it",
  readOnly: "this filesystem is read-only",
  escape: "a link on this path leads out of the root",
  root: "the root, a mount point, or a parent of a mount point cannot be removed, moved or replaced",
  link: "the path goes through a symbolic link, or the file has several names (hard links), which this filesystem refuses",
  policy: "a policy forbids it",
  busy: "it is in use by another process; try again later"
} as const

/**
 * The error for a path that must not be reached or changed, whether or not it exists. `why` is the reason.
 *
 * @category errors
 * @since 0.1.0
 */
export class AccessDenied extends Schema.TaggedError<AccessDenied>("fs-algebra/AccessDenied")("AccessDenied", {
  ...at,
  why: Schema.Literals(["permission", "readOnly", "escape", "root", "link", "policy", "busy"]),
  /** A further detail, such as the process that uses the file. */
  detail: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return formatMessage(
      this,
      `access denied, ${deniedReasons[this.why]}${this.detail === undefined ? "" : `: ${this.detail}`}`
    )
  }
}

/**
 * The error for a text that is not a valid path. For example, the text climbs above the root, has control characters, or its
 * symlinks form a cycle.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidPath extends Schema.TaggedError<InvalidPath>("fs-algebra/InvalidPath")("InvalidPath", {
  ...at,
  detail: Schema.String
}) {
  override get message(): string {
    return formatMessage(this, `not a valid path, ${this.detail}`)
  }
}

/**
 * The error for a path, or a name in it, that exceeds a limit of this library or a system limit.
 *
 * @category errors
 * @since 0.1.0
 */
export class PathTooLong extends Schema.TaggedError<PathTooLong>("fs-algebra/PathTooLong")("PathTooLong", {
  ...at,
  detail: Schema.String
}) {
  override get message(): string {
    return formatMessage(this, `the path is too long, ${this.detail}`)
  }
}

/**
 * The error for a path that is not a directory, or has a parent that is not a directory.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotADirectory extends Schema.TaggedError<NotADirectory>("fs-algebra/NotADirectory")("NotADirectory", { ...at }) {
  override get message(): string {
    return formatMessage(this, "it is not a directory, or one of its parents is not a directory")
  }
}

/**
 * The error for a path that is not a regular file, such as a directory.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotAFile extends Schema.TaggedError<NotAFile>("fs-algebra/NotAFile")("NotAFile", { ...at }) {
  override get message(): string {
    return formatMessage(this, "it is not a regular file")
  }
}

/**
 * The error for a directory that cannot be removed or replaced because it is not empty.
 *
 * @category errors
 * @since 0.1.0
 */
export class DirectoryNotEmpty extends Schema.TaggedError<DirectoryNotEmpty>("fs-algebra/DirectoryNotEmpty")(
  "DirectoryNotEmpty",
  {
    ...at
  }
) {
  override get message(): string {
    return formatMessage(this, "the directory is not empty")
  }
}

/**
 * The error for a full disk, or for a quota that is used up, such as that of `Decorator.quota`.
 *
 * @category errors
 * @since 0.1.0
 */
export class DiskFull extends Schema.TaggedError<DiskFull>("fs-algebra/DiskFull")("DiskFull", { ...at }) {
  override get message(): string {
    return formatMessage(this, "there is no space left, or the quota is used up")
  }
}

/**
 * The error for an operation that took too long. `detail` says what the operation waited for.
 *
 * @category errors
 * @since 0.1.0
 */
export class Timeout extends Schema.TaggedError<Timeout>("fs-algebra/Timeout")("Timeout", { ...at, detail: Schema.String }) {
  override get message(): string {
    return formatMessage(this, `it took too long, ${this.detail}`)
  }
}

/**
 * The error for a failure of the disk, the connection or the backend that no other class describes. `code` is the errno or a
 * similar code, if there is one.
 *
 * @category errors
 * @since 0.1.0
 */
export class IoError extends Schema.TaggedError<IoError>("fs-algebra/IoError")("IoError", {
  ...at,
  code: Schema.optionalKey(Schema.String),
  detail: Schema.String
}) {
  override get message(): string {
    return formatMessage(this, this.code === undefined ? this.detail : `${this.detail} (${this.code})`)
  }
}

/**
 * The error for content that is not text in the requested encoding. `offset` is the 0-based position of the first
 * invalid byte.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotText extends Schema.TaggedError<NotText>("fs-algebra/NotText")("NotText", {
  ...at,
  encoding: Schema.String,
  offset: Schema.Int
}) {
  override get message(): string {
    return formatMessage(
      this,
      `it is not ${this.encoding} text, the first invalid byte is at offset ${this.offset}; read it as bytes`
    )
  }
}

/**
 * The error for a call that exceeds a limit of this library, such as those of `Limits`, not of the machine. `limit` is the
 * name of the limit.
 *
 * @category errors
 * @since 0.1.0
 */
export class LimitExceeded extends Schema.TaggedError<LimitExceeded>("fs-algebra/LimitExceeded")("LimitExceeded", {
  ...at,
  limit: Schema.String,
  allowed: Schema.Int,
  actual: Schema.Int
}) {
  override get message(): string {
    return formatMessage(this, `it exceeds the limit ${this.limit}: ${this.actual} is more than ${this.allowed}`)
  }
}

/**
 * The error for an invalid argument, such as a malformed pattern or a negative offset. `argument` is the name of the
 * parameter.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidArgument extends Schema.TaggedError<InvalidArgument>("fs-algebra/InvalidArgument")("InvalidArgument", {
  ...at,
  argument: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return formatMessage(this, `invalid ${this.argument}, ${this.detail}`)
  }
}

const version = (value: string | null): string => (value === null ? "no file" : `version ${value.slice(0, 12)}…`)

/**
 * The error for a failed precondition `ifMatch`.
 *
 * `expected` and `actual` are versions of the content; `null` means that the file does not exist. `actual` is absent if
 * it is unknown, for example because reading is denied.
 *
 * @category errors
 * @since 0.1.0
 */
export class Conflict extends Schema.TaggedError<Conflict>("fs-algebra/Conflict")("Conflict", {
  ...at,
  expected: Schema.NullOr(Schema.String),
  actual: Schema.optionalKey(Schema.NullOr(Schema.String))
}) {
  override get message(): string {
    if (this.expected === this.actual) return formatMessage(this, "it changed in the meantime; read it again")
    const found = this.actual === undefined ? "something else" : version(this.actual)
    return formatMessage(
      this,
      `it changed in the meantime, expected ${version(this.expected)} and found ${found}; read it again`
    )
  }
}

/**
 * The error for a feature that the backend lacks, such as symlinks or watching. `feature` is the name of the feature.
 *
 * @category errors
 * @since 0.1.0
 */
export class Unsupported extends Schema.TaggedError<Unsupported>("fs-algebra/Unsupported")("Unsupported", {
  ...at,
  feature: Schema.String
}) {
  override get message(): string {
    return formatMessage(this, `this backend has no ${this.feature}`)
  }
}

/**
 * The operations that create a container or run commands in it. If such an operation fails, the files may still be
 * available.
 */
const containerOperations: ReadonlySet<string> = new Set(["exec", "eval", "Container"])

/**
 * The error for a backend that cannot be reached. For example, the container engine is not running, the container has
 * stopped, or the connection is lost.
 *
 * A walk or a listing may also fail with this error if another program changes a directory during the read.
 *
 * @category errors
 * @since 0.1.0
 */
export class Unavailable extends Schema.TaggedError<Unavailable>("fs-algebra/Unavailable")("Unavailable", {
  ...at,
  detail: Schema.String,
  /** One sentence of advice, if the backend has any. */
  hint: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return formatMessage(
      this,
      containerOperations.has(this.operation) ? this.detail : `the backend is not available, ${this.detail}`
    )
  }
}

const path = [InvalidPath, PathTooLong, AccessDenied] as const
const backend = [IoError, Timeout, Unavailable] as const
const stat = [...path, ...backend, NotFound] as const
const list = [...stat, NotADirectory, LimitExceeded] as const
const stream = [...stat, NotAFile, InvalidArgument] as const
const readBytes = [...stream, LimitExceeded] as const
const write = [
  ...stat,
  AlreadyExists,
  NotAFile,
  NotADirectory,
  DiskFull,
  LimitExceeded,
  InvalidArgument,
  Conflict,
  Unsupported
] as const
const mkdir = [...stat, AlreadyExists, NotADirectory, DiskFull] as const

/**
 * The errors that any path can cause.
 *
 * @since 0.1.0
 */
export const PathError = Schema.Union(path)
/** @since 0.1.0 */
export type PathError = InvalidPath | PathTooLong | AccessDenied

/**
 * The errors that any backend can cause.
 *
 * @since 0.1.0
 */
export const BackendError = Schema.Union(backend)
/** @since 0.1.0 */
export type BackendError = IoError | Timeout | Unavailable

/** The errors of `stat`, `lstat` and `realPath`. @since 0.1.0 */
export const StatError = Schema.Union(stat)
/** @since 0.1.0 */
export type StatError = PathError | BackendError | NotFound

/** The errors of `list` and `walk`. @since 0.1.0 */
export const ListError = Schema.Union(list)
/** @since 0.1.0 */
export type ListError = StatError | NotADirectory | LimitExceeded

/** The errors of `version` and `stream`. `lines` adds NotText. @since 0.1.0 */
export const StreamError = Schema.Union(stream)
/** @since 0.1.0 */
export type StreamError = StatError | NotAFile | InvalidArgument

/** The errors of `readBytes`. @since 0.1.0 */
export const ReadBytesError = Schema.Union(readBytes)
/** @since 0.1.0 */
export type ReadBytesError = StreamError | LimitExceeded

/** The errors of `read` and `readString`. @since 0.1.0 */
export const ReadError = Schema.Union([...readBytes, NotText])
/** @since 0.1.0 */
export type ReadError = ReadBytesError | NotText

/** The errors of `glob` and `globStream`. @since 0.1.0 */
export const GlobError = Schema.Union([...stat, NotADirectory, InvalidArgument])
/** @since 0.1.0 */
export type GlobError = StatError | NotADirectory | InvalidArgument

/** The errors of `grep` and `grepStream`. @since 0.1.0 */
export const GrepError = Schema.Union([...stat, InvalidArgument])
/** @since 0.1.0 */
export type GrepError = StatError | InvalidArgument

/** The errors of `write`, `writeBytes` and `sink`. @since 0.1.0 */
export const WriteError = Schema.Union(write)
/** @since 0.1.0 */
export type WriteError =
  | StatError
  | AlreadyExists
  | NotAFile
  | NotADirectory
  | DiskFull
  | LimitExceeded
  | InvalidArgument
  | Conflict
  | Unsupported

/** The errors of `edit`. @since 0.1.0 */
export const EditError = Schema.Union([...write, NotText])
/** @since 0.1.0 */
export type EditError = WriteError | NotText

/** The errors of `delete`. @since 0.1.0 */
export const DeleteError = Schema.Union([...stat, DirectoryNotEmpty, NotAFile, InvalidArgument, Conflict])
/** @since 0.1.0 */
export type DeleteError = StatError | DirectoryNotEmpty | NotAFile | InvalidArgument | Conflict

/** The errors of `mkdir`. @since 0.1.0 */
export const MkdirError = Schema.Union(mkdir)
/** @since 0.1.0 */
export type MkdirError = StatError | AlreadyExists | NotADirectory | DiskFull

/** The errors of `copy` and `move`. @since 0.1.0 */
export const TransferError = Schema.Union([
  ...stat,
  AlreadyExists,
  NotAFile,
  NotADirectory,
  DiskFull,
  LimitExceeded,
  InvalidArgument,
  DirectoryNotEmpty,
  Unsupported
])
/** @since 0.1.0 */
export type TransferError = Exclude<WriteError, Conflict> | DirectoryNotEmpty

/** The errors of `symlink`. @since 0.1.0 */
export const LinkError = Schema.Union([...mkdir, InvalidArgument, Unsupported])
/** @since 0.1.0 */
export type LinkError = MkdirError | InvalidArgument | Unsupported

const classes = {
  NotFound,
  AlreadyExists,
  AccessDenied,
  InvalidPath,
  PathTooLong,
  NotADirectory,
  NotAFile,
  DirectoryNotEmpty,
  DiskFull,
  Timeout,
  IoError,
  NotText,
  LimitExceeded,
  InvalidArgument,
  Conflict,
  Unsupported,
  Unavailable
}

/**
 * The union of all errors of all operations.
 *
 * @category schemas
 * @since 0.1.0
 */
export const FsError = Schema.Union([
  NotFound,
  AlreadyExists,
  AccessDenied,
  InvalidPath,
  PathTooLong,
  NotADirectory,
  NotAFile,
  DirectoryNotEmpty,
  DiskFull,
  Timeout,
  IoError,
  NotText,
  LimitExceeded,
  InvalidArgument,
  Conflict,
  Unsupported,
  Unavailable
])
/** @since 0.1.0 */
export type FsError = EditError | ListError | ReadError | DeleteError | MkdirError | TransferError | LinkError

/**
 * A failure below the service: plain data without an operation. The tag names an error class; the other fields are fields
 * of this class.
 *
 * Two further fields are optional. `path` is the path that the fault concerns, if a call touches several paths. `cause` is
 * the host's original error, for the debug log.
 *
 * @since 0.1.0
 */
export interface Fault {
  readonly _tag: FsError["_tag"]
  readonly [detail: string]: unknown
}

/**
 * Returns the tags of a union of errors, for `promote`.
 *
 * @since 0.1.0
 */
export const tagsOf = (union: { readonly members: ReadonlyArray<unknown> }): ReadonlySet<string> =>
  new Set(Object.entries(classes).flatMap(([tag, schema]) => (union.members.includes(schema) ? [tag] : [])))

/**
 * Returns the path to show in an error. For a value that is not a string, returns its type in parentheses.
 *
 * @since 0.1.0
 */
export const shownPath = (path: unknown): string => (typeof path === "string" ? path : `(${typeof path})`)

/**
 * Converts a fault to the error class of the same tag, with the name of the failed operation and the caller's path.
 *
 * A tag that is not in `tags` becomes an IoError with the tag as its code. Such a tag occurs only if a backend breaks
 * its contract or the tree changes concurrently.
 *
 * @since 0.1.0
 */
export const promote = (fault: Fault, operation: string, path: string, tags?: ReadonlySet<string>): FsError => {
  const { _tag, cause: _, path: at, ...details } = fault
  const shown = shownPath(at ?? path)
  if (tags === undefined || tags.has(_tag)) {
    return new (classes[_tag] as new (fields: object) => FsError)({ operation, path: shown, ...details })
  }
  const reason = details["argument"] === undefined ? _tag : `invalid ${String(details["argument"])}`
  const detail = details["detail"] === undefined ? reason : `${reason}, ${String(details["detail"])}`
  return new IoError({ operation, path: shown, code: _tag, detail })
}

/**
 * Adds a path to a fault that has no path yet. Used by calls that touch several paths.
 *
 * @since 0.1.0
 */
export const located = (fault: Fault, path: string): Fault => (fault["path"] === undefined ? { ...fault, path } : fault)

/**
 * Converts an error back to a fault, so that another port can fail with this fault.
 *
 * @since 0.1.0
 */
export const toFault = (error: FsError): Fault => {
  const fault: Record<string, unknown> = { _tag: error._tag }
  for (const key of Object.keys(classes[error._tag].fields)) {
    const value: unknown = error[key as never]
    if (key !== "operation" && key !== "path" && key !== "_tag" && value !== undefined) fault[key] = value
  }
  return fault as unknown as Fault
}
