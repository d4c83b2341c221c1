/**
 * Bytes of open files, in and out. Few are moved synchronously: 64 KiB between here and the page cache take 4 µs, the round trip
 * through the thread pool 25 and more. Many are moved by the thread pool, so that the program goes on meanwhile.
 */
import * as Effect from "effect/Effect"
import { Fs } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import { attempt, awaited } from "./attempt.ts"
import type { HostPath } from "./hostNames.ts"

/** @see the numbers above */
export const inlineBytes = 64 * 1024

/** One system call moves 2 GiB at most; this is what is asked of one. */
export const largest = 1024 * 1024 * 1024

const diskFull: Fault = { _tag: "DiskFull" }

/** Room for bytes, without the cost of clearing it first. */
export const allocate = (length: number): Uint8Array => new Uint8Array(Buffer.allocUnsafeSlow(length).buffer, 0, length)

export const readSync = (descriptor: number, bytes: Uint8Array, offset: number): number => {
  let done = 0
  while (done < bytes.length) {
    const read = Fs.readSync(descriptor, bytes, done, bytes.length - done, offset + done)
    if (read === 0) break
    done += read
  }
  return done
}

/** From `offset` until the array is full or the file ends; answers how many. */
export const read = (descriptor: number, bytes: Uint8Array, offset: number): Effect.Effect<number, Fault> => {
  const from = (done: number): Effect.Effect<number, Fault> =>
    Effect.flatMap(
      awaited<number>((end) => Fs.read(descriptor, bytes, done, Math.min(bytes.length - done, largest), offset + done, end)),
      (read) => (read === 0 || done + read === bytes.length ? Effect.succeed(done + read) : from(done + read))
    )
  return bytes.length > inlineBytes ? from(0) : attempt(() => readSync(descriptor, bytes, offset))
}

/** How far a write has come, also one that fails. */
export interface Progress {
  written: number
}

const writeSync = (descriptor: number, bytes: Uint8Array, progress: Progress): Fault | undefined => {
  for (let done = 0; done < bytes.length;) {
    const written = Fs.writeSync(descriptor, bytes, done, bytes.length - done, null)
    if (written === 0) return diskFull
    done += written
    progress.written += written
  }
  return undefined
}

/** All of them, where the descriptor stands. `piece` is how much is asked of one system call. */
export const write = (
  descriptor: number,
  bytes: Uint8Array,
  progress: Progress = { written: 0 },
  piece = 8 * 1024 * 1024
): Effect.Effect<void, Fault> => {
  const from = (done: number): Effect.Effect<void, Fault> =>
    Effect.flatMap(
      awaited<number>((end) => Fs.write(descriptor, bytes, done, Math.min(bytes.length - done, piece), null, end)),
      (written) => {
        progress.written += written
        if (written === 0) return Effect.fail(diskFull)
        return done + written < bytes.length ? from(done + written) : Effect.void
      }
    )
  return bytes.length > inlineBytes ? from(0) : attempt(() => writeSync(descriptor, bytes, progress))
}

/** What an answered write survives. */
export type Durability = "none" | "file" | "full"

/** The bytes are on disk. Never tried twice: after a failure the kernel has forgotten what it could not write. */
export const settle = (descriptor: number): Effect.Effect<void, Fault> =>
  awaited<void>((end) => Fs.fsync(descriptor, (error) => end(error, undefined)))

/** Where nothing that was written can still be lost by it. */
export const closeQuietly = (descriptor: number): void => {
  try {
    Fs.closeSync(descriptor)
  } catch {
    // It is closed all the same.
  }
}

/** For what is hidden anyway, and taken away once its process is gone. */
export const unlinkQuietly = (at: HostPath): void => {
  try {
    Fs.unlinkSync(at)
  } catch {
    // Somebody has done it before.
  }
}
