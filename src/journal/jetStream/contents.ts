/**
 * A content store in the object store of the server. The name of a content is its hash. A read requests the parts of a content
 * one at a time, so a slow reader does not fill the memory.
 */
import type { ObjectInfo, ObjectStore, StorageType } from "@nats-io/obj"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { hasher, sha256 } from "../../runtime/hash.ts"
import { FsPromises as Fs, join, tmpdir } from "../../runtime/node.ts"
import type { ContentStore } from "../model.ts"
import type { ContentRef } from "../FileSystemEntry.ts"
import { concatenate } from "../../runtime/buffer.ts"
import { JournalError } from "../errors.ts"
import { type Connection, creationRetryOptions } from "./connection.ts"
import type { Options } from "./options.ts"

const maxMemoryBytes = 1_048_576
const readSizeBytes = 65_536

interface Spool {
  readonly ref: ContentRef
  /** Iterates over all bytes. Each call starts at the beginning. */
  readonly bytes: () => AsyncIterable<Uint8Array>
}

const problem = (cause: unknown): JournalError =>
  new JournalError({
    operation: "ContentStore.put",
    reason: "io",
    detail: `cannot store a large content in a temporary file: ${String(cause)}`
  })

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

const make = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Effect.Effect<Spool, JournalError | E, R | Scope.Scope> =>
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

const partBytes = 131_072
const pieceBytes = 65_536
const reservedHeaderBytes = 1_024

const maxAttempts = 3

const wrongLastSequence = 10_071

const failure = (reason: "corrupt" | "unavailable", detail: string): JournalError =>
  new JournalError({ operation: reason === "corrupt" ? "ContentStore.get" : "ContentStore.put", reason, detail })

async function* singleChunk(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes
}

const makeContents = (connection: Connection, objects: ObjectStore, { name }: Options): ContentStore => {
  const { manager, nats } = connection
  const stream = `OBJ_${name}`

  const info = (operation: string, { sha256 }: ContentRef): Effect.Effect<ObjectInfo | undefined, JournalError> =>
    Effect.map(
      connection.ask(operation, () => objects.info(sha256)),
      (found) => (found === null || found.deleted ? undefined : found)
    )

  const send = (ref: ContentRef, bytes: () => AsyncIterable<Uint8Array>): Effect.Effect<void, JournalError> =>
    connection
      .sendOnce("ContentStore.put", async () => {
        const { state } = await manager.streams.info(stream)
        const { revision } = (await objects.info(ref.sha256)) ?? { revision: 0 }
        // Store the last position, so that a reader skips the contents that were stored before.
        const objectMeta = {
          name: ref.sha256,
          options: { max_chunk_size: Math.min(partBytes, (nats.info?.max_payload ?? 1_048_576) - reservedHeaderBytes) },
          metadata: { after: String(state.last_seq) }
        }
        await objects.put(objectMeta, ReadableStream.from(bytes()), { previousRevision: revision })
      })
      .pipe(
        // The refusal means that another process has stored the same content at the same time.
        Effect.catchIf(
          (error) => error._tag === "Refusal" && error.code === wrongLastSequence,
          () => Effect.void
        ),
        Effect.mapError((error) => (error._tag === "Refusal" ? failure("unavailable", error.message) : error))
      )

  /**
   * Stores the content if it does not exist. Limits the number of attempts and each wait for the server. Does not limit the
   * total time, which depends on the size of the content.
   */
  const store = (
    ref: ContentRef,
    bytes: () => AsyncIterable<Uint8Array>,
    attemptsLeft = maxAttempts
  ): Effect.Effect<ContentRef, JournalError> =>
    Effect.flatMap(info("ContentStore.put", ref), (found) =>
      found !== undefined
        ? Effect.succeed(ref)
        : send(ref, bytes).pipe(
            Effect.as(ref),
            Effect.catchIf(
              ({ reason }) => reason === "unavailable" && attemptsLeft > 1,
              () => store(ref, bytes, attemptsLeft - 1)
            )
          )
    )

  /** Reads one part from any server that has the stream. If that server lacks the part, reads the part from the leader. */
  const part = (after: number, nuid: string) => {
    const query = { seq: after + 1, next_by_subj: `$O.${name}.C.${nuid}` }
    return connection.ask(
      "ContentStore.get",
      async () => (await manager.direct.getMessage(stream, query)) ?? (await manager.streams.getMessage(stream, query))
    )
  }

  /** Emits the parts after a sequence. Messages of other contents may come between the parts. */
  const parts = (found: ObjectInfo, after: number): Stream.Stream<Uint8Array, JournalError> =>
    found.size === 0
      ? Stream.empty
      : Stream.paginate({ after, size: 0 }, ({ after, size }) => {
          return Effect.flatMap(part(after, found.nuid), (part) => {
            if (part === null) return Effect.fail(failure("corrupt", `a part of the content ${found.name} is missing`))
            const read = size + part.data.length
            const next = read < found.size ? Option.some({ after: part.seq, size: read }) : Option.none()
            return Effect.succeed([[part.data], next] as const)
          })
        })

  const splitIntoPieces = (bytes: Uint8Array): ReadonlyArray<Uint8Array> =>
    Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, index) =>
      bytes.slice(index * pieceBytes, (index + 1) * pieceBytes)
    )

  const verifyHash = (
    ref: ContentRef,
    bytes: Stream.Stream<Uint8Array, JournalError>
  ): Stream.Stream<Uint8Array, JournalError> =>
    Stream.suspend(() => {
      const hash = hasher()
      const damaged = failure("corrupt", `the content ${ref.sha256} does not match its hash`)
      return bytes.pipe(
        Stream.tap((part) => Effect.sync(() => hash.update(part))),
        Stream.concat(Stream.suspend(() => (hash.digest() === ref.sha256 ? Stream.empty : Stream.fail(damaged))))
      )
    })

  const read = (ref: ContentRef): Stream.Stream<Uint8Array, JournalError> =>
    Stream.unwrap(
      Effect.map(info("ContentStore.get", ref), (found) => {
        if (found === undefined)
          return Stream.fail(failure("corrupt", `the content ${ref.sha256} is missing in the object store`))
        if (found.size !== ref.size)
          return Stream.fail(failure("corrupt", `the content ${ref.sha256} has ${found.size} bytes instead of ${ref.size}`))
        const after = Number(found.metadata?.["after"] ?? 0)
        const all = parts(found, Number.isSafeInteger(after) ? after : 0)
        return verifyHash(
          ref,
          Stream.flatMap(all, (part) => Stream.fromIterable(splitIntoPieces(part)))
        )
      })
    )

  return {
    put: (bytes) =>
      Effect.suspend(() => {
        const copy = bytes.slice()
        return store({ sha256: sha256(copy), size: copy.length }, () => singleChunk(copy))
      }),
    putStream: (bytes) => Effect.scoped(Effect.flatMap(make(bytes), (spool) => store(spool.ref, spool.bytes))),
    get: (ref) => Effect.map(Stream.runCollect(read(ref)), concatenate),
    stream: read,
    has: (ref) => Effect.map(info("ContentStore.has", ref), (found) => found !== undefined && found.size === ref.size)
  }
}

export const open = (connection: Connection, options: Options): Effect.Effect<ContentStore, JournalError> => {
  const { jetstream, obj } = connection
  const { replicas = 1, storage = "file" } = options
  const create = connection.call("JetStream.open", () =>
    new obj.Objm(jetstream).create(options.name, { storage: storage as StorageType, replicas })
  )
  return create.pipe(
    Effect.retry(creationRetryOptions),
    Effect.mapError((error) => (error._tag === "Refusal" ? failure("unavailable", error.message) : error)),
    Effect.map((objects) => makeContents(connection, objects, options))
  )
}
