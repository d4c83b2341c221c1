/**
 * Converts errors of this library to the errors that Node's `fs` throws: `code`, `errno`, `syscall`, `path`, `dest` and
 * Node's message. The values of `errno` are the numbers of Linux on every system.
 */
import type { FsError } from "../model/FsError.ts"
import { parse, uncreatable } from "../model/FsPath.ts"

/** An error in the form of Node's system errors. */
export interface ErrnoError extends Error {
  code: string
  errno: number
  syscall?: string
  path?: string
  dest?: string
}

const errors = {
  EPERM: [1, "operation not permitted"],
  ENOENT: [2, "no such file or directory"],
  EIO: [5, "i/o error"],
  ENXIO: [6, "no such device or address"],
  EBADF: [9, "bad file descriptor"],
  EAGAIN: [11, "resource temporarily unavailable"],
  ENOMEM: [12, "not enough memory"],
  EACCES: [13, "permission denied"],
  EBUSY: [16, "resource busy or locked"],
  EEXIST: [17, "file already exists"],
  EXDEV: [18, "cross-device link not permitted"],
  ENOTDIR: [20, "not a directory"],
  EISDIR: [21, "illegal operation on a directory"],
  EINVAL: [22, "invalid argument"],
  EMFILE: [24, "too many open files"],
  EFBIG: [27, "file too large"],
  ENOSPC: [28, "no space left on device"],
  EROFS: [30, "read-only file system"],
  EMLINK: [31, "too many links"],
  ENAMETOOLONG: [36, "name too long"],
  ENOSYS: [38, "function not implemented"],
  ENOTEMPTY: [39, "directory not empty"],
  ELOOP: [40, "too many symbolic links encountered"],
  EILSEQ: [84, "illegal byte sequence"],
  ENOTSUP: [95, "operation not supported on socket"],
  ETIMEDOUT: [110, "connection timed out"]
} as const satisfies Record<string, readonly [errno: number, text: string]>

/** The name of a system error, such as ENOENT. */
export type Code = keyof typeof errors

/** Returns the positive number of an error, and its text. */
export const describe = (code: Code): { readonly errno: number; readonly text: string } => ({
  errno: errors[code][0],
  text: errors[code][1]
})

const isCode = (code: string | undefined): code is Code => code !== undefined && Object.hasOwn(errors, code)

/** The call that failed, as Node's errors describe it. */
export interface FailedCall {
  readonly syscall: string
  readonly path?: string | undefined
  readonly dest?: string | undefined
}

/** Returns an error with the properties and the message of Node's system errors. */
export const errnoError = (code: Code, { dest, path, syscall }: FailedCall, cause?: unknown): ErrnoError => {
  const where = path === undefined ? "" : dest === undefined ? ` '${path}'` : ` '${path}' -> '${dest}'`
  const error = new Error(`${code}: ${errors[code][1]}, ${syscall}${where}`, cause === undefined ? undefined : { cause })
  return Object.assign(error, {
    errno: -errors[code][0],
    code,
    syscall,
    ...(path === undefined ? undefined : { path }),
    ...(dest === undefined ? undefined : { dest })
  })
}

const deniedCodes = {
  permission: "EACCES",
  readOnly: "EROFS",
  escape: "EACCES",
  root: "EBUSY",
  link: "EACCES",
  policy: "EACCES",
  busy: "EBUSY"
} as const

/**
 * Returns the code for InvalidPath. If the path itself is valid for a new entry, the error means a loop of symlinks: ELOOP.
 * Otherwise the code is EACCES for a path with a segment "..", and EINVAL for any other path.
 */
const invalidPathCode = (path: string): Code => {
  const parsed = parse(path)
  if (typeof parsed === "string") return uncreatable(parsed) === undefined ? "ELOOP" : "EINVAL"
  return path.split("/").includes("..") ? "EACCES" : "EINVAL"
}

const codes = {
  NotFound: "ENOENT",
  AlreadyExists: "EEXIST",
  PathTooLong: "ENAMETOOLONG",
  NotADirectory: "ENOTDIR",
  NotAFile: "EISDIR",
  DirectoryNotEmpty: "ENOTEMPTY",
  DiskFull: "ENOSPC",
  Timeout: "ETIMEDOUT",
  LimitExceeded: "EFBIG",
  NotText: "EILSEQ",
  InvalidArgument: "EINVAL",
  Conflict: "EAGAIN",
  Unsupported: "ENOSYS",
  Unavailable: "EIO"
} as const

/** Returns the code that a system call would return instead of an error of this library. */
export const codeOf = (error: FsError): Code => {
  switch (error._tag) {
    case "AccessDenied":
      return deniedCodes[error.why]
    case "InvalidPath":
      return invalidPathCode(error.path)
    case "IoError":
      return isCode(error.code) ? error.code : "EIO"
    default:
      return codes[error._tag]
  }
}

/** Converts an error of this library to the error that Node would throw. The original becomes the `cause`. */
export const fromFsError = (error: FsError, call: FailedCall): ErrnoError => errnoError(codeOf(error), call, error)
