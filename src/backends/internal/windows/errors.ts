/**
 * Translates errors of `node:fs` on Windows to faults.
 *
 * libuv maps most Win32 errors to POSIX codes, which have the same meaning as on other hosts. If a Win32 number is
 * passed through, it is more precise.
 */
import type { Kind } from "../../../model/Entry.ts"
import type { Fault } from "../../../model/FsError.ts"
import { isSystemError } from "../../../model/systemError.ts"
import { faultOf } from "../errno.ts"

/** Codes by Win32 error number. libuv reports ENOENT for 123, 161 and 267, and has no code for 258 and 1295. */
const codesByWin32Number: Readonly<Record<number, string>> = {
  1: "EISDIR",
  2: "ENOENT",
  3: "ENOENT",
  4: "EMFILE",
  5: "EPERM",
  17: "EXDEV",
  19: "EROFS",
  32: "EBUSY",
  33: "EBUSY",
  39: "ENOSPC",
  80: "EEXIST",
  82: "ENOSPC",
  112: "ENOSPC",
  121: "ETIMEDOUT",
  123: "EILSEQ",
  145: "ENOTEMPTY",
  161: "EILSEQ",
  183: "EEXIST",
  206: "ENAMETOOLONG",
  258: "ETIMEDOUT",
  267: "ENOTDIR",
  1295: "EDQUOT",
  1314: "EPERM",
  1921: "ELOOP"
}

/**
 * Returns the fault for an error of `node:fs`. Numbers of libuv are negative, those of Win32 are not.
 *
 * Throws other errors again, because they are defects of this program.
 */
export const fromWindows = (error: unknown, kind?: Kind): Fault => {
  if (!isSystemError(error)) throw error
  return faultOf(codesByWin32Number[error.errno ?? 0] ?? error.code, error, kind)
}

const deniedCodes = new Set(["EPERM", "EACCES"])

const translateCode = (error: unknown): string | undefined =>
  isSystemError(error) ? (codesByWin32Number[error.errno ?? 0] ?? error.code) : undefined

export const isDenied = (error: unknown): boolean => deniedCodes.has(translateCode(error) ?? "")

/**
 * Tests whether another program's handle may be the cause, so that a retry may succeed once it is closed.
 *
 * Windows reports the replacement of an open file as a lack of permission. So for a rename, callers must first exclude
 * other causes, such as a read-only file or a directory.
 */
export const isBusy = (error: unknown): boolean =>
  translateCode(error) === "EBUSY" || (isDenied(error) && isSystemError(error) && error.syscall === "rename")
