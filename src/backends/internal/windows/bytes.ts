/** Reads and writes bytes of open files on a Windows disk, a few synchronously and more through the thread pool. */
import * as Effect from "effect/Effect"
import type { Fault } from "../../../model/FsError.ts"
import { maxSyncBytes, maxBytesPerCall } from "../hostBytes.ts"
import { attempt, awaitCall, retryTransient } from "./attempt.ts"
import type { WindowsDisk } from "./disk.ts"

const diskFull: Fault = { _tag: "DiskFull" }

export const readSync = (disk: WindowsDisk, descriptor: number, bytes: Uint8Array, offset: number): number => {
  let done = 0
  while (done < bytes.length) {
    const read = disk.readSync(descriptor, bytes, done, bytes.length - done, offset + done)
    if (read === 0) break
    done += read
  }
  return done
}

export const read = (
  disk: WindowsDisk,
  descriptor: number,
  bytes: Uint8Array,
  offset: number
): Effect.Effect<number, Fault> => {
  const from = (done: number): Effect.Effect<number, Fault> =>
    Effect.flatMap(
      retryTransient(
        awaitCall<number>((end) =>
          disk.read(descriptor, bytes, done, Math.min(bytes.length - done, maxBytesPerCall), offset + done, end)
        )
      ),
      (read) => (read === 0 || done + read === bytes.length ? Effect.succeed(done + read) : from(done + read))
    )
  return bytes.length > maxSyncBytes ? from(0) : attempt(() => readSync(disk, descriptor, bytes, offset))
}

export interface Progress {
  written: number
  /**
   * Set for a file opened to append, whose position the system determines. Otherwise writing starts at the beginning.
   * @default false
   */
  readonly appends?: boolean
}

const writeSome = (
  disk: WindowsDisk,
  descriptor: number,
  bytes: Uint8Array,
  done: number,
  length: number,
  position: number | null
): Effect.Effect<number, Fault> =>
  bytes.length > maxSyncBytes
    ? retryTransient(awaitCall<number>((end) => disk.write(descriptor, bytes, done, length, position, end)))
    : attempt(() => disk.writeSync(descriptor, bytes, done, length, position))

export const write = (
  disk: WindowsDisk,
  descriptor: number,
  bytes: Uint8Array,
  progress: Progress,
  bytesPerCall = 8 * 1024 * 1024
): Effect.Effect<void, Fault> => {
  const from = (done: number): Effect.Effect<void, Fault> => {
    if (done === bytes.length) return Effect.void
    const position = progress.appends === true ? null : progress.written
    return Effect.flatMap(
      writeSome(disk, descriptor, bytes, done, Math.min(bytes.length - done, bytesPerCall), position),
      (written) => {
        progress.written += written
        return written === 0 ? Effect.fail(diskFull) : from(done + written)
      }
    )
  }
  return from(0)
}

/** Flushes the bytes to disk. Never retries: after a failure, it is unknown which bytes were written. */
export const flush = (disk: WindowsDisk, descriptor: number): Effect.Effect<void, Fault> =>
  awaitCall<void>((end) => disk.fsync(descriptor, (error) => end(error, undefined)))

/** Closes a descriptor where a failed close cannot lose written data. */
export const closeQuietly = (disk: WindowsDisk, descriptor: number): void => {
  try {
    disk.closeSync(descriptor)
  } catch {
    // The descriptor is closed despite the error.
  }
}

/** Removes a hidden file. One that remains is a leftover, which is removed later. */
export const unlinkQuietly = (disk: WindowsDisk, at: string): void => {
  try {
    disk.unlinkSync(at)
  } catch {
    // The file was already removed.
  }
}
