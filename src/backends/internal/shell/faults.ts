/**
 * Translates failures in the container to faults, by the status of a shell function or the message of a tool.
 *
 * In the C locale, the messages are those of the C library. The tables agree with `errno.ts`.
 */
import type { Fault } from "../../../model/FsError.ts"
import type { Reply } from "./session.ts"

const permission: Fault = { _tag: "AccessDenied", why: "permission" }
const busy: Fault = { _tag: "AccessDenied", why: "busy" }
const diskFull: Fault = { _tag: "DiskFull" }
const notAFile: Fault = { _tag: "NotAFile" }
const notFound: Fault = { _tag: "NotFound" }
export const pathTooLong: Fault = { _tag: "PathTooLong", detail: "the disk takes no name, or no path, of that length" }
const linkLoop: Fault = { _tag: "InvalidPath", detail: "its links lead in a circle, or through too many others" }
const timeout: Fault = { _tag: "Timeout", detail: "the disk did not answer" }

export const invalidName: Fault = { _tag: "InvalidPath", detail: "the disk does not take such a name" }

const faultsByStatus: Readonly<Record<number, Fault>> = {
  20: { _tag: "Unavailable", detail: "the root is not there any more, or is another directory" },
  21: notFound,
  22: { _tag: "NotADirectory" },
  23: notAFile,
  24: { _tag: "AlreadyExists" },
  25: permission,
  26: { _tag: "IoError", detail: "what is being written has been changed by others" },
  27: { _tag: "InvalidArgument", argument: "path", detail: "it is not a symbolic link" },
  28: { _tag: "InvalidArgument", argument: "to", detail: "a directory cannot be moved into itself" },
  29: { _tag: "IoError", code: "EXDEV", detail: "cross-device link not permitted" },
  31: { _tag: "InvalidArgument", argument: "mode", detail: "a link has no permission bits of its own" }
}

const ioError = (code: string, detail: string): Fault => ({ _tag: "IoError", code, detail })

const faultsByMessage: ReadonlyArray<readonly [words: string, fault: Fault]> = [
  ["No such file or directory", notFound],
  ["No such file", notFound],
  ["no such file", notFound],
  ["Directory nonexistent", notFound],
  ["nonexistent directory", notFound],
  ["Not a directory", { _tag: "NotADirectory" }],
  ["Is a directory", notAFile],
  ["File exists", { _tag: "AlreadyExists" }],
  ["Directory not empty", { _tag: "DirectoryNotEmpty" }],
  ["Permission denied", permission],
  ["Operation not permitted", permission],
  ["Text file busy", permission],
  ["Read-only file system", { _tag: "AccessDenied", why: "readOnly" }],
  ["Device or resource busy", busy],
  ["Resource busy", busy],
  ["No space left on device", diskFull],
  ["Disk quota exceeded", diskFull],
  ["Quota exceeded", diskFull],
  ["File too large", diskFull],
  ["File name too long", pathTooLong],
  ["Filename too long", pathTooLong],
  ["Argument list too long", pathTooLong],
  ["Too many levels of symbolic links", linkLoop],
  ["Symbolic link loop", linkLoop],
  ["Invalid or incomplete multibyte or wide character", invalidName],
  ["Connection timed out", timeout],
  ["Operation timed out", timeout],
  ["Invalid cross-device link", ioError("EXDEV", "cross-device link not permitted")],
  ["Cross-device link", ioError("EXDEV", "cross-device link not permitted")],
  ["Too many open files", ioError("EMFILE", "too many open files")],
  ["No file descriptors available", ioError("EMFILE", "too many open files")],
  ["Input/output error", ioError("EIO", "i/o error")],
  ["I/O error", ioError("EIO", "i/o error")],
  ["Invalid argument", ioError("EINVAL", "invalid argument")]
]

const endsWith = (line: string): Fault | undefined => faultsByMessage.find(([words]) => line.endsWith(words))?.[1]

export const errorMessages = (errors: string): ReadonlyArray<string> =>
  errors
    .split("\n")
    .filter((line) => line.includes(": "))
    .reverse()

const shorten = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text)

/** Returns the fault of a failed request. Messages contain paths, so they are only in `cause` for the log. */
export const faultOf = ({ errors, status }: Reply): Fault => {
  const known = faultsByStatus[status]
  if (known !== undefined) return known
  for (const line of errorMessages(errors)) {
    const fault = endsWith(line)
    if (fault !== undefined) return { ...fault, cause: shorten(line) }
  }
  return { _tag: "IoError", detail: "a tool in the container failed", cause: shorten(errors) }
}
