/** Runs calls of `node:fs` as effects, and translates their errors to faults. */
import * as Effect from "effect/Effect"
import type { Kind } from "../model/Entry.ts"
import * as Fault from "../model/Fault.ts"
import { isSystemError, type SystemError } from "../model/realms.ts"
import { Fs, getSystemErrorMessage } from "./node.ts"

export const invalidName: Fault.Fault = Fault.invalidPath("the disk does not permit this name")

const permission = Fault.accessDenied("permission")
const busy = Fault.accessDenied("busy")

type Row = Fault.Fault | ((error: Partial<SystemError>, kind: Kind | undefined, code: string) => Fault.Fault)

const otherError = (error: Partial<SystemError>, _kind: Kind | undefined, code: string): Fault.Fault =>
  Fault.ioError(
    error.errno === undefined || error.errno >= 0 ? "the system reported an error" : getSystemErrorMessage(error.errno),
    code
  )

/** The system calls for which EINVAL means an invalid name, because their other arguments are always valid. */
const callsWithName = new Set(["lstat", "open", "mkdir", "rmdir", "unlink", "rename", "link", "symlink", "scandir", "opendir"])

const rowsByCode: Readonly<Record<string, Row>> = {
  ENOENT: Fault.notFound,
  EEXIST: (error) => (error.syscall === "rmdir" ? Fault.directoryNotEmpty : Fault.alreadyExists),
  EACCES: permission,
  EPERM: (error, kind) => (error.syscall === "unlink" && kind === "directory" ? Fault.notAFile : permission),
  ETXTBSY: permission,
  EROFS: Fault.accessDenied("readOnly"),
  EBUSY: busy,
  EAGAIN: busy,
  ENOTEMPTY: Fault.directoryNotEmpty,
  ENOTDIR: Fault.notADirectory,
  EISDIR: Fault.notAFile,
  ENOSPC: Fault.diskFull,
  EDQUOT: Fault.diskFull,
  EFBIG: Fault.diskFull,
  ENAMETOOLONG: Fault.pathTooLong("the name or the path is longer than the disk permits"),
  EINVAL: (error) => (callsWithName.has(error.syscall ?? "") ? invalidName : otherError(error, undefined, "EINVAL")),
  EILSEQ: invalidName,
  ELOOP: Fault.invalidPath("its symbolic links form a loop, or there are too many of them"),
  ETIMEDOUT: { _tag: "Timeout", detail: "the disk did not respond in time" },
  ERR_INVALID_ARG_VALUE: invalidName
}

/** The error numbers of EDQUOT (quota exceeded) on Linux and macOS. Node has no name for this error. */
const rowsByNumber: Readonly<Record<number, Row>> = { [-122]: Fault.diskFull, [-69]: Fault.diskFull }

const translate = (code: string, error: Partial<SystemError>, kind?: Kind): Fault.Fault => {
  const row = (Object.hasOwn(rowsByCode, code) ? rowsByCode[code] : undefined) ?? rowsByNumber[error.errno ?? 0] ?? otherError
  return typeof row === "function" ? row(error, kind, code) : row
}

export const faultOfCode = (code: string): Fault.Fault => translate(code, {})

/**
 * Returns the fault for an error of `node:fs`. Rethrows any other error, because it is a defect of this program.
 *
 * The original error is in `cause`, for the debug log. Its message contains host paths; the other fields of the fault
 * never contain host paths. `kind` is the kind of the entry. `code` replaces the error's own code if a more precise
 * code is known.
 */
export const faultOf = (error: unknown, kind?: Kind, code?: string): Fault.Fault => {
  if (!isSystemError(error)) throw error
  return { ...translate(code ?? error.code, error, kind), cause: error }
}

/** Runs synchronous calls that throw system errors or return a fault. `toFault` translates the errors. */
export const attempt = <A>(run: () => A | Fault.Fault, toFault: typeof faultOf = faultOf): Effect.Effect<A, Fault.Fault> =>
  Effect.suspend(() => {
    try {
      const outcome = run()
      return Fault.is(outcome) ? Effect.fail(outcome) : Effect.succeed(outcome)
    } catch (error) {
      return Effect.fail(toFault(error))
    }
  })

/** A function that starts a call in the thread pool. The call reports its end to the callback `done`. */
export type Start<A> = (done: (error: Error | null, value: A) => void) => void

/**
 * Starts a call in the thread pool and waits for its end, uninterruptibly. Otherwise the descriptor could be closed
 * during the call, and the call could affect another file with the same descriptor.
 */
export const awaited = <A, E>(start: Start<A>, toError: (error: unknown) => E): Effect.Effect<A, E> =>
  Effect.uninterruptible(
    Effect.callback<A, E>((resume) =>
      start((error, value) => resume(error === null ? Effect.succeed(value) : Effect.fail(toError(error))))
    )
  )

export const awaitCall = <A>(start: Start<A>): Effect.Effect<A, Fault.Fault> => awaited(start, faultOf)

/** Flushes the bytes of a file, or the names in a directory, to the disk. */
export const sync = <E>(descriptor: number, toError: (error: unknown) => E): Effect.Effect<void, E> =>
  awaited<void, E>((done) => Fs.fsync(descriptor, (error) => done(error, undefined)), toError)

/** Writes all bytes at the current position. Fails with `full` if the disk accepts no bytes. */
export const writeFully = <E>(
  descriptor: number,
  bytes: Uint8Array,
  toError: (error: unknown) => E,
  full: E,
  done = 0
): Effect.Effect<void, E> =>
  done === bytes.length
    ? Effect.void
    : Effect.flatMap(
        awaited<number, E>((end) => Fs.write(descriptor, bytes, done, bytes.length - done, null, end), toError),
        (written) => (written === 0 ? Effect.fail(full) : writeFully(descriptor, bytes, toError, full, done + written))
      )

/** Writes all bytes at the current position, synchronously. Throws system errors. */
export const writeNow = (descriptor: number, bytes: Uint8Array): void => {
  for (let done = 0; done < bytes.length;) {
    const written = Fs.writeSync(descriptor, bytes, done, bytes.length - done)
    if (written === 0) throw Object.assign(new Error("the disk accepts no bytes"), { code: "ENOSPC", syscall: "write" })
    done += written
  }
}

/** Writes all bytes as `writeNow` does, and closes the file, also after an error. */
export const writeAndClose = (descriptor: number, bytes: Uint8Array): void => {
  let isOpen = true
  try {
    writeNow(descriptor, bytes)
    isOpen = false
    // Some network disks report only at the close that the content was lost.
    Fs.closeSync(descriptor)
  } catch (error) {
    if (isOpen) closeQuietly(descriptor)
    throw error
  }
}

/** Flushes the names in a directory, so that they survive a loss of power. */
export const syncDirectory = <E>(path: string, toError: (error: unknown) => E): Effect.Effect<void, E> =>
  Effect.acquireUseRelease(
    Effect.try({ try: () => Fs.openSync(path, Fs.constants.O_RDONLY), catch: toError }),
    (descriptor) => sync(descriptor, toError),
    (descriptor) => Effect.sync(() => closeQuietly(descriptor))
  )

/** Does the same as `syncDirectory`, synchronously. Throws system errors. */
export const syncDirectoryNow = (path: string): void => {
  const descriptor = Fs.openSync(path, Fs.constants.O_RDONLY)
  try {
    Fs.fsyncSync(descriptor)
  } finally {
    Fs.closeSync(descriptor)
  }
}

/** Reads from the offset until the array is full or the file ends, and returns the number of bytes. */
export const readAt = (descriptor: number, bytes: Uint8Array, offset: number): number => {
  let done = 0
  while (done < bytes.length) {
    const read = Fs.readSync(descriptor, bytes, done, bytes.length - done, offset + done)
    if (read === 0) break
    done += read
  }
  return done
}

/** Closes a descriptor and ignores errors. Use this function only if a failed close cannot lose written data. */
export const closeQuietly = (descriptor: number): void => {
  try {
    Fs.closeSync(descriptor)
  } catch {
    // The descriptor is closed despite the error.
  }
}

/**
 * Removes a file of this library and ignores errors. A file that remains is a leftover, which a later sweep removes.
 */
export const unlinkQuietly = (path: string | Buffer): void => {
  try {
    Fs.unlinkSync(path)
  } catch {
    // The file is already gone, or a later sweep removes it.
  }
}
