/**
 * What an error of `node:fs` on Windows stands for. libuv gives most Win32 errors the code that POSIX has for them, and those mean here
 * what they mean on every host; a number of Win32 says more where one comes through.
 */
import type { Kind } from "../../../model/Entry.ts"
import type { Fault } from "../../../model/FsError.ts"
import { isSystemError } from "../../../model/systemError.ts"
import { faultOf } from "../errno.ts"

/** The code whose meaning a number of Win32 has; libuv has ENOENT for 123, 161 and 267, and none for 258 and 1295. */
const codes: Readonly<Record<number, string>> = {
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
 * The fault that an error of `node:fs` on Windows stands for; libuv's own numbers are negative, those of Win32 are not. `kind` is what
 * the call was made on, where that is known. What is not an error of the system is a mistake in this program, and is thrown on.
 */
export const fromWindows = (error: unknown, kind?: Kind): Fault => {
  if (!isSystemError(error)) throw error
  return faultOf(codes[error.errno ?? 0] ?? error.code, error, kind)
}

const denied = new Set(["EPERM", "EACCES"])

const translated = (error: unknown): string | undefined =>
  isSystemError(error) ? (codes[error.errno ?? 0] ?? error.code) : undefined

/** Whether the system's words were those for a lack of permission. */
export const isDenied = (error: unknown): boolean => denied.has(translated(error) ?? "")

/**
 * Whether another program's handle may be what is in the way, so that the same call may succeed once that is closed. To replace an open
 * file is refused with the words for a lack of permission, so of a rename this says "may be": what has another reason (a read-only
 * file, a directory in its place) is to be looked for first.
 */
export const isBusy = (error: unknown): boolean =>
  translated(error) === "EBUSY" || (isDenied(error) && isSystemError(error) && error.syscall === "rename")
