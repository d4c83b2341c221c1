/**
 * Below the service a failure is plain data without path or operation (`Fault`); at its edge, in one place, it becomes one of these
 * tagged errors with the caller's own path. So no inner or host path can leak, and every error reads the same on every backend.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

const at = { operation: Schema.String, path: Schema.String }

const sentence = (self: { readonly operation: string; readonly path: string }, what: string): string =>
  `${self.operation} ${JSON.stringify(self.path)}: ${what}`

/**
 * There is no such file or directory.
 *
 * @since 0.1.0
 */
export class NotFound extends Schema.TaggedError<NotFound>("fs-algebra/NotFound")("NotFound", {
  ...at,
  /** Up to three paths that exist and look like a missing base of `glob` or `grep`. */
  nearest: Schema.optionalKey(Schema.Array(Schema.String))
}) {
  override get message(): string {
    const names = (this.nearest ?? []).map((path) => JSON.stringify(path)).join(", ")
    return sentence(this, `there is no such file or directory${names === "" ? "" : `; did you mean ${names}?`}`)
  }
}

/**
 * Something is at the path already, where nothing may be.
 *
 * @since 0.1.0
 */
export class AlreadyExists extends Schema.TaggedError<AlreadyExists>("fs-algebra/AlreadyExists")("AlreadyExists", { ...at }) {
  override get message(): string {
    return sentence(this, "it exists already")
  }
}

const denied = {
  permission: "the operating system does not permit it",
  readOnly: "it may be read but not changed here",
  escape: "a link on this path leads out of the root",
  root: "the root, or a directory that something is mounted on, cannot be removed, moved or replaced",
  link: "the path goes through a symbolic link, or the file has several names (hard links), which this filesystem refuses",
  policy: "a policy forbids it",
  busy: "it is in use by another process; try again later"
} as const

/**
 * It is there, or might be, and may not be reached or changed; `why` says who forbids it.
 *
 * @since 0.1.0
 */
export class AccessDenied extends Schema.TaggedError<AccessDenied>("fs-algebra/AccessDenied")("AccessDenied", {
  ...at,
  why: Schema.Literals(["permission", "readOnly", "escape", "root", "link", "policy", "busy"]),
  /** Says more, such as which process has the file. */
  detail: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return sentence(this, `access denied, ${denied[this.why]}${this.detail === undefined ? "" : `: ${this.detail}`}`)
  }
}

/**
 * The text is no path of this filesystem: it climbs above the root, holds control characters, or goes in circles by links.
 *
 * @since 0.1.0
 */
export class InvalidPath extends Schema.TaggedError<InvalidPath>("fs-algebra/InvalidPath")("InvalidPath", {
  ...at,
  detail: Schema.String
}) {
  override get message(): string {
    return sentence(this, `not a valid path, ${this.detail}`)
  }
}

/**
 * The path, or one of its names, is longer or deeper than a limit or the system allows.
 *
 * @since 0.1.0
 */
export class PathTooLong extends Schema.TaggedError<PathTooLong>("fs-algebra/PathTooLong")("PathTooLong", {
  ...at,
  detail: Schema.String
}) {
  override get message(): string {
    return sentence(this, `the path is too long, ${this.detail}`)
  }
}

/**
 * Something on the path, or the path itself, is not the directory that the call needs.
 *
 * @since 0.1.0
 */
export class NotADirectory extends Schema.TaggedError<NotADirectory>("fs-algebra/NotADirectory")("NotADirectory", { ...at }) {
  override get message(): string {
    return sentence(this, "it is not a directory, or lies below something that is not one")
  }
}

/**
 * What is at the path is no regular file: a directory, or something that cannot be read as bytes.
 *
 * @since 0.1.0
 */
export class NotAFile extends Schema.TaggedError<NotAFile>("fs-algebra/NotAFile")("NotAFile", { ...at }) {
  override get message(): string {
    return sentence(this, "it is not a regular file")
  }
}

/**
 * A directory still holds something, and the call was not to remove that too.
 *
 * @since 0.1.0
 */
export class DirectoryNotEmpty extends Schema.TaggedError<DirectoryNotEmpty>("fs-algebra/DirectoryNotEmpty")(
  "DirectoryNotEmpty",
  {
    ...at
  }
) {
  override get message(): string {
    return sentence(this, "the directory is not empty")
  }
}

/**
 * There is no space left on the device, or the quota of `Decorator.quota` is used up.
 *
 * @since 0.1.0
 */
export class DiskFull extends Schema.TaggedError<DiskFull>("fs-algebra/DiskFull")("DiskFull", { ...at }) {
  override get message(): string {
    return sentence(this, "there is no space left, or the quota is used up")
  }
}

/**
 * It took longer than it may; `detail` says what was waited for.
 *
 * @since 0.1.0
 */
export class Timeout extends Schema.TaggedError<Timeout>("fs-algebra/Timeout")("Timeout", { ...at, detail: Schema.String }) {
  override get message(): string {
    return sentence(this, `it took too long, ${this.detail}`)
  }
}

/**
 * The host failed in a way that has no name of its own; `code` is its errno or the like, where it has one.
 *
 * @since 0.1.0
 */
export class IoError extends Schema.TaggedError<IoError>("fs-algebra/IoError")("IoError", {
  ...at,
  code: Schema.optionalKey(Schema.String),
  detail: Schema.String
}) {
  override get message(): string {
    return sentence(this, this.code === undefined ? this.detail : `${this.detail} (${this.code})`)
  }
}

/**
 * The content is not the text it was asked to be; `offset` is the first byte that is not.
 *
 * @since 0.1.0
 */
export class NotText extends Schema.TaggedError<NotText>("fs-algebra/NotText")("NotText", {
  ...at,
  encoding: Schema.String,
  offset: Schema.Int
}) {
  override get message(): string {
    return sentence(
      this,
      `it is not ${this.encoding} text, the first byte that is not stands at offset ${this.offset}; read it as bytes`
    )
  }
}

/**
 * A limit of ours (`Limits`), never of the machine: `limit` names it.
 *
 * @since 0.1.0
 */
export class LimitExceeded extends Schema.TaggedError<LimitExceeded>("fs-algebra/LimitExceeded")("LimitExceeded", {
  ...at,
  limit: Schema.String,
  allowed: Schema.Int,
  actual: Schema.Int
}) {
  override get message(): string {
    return sentence(this, `over the limit ${this.limit}, ${this.actual} where ${this.allowed} are allowed`)
  }
}

/**
 * A pattern, offset, limit or edit that can never work. `argument` names the parameter.
 *
 * @since 0.1.0
 */
export class InvalidArgument extends Schema.TaggedError<InvalidArgument>("fs-algebra/InvalidArgument")("InvalidArgument", {
  ...at,
  argument: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return sentence(this, `invalid ${this.argument}, ${this.detail}`)
  }
}

const version = (value: string | null): string => (value === null ? "no file" : `version ${value.slice(0, 12)}…`)

/**
 * `ifMatch` did not hold. Versions are content versions, `null` is absence; `actual` is left out where reading is denied.
 *
 * @since 0.1.0
 */
export class Conflict extends Schema.TaggedError<Conflict>("fs-algebra/Conflict")("Conflict", {
  ...at,
  expected: Schema.NullOr(Schema.String),
  actual: Schema.optionalKey(Schema.NullOr(Schema.String))
}) {
  override get message(): string {
    if (this.expected === this.actual) return sentence(this, "it changed in the meantime; read it again")
    const found = this.actual === undefined ? "something else" : version(this.actual)
    return sentence(this, `it changed in the meantime, expected ${version(this.expected)} and found ${found}; read it again`)
  }
}

/**
 * The backend lacks what the call needs, such as links or watching; `feature` names it.
 *
 * @since 0.1.0
 */
export class Unsupported extends Schema.TaggedError<Unsupported>("fs-algebra/Unsupported")("Unsupported", {
  ...at,
  feature: Schema.String
}) {
  override get message(): string {
    return sentence(this, `this backend has no ${this.feature}`)
  }
}

/** The operations that run or make a container. Where they fail the files may still be available. */
const needsContainer: ReadonlySet<string> = new Set(["exec", "eval", "Container"])

/**
 * The backend itself is gone: engine not running, container stopped, connection lost. A walk and a listing fail with it too when
 * another program moves or replaces a directory while they read it.
 *
 * @since 0.1.0
 */
export class Unavailable extends Schema.TaggedError<Unavailable>("fs-algebra/Unavailable")("Unavailable", {
  ...at,
  detail: Schema.String,
  /** What to do about it, in one sentence, where the backend knows. */
  hint: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return sentence(this, needsContainer.has(this.operation) ? this.detail : `the backend is not available, ${this.detail}`)
  }
}

const path = [InvalidPath, PathTooLong, AccessDenied] as const
const backend = [IoError, Timeout, Unavailable] as const
const stat = [...path, ...backend, NotFound] as const
const list = [...stat, NotADirectory, LimitExceeded] as const
const stream = [...stat, NotAFile, InvalidArgument] as const
const readBytes = [...stream, LimitExceeded] as const
const write = [...stat, AlreadyExists, NotAFile, NotADirectory, DiskFull, LimitExceeded, InvalidArgument, Conflict] as const
const mkdir = [...stat, AlreadyExists, NotADirectory, DiskFull] as const

/**
 * What any path may meet.
 *
 * @since 0.1.0
 */
export const PathError = Schema.Union(path)
/** @since 0.1.0 */
export type PathError = InvalidPath | PathTooLong | AccessDenied

/**
 * What any backend may meet.
 *
 * @since 0.1.0
 */
export const BackendError = Schema.Union(backend)
/** @since 0.1.0 */
export type BackendError = IoError | Timeout | Unavailable

/** What `stat` can fail with. @since 0.1.0 */
export const StatError = Schema.Union(stat)
/** @since 0.1.0 */
export type StatError = PathError | BackendError | NotFound

/** What `list` and `walk` can fail with. @since 0.1.0 */
export const ListError = Schema.Union(list)
/** @since 0.1.0 */
export type ListError = StatError | NotADirectory | LimitExceeded

/** What `version` and `stream` can fail with, and `lines` beside NotText. @since 0.1.0 */
export const StreamError = Schema.Union(stream)
/** @since 0.1.0 */
export type StreamError = StatError | NotAFile | InvalidArgument

/** What `readBytes` can fail with. @since 0.1.0 */
export const ReadBytesError = Schema.Union(readBytes)
/** @since 0.1.0 */
export type ReadBytesError = StreamError | LimitExceeded

/** What `read` and `readString` can fail with. @since 0.1.0 */
export const ReadError = Schema.Union([...readBytes, NotText])
/** @since 0.1.0 */
export type ReadError = ReadBytesError | NotText

/** What `glob` can fail with. @since 0.1.0 */
export const GlobError = Schema.Union([...stat, NotADirectory, InvalidArgument])
/** @since 0.1.0 */
export type GlobError = StatError | NotADirectory | InvalidArgument

/** What `grep` can fail with. @since 0.1.0 */
export const GrepError = Schema.Union([...stat, InvalidArgument])
/** @since 0.1.0 */
export type GrepError = StatError | InvalidArgument

/** What `write`, `writeBytes` and `sink` can fail with. @since 0.1.0 */
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

/** What `edit` can fail with. @since 0.1.0 */
export const EditError = Schema.Union([...write, NotText])
/** @since 0.1.0 */
export type EditError = WriteError | NotText

/** What `delete` can fail with. @since 0.1.0 */
export const DeleteError = Schema.Union([...stat, DirectoryNotEmpty, NotAFile, InvalidArgument, Conflict])
/** @since 0.1.0 */
export type DeleteError = StatError | DirectoryNotEmpty | NotAFile | InvalidArgument | Conflict

/** What `mkdir` can fail with. @since 0.1.0 */
export const MkdirError = Schema.Union(mkdir)
/** @since 0.1.0 */
export type MkdirError = StatError | AlreadyExists | NotADirectory | DiskFull

/** What `copy` and `move` can fail with. @since 0.1.0 */
export const TransferError = Schema.Union([
  ...stat,
  AlreadyExists,
  NotAFile,
  NotADirectory,
  DiskFull,
  LimitExceeded,
  InvalidArgument,
  DirectoryNotEmpty
])
/** @since 0.1.0 */
export type TransferError = Exclude<WriteError, Conflict> | DirectoryNotEmpty

/** What `symlink` can fail with. @since 0.1.0 */
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
 * Every error of every operation.
 *
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
 * A failure below the service: plain data, without operation. The tags are the error classes' tags, further fields are theirs.
 *
 * Two fields are read by the engine and never shown: `path`, set by the engine itself where a call touches several paths, and
 * `cause`, the host's own error, which goes to the debug log.
 *
 * @since 0.1.0
 */
export interface Fault {
  readonly _tag: FsError["_tag"]
  readonly [detail: string]: unknown
}

/**
 * The tags of a union, for `promote`.
 *
 * @since 0.1.0
 */
export const tagsOf = (union: { readonly members: ReadonlyArray<unknown> }): ReadonlySet<string> =>
  new Set(Object.entries(classes).flatMap(([tag, schema]) => (union.members.includes(schema) ? [tag] : [])))

/**
 * A path as errors show it, also where a program without types has given something else.
 *
 * @since 0.1.0
 */
export const shownPath = (path: unknown): string => (typeof path === "string" ? path : `(${typeof path})`)

/**
 * Makes a fault an error of the operation that met it, at the caller's own path. What the operation's type does not name, which only
 * a backend out of contract or a change underneath a call can bring about, becomes an IoError with the tag as its code.
 *
 * @since 0.1.0
 */
export const promote = (fault: Fault, operation: string, path: string, tags?: ReadonlySet<string>): FsError => {
  const { _tag, cause: _, path: at, ...details } = fault
  const shown = shownPath(at ?? path)
  if (tags === undefined || tags.has(_tag)) {
    return new (classes[_tag] as new (fields: object) => FsError)({ operation, path: shown, ...details })
  }
  const what = details["argument"] === undefined ? _tag : `invalid ${String(details["argument"])}`
  const detail = details["detail"] === undefined ? what : `${what}, ${String(details["detail"])}`
  return new IoError({ operation, path: shown, code: _tag, detail })
}

/**
 * The fault of a call that touches several paths, with the one that it met.
 *
 * @since 0.1.0
 */
export const located = (fault: Fault, path: string): Fault => (fault["path"] === undefined ? { ...fault, path } : fault)

/**
 * The fault that an error was made of, for carrying it through another port.
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
