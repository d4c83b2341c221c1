/** Runs calls of `node:fs` as effects. The caller's function translates their errors. */
import * as Effect from "effect/Effect"
import { Fs } from "./node.ts"

/** A call of the thread pool, which reports its end to a callback. */
export type Start<A> = (done: (error: Error | null, value: A) => void) => void

/**
 * Starts a call of the thread pool and waits for its end, uninterruptibly. If its descriptor were closed during the
 * call, the call could reach another file with the same number.
 */
export const awaited = <A, E>(start: Start<A>, toError: (error: unknown) => E): Effect.Effect<A, E> =>
  Effect.uninterruptible(
    Effect.callback<A, E>((resume) =>
      start((error, value) => resume(error === null ? Effect.succeed(value) : Effect.fail(toError(error))))
    )
  )

/** Waits until the bytes of a file, or the names in a directory, are on the disk. */
export const sync = <E>(descriptor: number, toError: (error: unknown) => E): Effect.Effect<void, E> =>
  awaited<void, E>((done) => Fs.fsync(descriptor, (error) => done(error, undefined)), toError)

/** Writes all bytes at the current position. Fails with `full` if the disk accepts none. */
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

/** Closes a descriptor where a failed close cannot lose written data. */
export const closeQuietly = (descriptor: number): void => {
  try {
    Fs.closeSync(descriptor)
  } catch {
    // The descriptor is closed despite the error.
  }
}

/** Removes a file of ours. One that remains is a leftover, which is removed later. */
export const unlinkQuietly = (path: string | Buffer): void => {
  try {
    Fs.unlinkSync(path)
  } catch {
    // The file is already gone, or a later sweep removes it.
  }
}
