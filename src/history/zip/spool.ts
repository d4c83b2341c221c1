/**
 * Byte sources with random access.
 *
 * A small stream is buffered in memory, and a larger stream in an unlinked file. So no data remains on the disk, however the
 * program ends.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Fs, join, tmpdir } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import type { ArchiveError } from "../errors.ts"
import { refuse } from "./names.ts"
import { attempt, awaitCall, faultOf } from "./hostFile.ts"

export interface Source {
  readonly size: number
  /** Reads exactly `length` bytes, which the source must contain. The caller must not modify the result. */
  readonly read: (offset: number, length: number) => Effect.Effect<Uint8Array, Fault>
}

const maxMemoryBytes = 8 * 1024 * 1024

const truncatedArchive: Fault = { _tag: "IoError", detail: "the archive was truncated while it was read" }

/** The largest read, in bytes, that is synchronous. A read of at most this size takes longer in the thread pool. */
const maxSyncReadBytes = 64 * 1024

const readInline = (descriptor: number, offset: number, length: number): Effect.Effect<Uint8Array, Fault> =>
  attempt(() => {
    const bytes = new Uint8Array(length)
    for (let done = 0; done < length;) {
      const read = Fs.readSync(descriptor, bytes, done, length - done, offset + done)
      if (read === 0) return truncatedArchive
      done += read
    }
    return bytes
  })

const readFully = (descriptor: number, offset: number, length: number): Effect.Effect<Uint8Array, Fault> =>
  Effect.suspend(() => {
    if (length <= maxSyncReadBytes) return readInline(descriptor, offset, length)
    const bytes = new Uint8Array(length)
    const from = (done: number): Effect.Effect<Uint8Array, Fault> =>
      done === length
        ? Effect.succeed(bytes)
        : Effect.flatMap(
            awaitCall<number>((end) => Fs.read(descriptor, bytes, done, length - done, offset + done, end)),
            (read) => (read === 0 ? Effect.fail(truncatedArchive) : from(done + read))
          )
    return from(0)
  })

/** Returns a source for an open file. The caller keeps the descriptor open during use and closes it. */
export const fromDescriptor = (descriptor: number, size: number): Source => ({
  size,
  read: (offset, length) => readFully(descriptor, offset, length)
})

export const fromBytes = (bytes: Uint8Array): Source => ({
  size: bytes.length,
  read: (offset, length) => Effect.succeed(bytes.subarray(offset, offset + length))
})

/** Creates a new file and unlinks it, so that only this process can access the file. */
const makeUnlinkedFile: Effect.Effect<number, Fault> = Effect.suspend(() => {
  try {
    const directory = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-spool-"))
    try {
      const path = join(directory, "spool")
      const descriptor = Fs.openSync(path, "wx+", 0o600)
      Fs.unlinkSync(path)
      return Effect.succeed(descriptor)
    } finally {
      Fs.rmSync(directory, { recursive: true, force: true })
    }
  } catch (error) {
    return Effect.fail(faultOf(error))
  }
})

export class Spool implements Source {
  readonly #most: number
  #memory = new Uint8Array(64 * 1024)
  #descriptor: number | undefined
  #size = 0

  constructor(maxBytes: number) {
    this.#most = maxBytes
  }

  get size(): number {
    return this.#size
  }

  readonly append = (bytes: Uint8Array): Effect.Effect<void, ArchiveError | Fault> =>
    Effect.suspend((): Effect.Effect<void, ArchiveError | Fault> => {
      const end = this.#size + bytes.length
      if (end > this.#most)
        return Effect.fail(refuse("tooLarge", "the archive is larger than maxArchiveBytes and maxArchiveEntries allow"))
      if (this.#descriptor === undefined && end > maxMemoryBytes) {
        return Effect.andThen(
          this.#moveToFile,
          Effect.suspend(() => this.append(bytes))
        )
      }
      if (this.#descriptor !== undefined) return this.#write(bytes, 0)
      if (end > this.#memory.length) {
        const larger = new Uint8Array(Math.max(end, 2 * this.#memory.length))
        larger.set(this.#memory.subarray(0, this.#size))
        this.#memory = larger
      }
      this.#memory.set(bytes, this.#size)
      this.#size = end
      return Effect.void
    })

  readonly read = (offset: number, length: number): Effect.Effect<Uint8Array, Fault> =>
    this.#descriptor === undefined
      ? Effect.succeed(this.#memory.subarray(offset, offset + length))
      : readFully(this.#descriptor, offset, length)

  close(): void {
    if (this.#descriptor !== undefined) Fs.closeSync(this.#descriptor)
  }

  readonly #moveToFile: Effect.Effect<void, Fault> = Effect.uninterruptible(
    Effect.flatMap(makeUnlinkedFile, (descriptor) => {
      const kept = this.#memory.subarray(0, this.#size)
      this.#descriptor = descriptor
      this.#memory = new Uint8Array(0)
      this.#size = 0
      return this.#write(kept, 0)
    })
  )

  #write(bytes: Uint8Array, done: number): Effect.Effect<void, Fault> {
    if (done === bytes.length) return Effect.void
    return Effect.flatMap(
      awaitCall<number>((end) => Fs.write(this.#descriptor!, bytes, done, bytes.length - done, this.#size, end)),
      (written) => {
        this.#size += written
        return written === 0 ? Effect.fail<Fault>({ _tag: "DiskFull" }) : this.#write(bytes, done + written)
      }
    )
  }
}

export const make = (maxBytes: number): Effect.Effect<Spool, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new Spool(maxBytes)),
    (spool) => Effect.sync(() => spool.close())
  )

export const spoolStream = <E, R>(
  bytes: Stream.Stream<Uint8Array, E, R>,
  maxBytes: number
): Effect.Effect<Source, E | ArchiveError | Fault, R | Scope.Scope> =>
  Effect.flatMap(make(maxBytes), (spool) => Effect.as(Stream.runForEach(bytes, spool.append), spool))
