/** The root inside the container. Each request names its root, because one shell may serve several roots. */
import * as Effect from "effect/Effect"
import type { FileStat, Kind } from "../../../model/Entry.ts"
import { alreadyExists, ioError, notADirectory, notAFile, notFound, unavailable } from "../../../model/Fault.ts"
import { faultOfCode, invalidName } from "../../../runtime/host.ts"
import { intoItself, linkMode, notALink, permission } from "../../faults.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, root } from "../../../model/FsPath.ts"
import { isBytes } from "../../../model/realms.ts"
import { hostPath } from "../../posix/place.ts"
import { statOf } from "../../posix/read.ts"
import type { Reply, Request, Session } from "./session.ts"

const kinds: Readonly<Record<number, Kind>> = { 0o100000: "file", 0o040000: "directory", 0o120000: "symlink" }

export const kindOf = (mode: number): Kind => kinds[mode & 0o170000] ?? "other"

/**
 * The form of a stat: size, permissions, owner, mode, seconds of the last modification and of birth, and both times with
 * fractions.
 */
const statPattern = /^(\d+) \d+ \d+:\d+ ([0-9a-f]+) (-?\d+) (\S+) ([^/]*)\/([^/]*)\s*$/

/**
 * The maximum length of a stat. Programs in the container may print anything, and the pattern is slow for texts with
 * many spaces.
 */
const maxLineLength = 400

const millisWithinSecond = (time: string): number => Number((/\.(\d{1,3})/.exec(time)?.[1] ?? "0").padEnd(3, "0"))

const millisOf = (seconds: string, time: string): number => Number(seconds) * 1000 + millisWithinSecond(time)

/**
 * Parses a stat. Returns `undefined` for invalid output. If the time of birth is unknown, its field is not a number.
 */
export const toStat = (path: FsPath, text: string): FileStat | undefined => {
  const found = text.length > maxLineLength ? null : statPattern.exec(text)
  if (found === null) return undefined
  const [, size = "", hex = "", modified = "", born = "", modifiedAt = "", createdAt = ""] = found
  const mode = Number.parseInt(hex, 16)
  return statOf(path, kindOf(mode), Number(size), millisOf(born, createdAt), millisOf(modified, modifiedAt), mode)
}

// Translates failures in the container to faults, by the status of a shell function or the message of a tool.
//
// In the C locale, tools print the error messages of the C library.

const faultsByStatus: Readonly<Record<number, Fault>> = {
  20: unavailable("the root directory has been moved, replaced or removed"),
  21: notFound,
  22: notADirectory,
  23: notAFile,
  24: alreadyExists,
  25: permission,
  26: ioError("another process changed the file during the operation"),
  27: notALink,
  28: intoItself,
  29: ioError("cross-device link not permitted", "EXDEV"),
  31: linkMode
}

const codesByMessage: ReadonlyArray<readonly [words: string, code: string]> = [
  ["No such file or directory", "ENOENT"],
  ["No such file", "ENOENT"],
  ["no such file", "ENOENT"],
  ["Directory nonexistent", "ENOENT"],
  ["nonexistent directory", "ENOENT"],
  ["Not a directory", "ENOTDIR"],
  ["Is a directory", "EISDIR"],
  ["File exists", "EEXIST"],
  ["Directory not empty", "ENOTEMPTY"],
  ["Permission denied", "EACCES"],
  ["Operation not permitted", "EPERM"],
  ["Text file busy", "ETXTBSY"],
  ["Read-only file system", "EROFS"],
  ["Device or resource busy", "EBUSY"],
  ["Resource busy", "EBUSY"],
  ["No space left on device", "ENOSPC"],
  ["Disk quota exceeded", "EDQUOT"],
  ["Quota exceeded", "EDQUOT"],
  ["File too large", "EFBIG"],
  ["File name too long", "ENAMETOOLONG"],
  ["Filename too long", "ENAMETOOLONG"],
  ["Argument list too long", "ENAMETOOLONG"],
  ["Too many levels of symbolic links", "ELOOP"],
  ["Symbolic link loop", "ELOOP"],
  ["Invalid or incomplete multibyte or wide character", "EILSEQ"],
  ["Connection timed out", "ETIMEDOUT"],
  ["Operation timed out", "ETIMEDOUT"],
  ["Invalid cross-device link", "EXDEV"],
  ["Cross-device link", "EXDEV"],
  ["Too many open files", "EMFILE"],
  ["No file descriptors available", "EMFILE"],
  ["Input/output error", "EIO"],
  ["I/O error", "EIO"],
  ["Invalid argument", "EINVAL"]
]

const descriptions: Readonly<Record<string, string>> = {
  EXDEV: "cross-device link not permitted",
  EMFILE: "too many open files",
  EIO: "i/o error",
  EINVAL: "invalid argument"
}

const faultOfLine = (line: string): Fault | undefined => {
  const code = codesByMessage.find(([words]) => line.endsWith(words))?.[1]
  if (code === undefined) return undefined
  const description = descriptions[code]
  return description === undefined ? faultOfCode(code) : ioError(description, code)
}

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
    const fault = faultOfLine(line)
    if (fault !== undefined) return { ...fault, cause: shorten(line) }
  }
  return { ...ioError("a tool in the container failed"), cause: shorten(errors) }
}

export interface ShellRoot {
  readonly directory: string | Uint8Array
  readonly sendRequest: (request: Request) => Effect.Effect<Reply, Fault>
}

const nameTooLong = faultOfCode("ENAMETOOLONG")

const maxNameBytes = 255
/** The maximum length of a path in bytes: one less than the system's limit, which includes the terminating byte. */
const maxPathBytes = 4095

export const nameOf = (path: FsPath): Uint8Array | Fault => {
  if (path === root) return Buffer.from(".")
  const name = Buffer.concat([Buffer.from("."), Buffer.from(hostPath("/", path))])
  if (name.includes(0)) return invalidName
  for (let from = 2, end = 0; end !== -1; from = end + 1) {
    end = name.indexOf("/", from)
    if ((end === -1 ? name.length : end) - from > maxNameBytes) return nameTooLong
  }
  return name.length > maxPathBytes ? nameTooLong : name
}

export const isFault = (value: Uint8Array | Fault): value is Fault => !isBytes(value)

const unexpectedAnswer = ioError("the shell of the container returned a malformed answer")

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
