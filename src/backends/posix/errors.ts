/**
 * Runs calls to the operating system.
 *
 * Names and metadata are read synchronously: such a call takes 1 to 20 µs, while the thread pool and a promise would
 * take 50 to 150.
 *
 * A call in the thread pool is always awaited, even by an interrupted fiber. If its descriptor were closed during the
 * call, the call could reach another file with the same number.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Kind } from "../../model/Entry.ts"
import { diskFull, notAFile } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { codeOf, isSystemError, type SystemError } from "../../model/systemError.ts"
import * as Host from "../../runtime/host.ts"
import { getSystemErrorMessage } from "../../runtime/node.ts"

// Translates error codes of the operating system to faults. No other module of the host backends interprets errors.
//
// The original error is in `cause`, for the debug log. Its message contains host paths; the other fields never do.

type Row = Fault | ((error: SystemError, kind: Kind | undefined, code: string) => Fault)

const permission: Fault = { _tag: "AccessDenied", why: "permission" }
const busy: Fault = { _tag: "AccessDenied", why: "busy" }
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

export const isFault = (value: unknown): value is Fault => typeof value === "object" && value !== null && "_tag" in value

const outcomeOf = <A>(run: () => A | Fault): A | Fault => {
  try {
    return run()
  } catch (error) {
    return fromErrno(error)
  }
}

/** 2, 4, … 128 ms, each with 20 % jitter; a quarter of a second in all. */
const retrySchedule = Schedule.exponential("2 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 7 }))

const reserveReleasers = new Set<() => void>()

/** Registers a function that closes cached descriptors when the process has none left. Returns its removal. */
export const onExhausted = (releaseReserve: () => void): (() => void) => {
  reserveReleasers.add(releaseReserve)
  return () => void reserveReleasers.delete(releaseReserve)
}

export const releaseReserves = (): void => {
  for (const releaseReserve of reserveReleasers) releaseReserve()
}

const shouldRetry = (fault: Fault): boolean => {
  if (isExhausted(fault)) releaseReserves()
  return isTransient(fault)
}

export const retryTransient = <A, R>(effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, Fault, R> =>
  Effect.retry(effect, { schedule: retrySchedule, while: shouldRetry })

/** Runs synchronous system calls, and retries transient failures. A failed call must have changed nothing. */
export const attempt = <A>(run: () => A | Fault): Effect.Effect<A, Fault> => {
  const once = Effect.suspend(() => {
    const outcome = outcomeOf(run)
    return isFault(outcome) ? Effect.fail(outcome) : Effect.succeed(outcome)
  })
  return Effect.suspend((): Effect.Effect<A, Fault> => {
    const outcome = outcomeOf(run)
    if (!isFault(outcome)) return Effect.succeed(outcome)
    return shouldRetry(outcome) ? retryTransient(once) : Effect.fail(outcome)
  })
}

export const awaitCall = <A>(start: Host.Start<A>): Effect.Effect<A, Fault> => Host.awaited(start, fromErrno)
