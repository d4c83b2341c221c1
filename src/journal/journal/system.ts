/** Runs system calls and turns their errors into JournalErrors, without the host's paths. */
import * as Effect from "effect/Effect"
import { isSystemError } from "../../model/systemError.ts"
import { Fs, getSystemErrorMessage } from "../../runtime/node.ts"
import { JournalError } from "../errors.ts"

/** Returns a system error as a JournalError. Throws other errors, since they are bugs of this program. */
export const ioError = (operation: string, error: unknown): JournalError => {
  if (error instanceof JournalError) return error
  if (!isSystemError(error)) throw error
  const { code, errno } = error
  const said = errno === undefined || errno >= 0 ? "the system reported an error" : getSystemErrorMessage(errno)
  return new JournalError({ operation, reason: "io", detail: `${code}: ${said}` })
}

export const attempt = <A>(operation: string, run: () => A): Effect.Effect<A, JournalError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(run())
    } catch (error) {
      return Effect.fail(ioError(operation, error))
    }
  })

/** Starts a call of the thread pool and waits for its end, uninterruptibly. */
export const awaited = <A>(
  operation: string,
  start: (done: (error: Error | null, value: A) => void) => void
): Effect.Effect<A, JournalError> =>
  Effect.uninterruptible(
    Effect.callback<A, JournalError>((resume) =>
      start((error, value) => resume(error === null ? Effect.succeed(value) : Effect.fail(ioError(operation, error))))
    )
  )

export const sync = (operation: string, descriptor: number): Effect.Effect<void, JournalError> =>
  awaited<void>(operation, (done) => Fs.fsync(descriptor, (error) => done(error, undefined)))

export const syncDirectory = (operation: string, directory: string): Effect.Effect<void, JournalError> =>
  Effect.acquireUseRelease(
    attempt(operation, () => Fs.openSync(directory, Fs.constants.O_RDONLY)),
    (descriptor) => sync(operation, descriptor),
    (descriptor) => Effect.sync(() => closeQuietly(descriptor))
  )

/** Closes a descriptor and ignores errors. Only for descriptors without unconfirmed writes. */
export const closeQuietly = (descriptor: number): void => {
  try {
    Fs.closeSync(descriptor)
  } catch {
    // The descriptor is closed even so.
  }
}

export const unlinkQuietly = (path: string): void => {
  try {
    Fs.unlinkSync(path)
  } catch {
    // The file is already gone, or the next sweep removes it.
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
