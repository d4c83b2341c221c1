/**
 * Converts between our errors and effect's `PlatformError`.
 *
 * An error of this library gets the tag that effect's Node implementation gives in the same situation, and becomes the
 * `cause`. An error of effect is converted by the system code of its cause, if there is one, because effect's tags are too
 * coarse.
 */
import * as PlatformError from "effect/PlatformError"
import {
  diskFull,
  notFound,
  alreadyExists,
  notAFile,
  notADirectory,
  directoryNotEmpty,
  accessDenied,
  pathTooLong,
  invalidPath
} from "../../model/Fault.ts"
import { type Fault, type FsError, tagsOf, FsError as FsErrors, toFault } from "../../model/FsError.ts"

type Tag = PlatformError.SystemErrorTag | "BadArgument"

/**
 * Returns the tag for an invalid argument: Unknown for a path, as for EINVAL, and BadArgument for other arguments, as
 * in Node.
 */
const invalidArgument = (argument: string): Tag => (["path", "from", "to"].includes(argument) ? "Unknown" : "BadArgument")

const platformTags: { readonly [T in FsError["_tag"]]: Tag | ((error: Extract<FsError, { readonly _tag: T }>) => Tag) } = {
  NotFound: "NotFound",
  AlreadyExists: "AlreadyExists",
  AccessDenied: (error) => (error.why === "busy" ? "Busy" : "PermissionDenied"),
  // The path itself has been checked, so its symlinks must be the cause.
  InvalidPath: "BadResource",
  PathTooLong: "Unknown",
  NotADirectory: "BadResource",
  NotAFile: "BadResource",
  DirectoryNotEmpty: "Unknown",
  DiskFull: "Unknown",
  Timeout: "TimedOut",
  IoError: "Unknown",
  NotText: "InvalidData",
  LimitExceeded: "Unknown",
  InvalidArgument: (error) => invalidArgument(error.argument),
  Conflict: "Unknown",
  Unsupported: "BadArgument",
  Unavailable: "Unknown"
}

const module = "FileSystem"

export const badArgument = (method: string, description: string, cause?: unknown): PlatformError.PlatformError =>
  PlatformError.badArgument({ module, method, description, cause })

export const systemError = (
  method: string,
  path: string,
  _tag: PlatformError.SystemErrorTag,
  description: string,
  cause?: unknown
): PlatformError.PlatformError =>
  PlatformError.systemError({ module, method, _tag, pathOrDescriptor: path, description, cause })

export const toPlatform = (error: FsError, method: string, path: string, tagOverride?: Tag): PlatformError.PlatformError => {
  const tagOrFunction = platformTags[error._tag] as Tag | ((error: FsError) => Tag)
  const tag = tagOverride ?? (typeof tagOrFunction === "string" ? tagOrFunction : tagOrFunction(error))
  return tag === "BadArgument"
    ? badArgument(method, error.message, error)
    : systemError(method, path, tag, error.message, error)
}

const permission: Fault = accessDenied("permission")
const busy: Fault = accessDenied("busy")
const invalidHostPath: Fault = invalidPath("the underlying filesystem does not accept this path")
const timeout: Fault = { _tag: "Timeout", detail: "the underlying filesystem did not answer" }

const faultByCode: Readonly<Record<string, Fault>> = {
  ENOENT: notFound,
  EEXIST: alreadyExists,
  EACCES: permission,
  EPERM: permission,
  ETXTBSY: permission,
  EROFS: accessDenied("readOnly"),
  EBUSY: busy,
  EAGAIN: busy,
  ENOTEMPTY: directoryNotEmpty,
  ENOTDIR: notADirectory,
  EISDIR: notAFile,
  ERR_FS_EISDIR: notAFile,
  ENOSPC: diskFull,
  EDQUOT: diskFull,
  "Unknown system error -122": diskFull,
  EFBIG: diskFull,
  ENAMETOOLONG: pathTooLong("the underlying filesystem does not accept paths of this length"),
  EINVAL: invalidHostPath,
  EILSEQ: invalidHostPath,
  ELOOP: invalidHostPath,
  ERR_INVALID_ARG_VALUE: invalidHostPath,
  ETIMEDOUT: timeout
}

const faultByTag: { readonly [T in PlatformError.SystemErrorTag]?: Fault } = {
  NotFound: notFound,
  AlreadyExists: alreadyExists,
  PermissionDenied: permission,
  Busy: busy,
  WouldBlock: busy,
  TimedOut: timeout
}

const ownTags = tagsOf(FsErrors)

const isOwnError = (cause: unknown): cause is FsError =>
  cause instanceof Error && "_tag" in cause && ownTags.has(String(cause._tag)) && "operation" in cause

const codeOf = (cause: unknown): string | undefined =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : undefined

/**
 * Converts an error to a fault. `wrongKind` is the fault for a BadResource without a code.
 *
 * The message may contain paths of the underlying filesystem. The fault therefore contains the message only in `cause`, for the
 * debug log.
 */
export const fromPlatform = (error: PlatformError.PlatformError, wrongKind: Fault = notAFile): Fault => {
  const { reason } = error
  const { cause } = reason
  if (isOwnError(cause)) return { ...toFault(cause), cause }
  const code = codeOf(cause)
  const knownFault =
    code !== undefined
      ? Object.hasOwn(faultByCode, code)
        ? faultByCode[code]
        : undefined
      : reason._tag === "BadResource"
        ? wrongKind
        : faultByTag[reason._tag as PlatformError.SystemErrorTag]
  if (knownFault !== undefined) return { ...knownFault, cause: error }
  if (reason._tag === "BadArgument") return { _tag: "Unsupported", feature: `FileSystem.${reason.method}`, cause: error }
  return {
    _tag: "IoError",
    code: code ?? reason._tag,
    detail: `the underlying filesystem failed (${reason.method})`,
    cause: error
  }
}
