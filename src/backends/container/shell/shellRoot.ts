/** The root inside the container. Each request names its root, because one shell may serve several. */
import * as Effect from "effect/Effect"
import type { FileStat, Kind } from "../../../model/Entry.ts"
import { diskFull, notAFile, notFound } from "../../../model/Fault.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, root } from "../../../model/FsPath.ts"
import { isBytes } from "../../../model/bytes.ts"
import { hostPath } from "../../posix/place.ts"
import { statOf } from "../../posix/read.ts"
import type { Reply, Request, Session } from "./session.ts"

const kinds: Readonly<Record<number, Kind>> = { 0o100000: "file", 0o040000: "directory", 0o120000: "symlink" }

export const kindOf = (mode: number): Kind => kinds[mode & 0o170000] ?? "other"

/** Size, permissions, owner, mode, seconds of last change and birth, and both times with fractions. */
const statPattern = /^(\d+) \d+ \d+:\d+ ([0-9a-f]+) (-?\d+) (\S+) ([^/]*)\/([^/]*)\s*$/

/** Programs inside may print anything, and the expression takes longer the more spaces it contains. */
const maxLineLength = 400

const millisWithinSecond = (time: string): number => Number((/\.(\d{1,3})/.exec(time)?.[1] ?? "0").padEnd(3, "0"))

const millisOf = (seconds: string, time: string): number => Number(seconds) * 1000 + millisWithinSecond(time)

/** Parses a stat. Returns `undefined` for invalid output. The field of an unknown birth contains no number. */
export const toStat = (path: FsPath, text: string): FileStat | undefined => {
  const found = text.length > maxLineLength ? null : statPattern.exec(text)
  if (found === null) return undefined
  const [, size = "", hex = "", modified = "", born = "", modifiedAt = "", createdAt = ""] = found
  const mode = Number.parseInt(hex, 16)
  return statOf(path, kindOf(mode), Number(size), millisOf(born, createdAt), millisOf(modified, modifiedAt), mode)
}

// Translates failures in the container to faults, by the status of a shell function or the message of a tool.
//
// In the C locale, the messages are those of the C library. The tables agree with `errno.ts`.

const permission: Fault = { _tag: "AccessDenied", why: "permission" }
const busy: Fault = { _tag: "AccessDenied", why: "busy" }
const pathTooLong: Fault = { _tag: "PathTooLong", detail: "the disk takes no name, or no path, of that length" }
const linkLoop: Fault = { _tag: "InvalidPath", detail: "its links lead in a circle, or through too many others" }
const timeout: Fault = { _tag: "Timeout", detail: "the disk did not answer" }

const invalidName: Fault = { _tag: "InvalidPath", detail: "the disk does not take such a name" }

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

export interface ShellRoot {
  readonly directory: string | Uint8Array
  readonly sendRequest: (request: Request) => Effect.Effect<Reply, Fault>
}

const maxNameBytes = 255
/** Bytes of a path: one less than the system's limit, which includes the terminating byte. */
const maxPathBytes = 4095

export const nameOf = (path: FsPath): Uint8Array | Fault => {
  if (path === root) return Buffer.from(".")
  const name = Buffer.concat([Buffer.from("."), Buffer.from(hostPath("/", path))])
  if (name.includes(0)) return invalidName
  for (let from = 2, end = 0; end !== -1; from = end + 1) {
    end = name.indexOf("/", from)
    if ((end === -1 ? name.length : end) - from > maxNameBytes) return pathTooLong
  }
  return name.length > maxPathBytes ? pathTooLong : name
}

export const isFault = (value: Uint8Array | Fault): value is Fault => !isBytes(value)

const unexpectedAnswer: Fault = { _tag: "IoError", detail: "the container's shell answered what was not asked for" }

export const succeedOrUnexpected = <A>(value: A | undefined): Effect.Effect<A, Fault> =>
  value === undefined ? Effect.fail(unexpectedAnswer) : Effect.succeed(value)

export const make = (session: Session, directory: string): Effect.Effect<ShellRoot, Fault> =>
  Effect.gen(function* () {
    const reply = yield* session.request({ call: "root", arguments: [directory], repeats: true })
    if (reply.status !== 0) return yield* Effect.fail(faultOf(reply))
    const found = /^([^]+)\n(\d+:\d+)\n$/.exec(reply.output.toString("latin1"))
    const [, real, identity] = yield* succeedOrUnexpected(found === null ? undefined : [...found])
    const at = Buffer.from(real!, "latin1")
    return {
      directory: at,
      sendRequest: ({ arguments: args, call, ...rest }) =>
        session.request({ call: "inside", arguments: [at, identity!, call, ...args], ...rest })
    }
  })
