/**
 * Translates error codes of the operating system to faults. No other module of the host backends interprets errors.
 *
 * The original error is in `cause`, for the debug log. Its message contains host paths; the other fields never do.
 */
import { codeOf, isSystemError, type SystemError } from "../../model/systemError.ts"
import { getSystemErrorMessage } from "../../runtime/node.ts"
import type { Kind } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"

type Row = Fault | ((error: SystemError, kind: Kind | undefined, code: string) => Fault)

const permission: Fault = { _tag: "AccessDenied", why: "permission" }
const busy: Fault = { _tag: "AccessDenied", why: "busy" }
const notAFile: Fault = { _tag: "NotAFile" }
const diskFull: Fault = { _tag: "DiskFull" }
const invalid: Fault = { _tag: "InvalidPath", detail: "the disk does not take such a name" }

const ioError = (error: SystemError, _kind?: Kind, code = error.code): Fault => ({
  _tag: "IoError",
  code,
  detail: error.errno === undefined || error.errno >= 0 ? "the system reported an error" : getSystemErrorMessage(error.errno)
})

/** The only invalid argument of these calls can be a name. */
const callsWithName = new Set(["lstat", "open", "mkdir", "rmdir", "unlink", "rename", "link", "symlink", "scandir", "opendir"])

const rowsByCode: Readonly<Record<string, Row>> = {
  ENOENT: { _tag: "NotFound" },
  EEXIST: (error) => (error.syscall === "rmdir" ? { _tag: "DirectoryNotEmpty" } : { _tag: "AlreadyExists" }),
  EACCES: permission,
  EPERM: (error, kind) => (error.syscall === "unlink" && kind === "directory" ? notAFile : permission),
  ETXTBSY: permission,
  EROFS: { _tag: "AccessDenied", why: "readOnly" },
  EBUSY: busy,
  EAGAIN: busy,
  ENOTEMPTY: { _tag: "DirectoryNotEmpty" },
  ENOTDIR: { _tag: "NotADirectory" },
  EISDIR: notAFile,
  ENOSPC: diskFull,
  EDQUOT: diskFull,
  EFBIG: diskFull,
  ENAMETOOLONG: { _tag: "PathTooLong", detail: "the disk takes no name, or no path, of that length" },
  EINVAL: (error) => (callsWithName.has(error.syscall ?? "") ? invalid : ioError(error)),
  EILSEQ: invalid,
  ELOOP: { _tag: "InvalidPath", detail: "its links lead in a circle, or through too many others" },
  ETIMEDOUT: { _tag: "Timeout", detail: "the disk did not answer" },
  ERR_INVALID_ARG_VALUE: invalid
}

/** EDQUOT on Linux and macOS, for which the runtime has no name. */
const rowsByNumber: Readonly<Record<number, Row>> = { [-122]: diskFull, [-69]: diskFull }

/** Returns the fault for an error of `node:fs`. Throws other errors again, because they are defects of this program. */
export const fromErrno = (error: unknown, kind?: Kind): Fault => {
  if (!isSystemError(error)) throw error
  return faultOf(error.code, error, kind)
}

export const faultOf = (code: string, error: SystemError, kind?: Kind): Fault => {
  const row = (Object.hasOwn(rowsByCode, code) ? rowsByCode[code] : undefined) ?? rowsByNumber[error.errno ?? 0] ?? ioError
  return { ...(typeof row === "function" ? row(error, kind, code) : row), cause: error }
}

const exhaustedCodes = new Set(["EMFILE", "ENFILE"])
const transientCodes = new Set(["EBUSY", "EAGAIN", ...exhaustedCodes])

export const isExhausted = (fault: Fault): boolean => exhaustedCodes.has(codeOf(fault["cause"]) ?? "")

export const isTransient = (fault: Fault): boolean => transientCodes.has(codeOf(fault["cause"]) ?? "")
