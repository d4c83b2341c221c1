/** Buffers a stream until its hash is known: in memory up to a bound, then in a temporary file that is removed with the scope. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { FsPromises as Fs, join, tmpdir } from "../../runtime/node.ts"
import { hasher } from "../../runtime/hash.ts"
import { JournalError } from "../errors.ts"
import type { ContentRef } from "../FileSystemEntry.ts"

const maxMemoryBytes = 1_048_576
const readSizeBytes = 65_536

export interface Spool {
  readonly ref: ContentRef
  /** Iterates over all bytes. It can be called repeatedly. */
  readonly bytes: () => AsyncIterable<Uint8Array>
}

const problem = (cause: unknown): JournalError =>
  new JournalError({ operation: "ContentStore.put", reason: "io", detail: `no place for a large content: ${String(cause)}` })

const attempt = <A>(work: () => Promise<A>): Effect.Effect<A, JournalError> => Effect.tryPromise({ try: work, catch: problem })

const openTemporaryFile = Effect.acquireRelease(
  attempt(async () => {
    const directory = await Fs.mkdtemp(join(tmpdir(), "fs-algebra-content-"))
    return { directory, handle: await Fs.open(join(directory, "content"), "wx+", 0o600) }
  }),
  ({ directory, handle }) =>
    Effect.ignore(
      attempt(async () => {
        await handle.close()
        await Fs.rm(directory, { recursive: true, force: true })
      })
    )
)

async function* readFileChunks(handle: Fs.FileHandle): AsyncIterable<Uint8Array> {
  for (let at = 0; ;) {
    const { buffer, bytesRead } = await handle.read(new Uint8Array(readSizeBytes), 0, readSizeBytes, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

async function* iterateChunks(chunks: ReadonlyArray<Uint8Array>): AsyncIterable<Uint8Array> {
  yield* chunks
}

export const make = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Effect.Effect<Spool, JournalError | E, R | Scope.Scope> =>
  Effect.gen(function* () {
    const hash = hasher()
    let chunks: Array<Uint8Array> = []
    let size = 0
    let handle: Fs.FileHandle | undefined
    yield* Stream.runForEach(bytes, (chunk) =>
      Effect.gen(function* () {
        hash.update(chunk)
        size += chunk.length
        if (handle === undefined && size > maxMemoryBytes) handle = (yield* openTemporaryFile).handle
        chunks.push(handle === undefined ? chunk.slice() : chunk)
        if (handle === undefined) return
        const [target, pending] = [handle, chunks]
        chunks = []
        for (const part of pending) yield* attempt(() => target.writeFile(part))
      })
    )
    const openHandle = handle
    return {
      ref: { sha256: hash.digest(), size },
      bytes: () => (openHandle === undefined ? iterateChunks(chunks) : readFileChunks(openHandle))
    }
  })
