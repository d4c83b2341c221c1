/**
 * Bytes of open files on a Windows disk, in and out, as `hostBytes.ts` moves them on others: few synchronously, many by the thread pool.
 */
import * as Effect from "effect/Effect"
import type { Fault } from "../../../model/FsError.ts"
import { inlineBytes, largest } from "../hostBytes.ts"
import { attempt, awaited, patiently } from "./attempt.ts"
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

/** From `offset` until the array is full or the file ends; answers how many. */
export const read = (
  disk: WindowsDisk,
  descriptor: number,
  bytes: Uint8Array,
  offset: number
): Effect.Effect<number, Fault> => {
  const from = (done: number): Effect.Effect<number, Fault> =>
    Effect.flatMap(
      patiently(
        awaited<number>((end) => disk.read(descriptor, bytes, done, Math.min(bytes.length - done, largest), offset + done, end))
      ),
      (read) => (read === 0 || done + read === bytes.length ? Effect.succeed(done + read) : from(done + read))
    )
  return bytes.length > inlineBytes ? from(0) : attempt(() => readSync(disk, descriptor, bytes, offset))
}

/** How far a write has come, also one that fails. */
export interface Progress {
  written: number
  /** The file was opened to append: the system itself says where. @default false, from its beginning */
  readonly appends?: boolean
}

/** One call of the system; what it takes counts, also where it was not all. */
const writeSome = (
  disk: WindowsDisk,
  descriptor: number,
  bytes: Uint8Array,
  done: number,
  length: number,
  position: number | null
): Effect.Effect<number, Fault> =>
  bytes.length > inlineBytes
    ? patiently(awaited<number>((end) => disk.write(descriptor, bytes, done, length, position, end)))
    : attempt(() => disk.writeSync(descriptor, bytes, done, length, position))

/** All of them, behind what has been written before. `piece` is how much is asked of one system call. */
export const write = (
  disk: WindowsDisk,
  descriptor: number,
  bytes: Uint8Array,
  progress: Progress,
  piece = 8 * 1024 * 1024
): Effect.Effect<void, Fault> => {
  const from = (done: number): Effect.Effect<void, Fault> => {
    if (done === bytes.length) return Effect.void
    const position = progress.appends === true ? null : progress.written
    return Effect.flatMap(
      writeSome(disk, descriptor, bytes, done, Math.min(bytes.length - done, piece), position),
      (written) => {
        progress.written += written
        return written === 0 ? Effect.fail(diskFull) : from(done + written)
      }
    )
  }
  return from(0)
}

/** The bytes are on disk. Never tried twice: after a failure nobody knows what was written. */
export const settle = (disk: WindowsDisk, descriptor: number): Effect.Effect<void, Fault> =>
  awaited<void>((end) => disk.fsync(descriptor, (error) => end(error, undefined)))

/** Where nothing that was written can still be lost by it. */
export const closeQuietly = (disk: WindowsDisk, descriptor: number): void => {
  try {
    disk.closeSync(descriptor)
  } catch {
    // It is closed all the same.
  }
}

/** For what is hidden anyway, and taken away once its process is gone. */
export const unlinkQuietly = (disk: WindowsDisk, at: string): void => {
  try {
    disk.unlinkSync(at)
  } catch {
    // Somebody has done it before.
  }
}
