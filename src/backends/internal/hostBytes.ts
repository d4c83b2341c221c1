/**
 * Reads and writes bytes of open files.
 *
 * Few bytes are moved synchronously: 64 KiB from the page cache take 4 µs, a round trip through the thread pool at
 * least 25. More bytes go through the thread pool, so that the program continues meanwhile.
 */
import * as Effect from "effect/Effect"
import { Fs } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import * as Host from "../../runtime/host.ts"
import { attempt, awaitCall } from "./attempt.ts"
import { fromErrno } from "./errno.ts"

export const maxSyncBytes = 64 * 1024

/** Bytes requested by one system call, which moves at most 2 GiB. */
export const maxBytesPerCall = 1024 * 1024 * 1024

const diskFull: Fault = { _tag: "DiskFull" }

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

export const read = (descriptor: number, bytes: Uint8Array, offset: number): Effect.Effect<number, Fault> => {
  const from = (done: number): Effect.Effect<number, Fault> =>
    Effect.flatMap(
      awaitCall<number>((end) =>
        Fs.read(descriptor, bytes, done, Math.min(bytes.length - done, maxBytesPerCall), offset + done, end)
      ),
      (read) => (read === 0 || done + read === bytes.length ? Effect.succeed(done + read) : from(done + read))
    )
  return bytes.length > maxSyncBytes ? from(0) : attempt(() => readSync(descriptor, bytes, offset))
}

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

export const write = (
  descriptor: number,
  bytes: Uint8Array,
  progress: Progress = { written: 0 },
  bytesPerCall = 8 * 1024 * 1024
): Effect.Effect<void, Fault> => {
  const from = (done: number): Effect.Effect<void, Fault> =>
    Effect.flatMap(
      awaitCall<number>((end) => Fs.write(descriptor, bytes, done, Math.min(bytes.length - done, bytesPerCall), null, end)),
      (written) => {
        progress.written += written
        if (written === 0) return Effect.fail(diskFull)
        return done + written < bytes.length ? from(done + written) : Effect.void
      }
    )
  return bytes.length > maxSyncBytes ? from(0) : attempt(() => writeSync(descriptor, bytes, progress))
}

export type Durability = "none" | "file" | "full"

/** Flushes the bytes to disk. Never retries: after a failure, the kernel has discarded the unwritten bytes. */
export const flush = (descriptor: number): Effect.Effect<void, Fault> => Host.sync(descriptor, fromErrno)
