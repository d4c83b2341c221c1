/**
 * Runs calls to a Windows disk.
 *
 * While another program (a virus scanner, an indexer, an editor) has a file open, Windows may refuse calls on it, usually
 * for a short time. So calls are retried, except deletions, which fail immediately.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Kind } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { isSystemError } from "../../model/realms.ts"
import * as Host from "../../runtime/host.ts"
import { isExhausted } from "../posix/errors.ts"

// Translates errors of `node:fs` on Windows to faults.
//
// libuv maps most Win32 errors to POSIX codes, which have the same meaning as on other hosts. If libuv also passes the
// number of the Win32 error, this number is more precise.

/**
 * The POSIX codes of Win32 errors, by error number. libuv reports ENOENT for 123, 161 and 267, and has no code for 258
 * and 1295.
 */
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
 * Returns the fault for an error of `node:fs`. The error numbers of libuv are negative, and the numbers of Win32 are
 * not.
 *
 * Rethrows any other error, because it is a defect of this program.
 */
export const fromWindows = (error: unknown, kind?: Kind): Fault => Host.faultOf(error, kind, translateCode(error))

const deniedCodes = new Set(["EPERM", "EACCES"])

const translateCode = (error: unknown): string | undefined =>
  isSystemError(error) ? (codesByWin32Number[error.errno ?? 0] ?? error.code) : undefined

export const isDenied = (error: unknown): boolean => deniedCodes.has(translateCode(error) ?? "")

/**
 * Tests whether another program's open handle may be the cause of an error. A retry may then succeed after the handle
 * is closed.
 *
 * Windows reports the replacement of an open file as a lack of permission. So for a rename, callers must first exclude
 * other causes, such as a read-only file or a directory.
 */
export const isBusy = (error: unknown): boolean =>
  translateCode(error) === "EBUSY" || (isDenied(error) && isSystemError(error) && error.syscall === "rename")

/** The pauses before retries: 50, 100, … 800 ms, each with 20 % jitter, and 1.5 seconds in total. */
const retrySchedule = Schedule.exponential("50 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 5 }))

export const isInUse = (fault: Fault): boolean => isBusy(fault["cause"])

const isPassing = (fault: Fault): boolean => isInUse(fault) || isExhausted(fault)

/**
 * Changes AccessDenied to `busy` if another handle is the cause. Windows reports the replacement of an open file as a
 * lack of permission. The callers have already excluded all other causes.
 */
const withBusy = (fault: Fault): Fault => (fault._tag === "AccessDenied" && isInUse(fault) ? { ...fault, why: "busy" } : fault)

const toFault = (error: unknown): Fault => withBusy(fromWindows(error))

export const attemptOnce = <A>(run: () => A | Fault): Effect.Effect<A, Fault> => Host.attempt(run, toFault)

export const retryTransient = <A, R>(effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, Fault, R> =>
  Effect.retry(effect, { schedule: retrySchedule, while: isPassing })

/** Runs synchronous system calls, and retries transient failures. A failed call must not have changed anything. */
export const attempt = <A>(run: () => A | Fault): Effect.Effect<A, Fault> => retryTransient(attemptOnce(run))

export const awaitCall = <A>(start: Host.Start<A>): Effect.Effect<A, Fault> => Host.awaited(start, toFault)
