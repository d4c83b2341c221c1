/**
 * Keeps the content of a stream until its hash is known: in memory, or above 1 MiB in a temporary file. A store can then read the
 * content in pieces, and again after a failure.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { isSystemError } from "../../model/realms.ts"
import { concatenate } from "../../runtime/buffer.ts"
import { hasher } from "../../runtime/hash.ts"
import { type FileHandle, fsPromises, join, tmpdir } from "../../runtime/node.ts"
import { StoreError } from "../errors.ts"
import type { Contents, PutStream } from "./blobs.ts"

/** Content that can be read any number of times. */
export interface Source {
  readonly size: number
  /** Returns the bytes of a range inside of the content. */
  readonly read: (offset: number, length: number) => Effect.Effect<Uint8Array, StoreError>
}

export const sourceOf = (bytes: Uint8Array): Source => ({
  size: bytes.length,
  read: (offset, length) => Effect.succeed(bytes.subarray(offset, offset + length))
})

const maxMemoryBytes = 1024 * 1024

const problem = (cause: unknown): StoreError => {
  const code = isSystemError(cause) ? cause.code : String(cause)
  return new StoreError({
    reason: code === "ENOSPC" || code === "EDQUOT" ? "full" : "unavailable",
    detail: `cannot keep a large content in a temporary file (${code}); free space in the directory for temporary files`
  })
}

const attempt = <A>(work: () => Promise<A>): Effect.Effect<A, StoreError> =>
  Effect.uninterruptible(Effect.tryPromise({ try: work, catch: problem }))

const openFile = Effect.acquireRelease(
  attempt(async () => {
    const directory = await fsPromises().mkdtemp(join(tmpdir(), "fs-algebra-content-"))
    try {
      const handle = await fsPromises().open(join(directory, "content"), "wx+", 0o600)
      // An open file needs no name. So nothing remains if this process is killed. Windows keeps the name until the close.
      if (process.platform !== "win32")
        await fsPromises()
          .rm(directory, { recursive: true, force: true })
          .catch(() => undefined)
      return { directory, handle }
    } catch (error) {
      await fsPromises().rm(directory, { recursive: true, force: true })
      throw error
    }
  }),
  ({ directory, handle }) =>
    Effect.ignore(
      attempt(async () => {
        await handle.close()
        await fsPromises().rm(directory, { recursive: true, force: true })
      })
    )
)

const readFrom = async (handle: FileHandle, offset: number, length: number): Promise<Uint8Array> => {
  const bytes = new Uint8Array(length)
  for (let done = 0; done < length;) {
    const { bytesRead } = await handle.read(bytes, done, length - done, offset + done)
    if (bytesRead === 0) throw new Error("the file is shorter than before")
    done += bytesRead
  }
  return bytes
}

const spool = <E, R>(
  bytes: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<Source & { readonly hash: string }, StoreError | E, R | Scope.Scope> =>
  Effect.gen(function* () {
    const digest = hasher()
    let chunks: Array<Uint8Array> = []
    let size = 0
    let written = 0
    let handle: FileHandle | undefined
    const flush = Effect.gen(function* () {
      const target = (handle ??= (yield* openFile).handle)
      const pending = concatenate(chunks)
      chunks = []
      written = size
      yield* attempt(() => target.writeFile(pending))
    })
    yield* Stream.runForEach(bytes, (chunk) =>
      Effect.suspend(() => {
        // The source of the stream may use its array again.
        chunks.push(new Uint8Array(chunk))
        digest.update(chunk)
        size += chunk.length
        // Collect small chunks, because each write is a system call.
        return size - written > maxMemoryBytes ? flush : Effect.void
      })
    )
    if (handle !== undefined && written < size) yield* flush
    const file = handle
    const source: Source =
      file === undefined
        ? sourceOf(concatenate(chunks))
        : { size, read: (offset, length) => attempt(() => readFrom(file, offset, length)) }
    return { ...source, hash: digest.digest() }
  })

/** Returns a `putStream` that sends only content which the store does not have. */
export const spooled =
  (sizeOf: Contents["sizeOf"], putSource: (hash: string, source: Source) => Effect.Effect<void, StoreError>): PutStream =>
  (bytes) =>
    Effect.scoped(
      Effect.gen(function* () {
        const source = yield* spool(bytes)
        const { hash, size } = source
        if ((yield* sizeOf(hash)) !== size) yield* putSource(hash, source)
        return { hash, size }
      })
    )
