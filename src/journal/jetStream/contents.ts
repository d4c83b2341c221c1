/**
 * Contents in the server's object store, each under its hash. A read requests the parts of a content one at a time, so a slow reader does
 * not fill the memory.
 */
import type { ObjectInfo, ObjectStore, StorageType } from "@nats-io/obj"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { Buffer } from "../../runtime/buffer.ts"
import { hasher, sha256 } from "../../runtime/hash.ts"
import type { ContentStore } from "../ContentStore.ts"
import { JournalError } from "../errors.ts"
import type { ContentRef } from "../FileSystemEntry.ts"
import { type Connection, creationRetryOptions } from "./connection.ts"
import type { Options } from "./options.ts"
import * as Spool from "./spool.ts"

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

const concatenate = (parts: ReadonlyArray<Uint8Array>): Uint8Array => new Uint8Array(Buffer.concat(parts))

const make = (connection: Connection, objects: ObjectStore, { name }: Options): ContentStore => {
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
        // The parts follow the message that is last now. A reader starts there, and does not read the contents that others
        // stored before.
        const objectMeta = {
          name: ref.sha256,
          options: { max_chunk_size: Math.min(partBytes, (nats.info?.max_payload ?? 1_048_576) - reservedHeaderBytes) },
          metadata: { after: String(state.last_seq) }
        }
        await objects.put(objectMeta, ReadableStream.from(bytes()), { previousRevision: revision })
      })
      .pipe(
        // Another process has stored the same content meanwhile.
        Effect.catchIf(
          (error) => error._tag === "Refusal" && error.code === wrongLastSequence,
          () => Effect.void
        ),
        Effect.mapError((error) => (error._tag === "Refusal" ? failure("unavailable", error.message) : error))
      )

  /**
   * Stores the content unless it exists. The duration depends on the size, so the number of attempts is bounded, not the time. The waits
   * for the server are bounded too.
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

  /** Reads one part from any server that has the stream, and from the leader if that server lags behind. */
  const part = (after: number, nuid: string) => {
    const query = { seq: after + 1, next_by_subj: `$O.${name}.C.${nuid}` }
    return connection.ask(
      "ContentStore.get",
      async () => (await manager.direct.getMessage(stream, query)) ?? (await manager.streams.getMessage(stream, query))
    )
  }

  /** Emits the parts after this sequence. Messages of other contents may stand between them. */
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
      const damaged = failure("corrupt", `the content ${ref.sha256} is damaged`)
      return bytes.pipe(
        Stream.tap((part) => Effect.sync(() => hash.update(part))),
        Stream.concat(Stream.suspend(() => (hash.digest() === ref.sha256 ? Stream.empty : Stream.fail(damaged))))
      )
    })

  const read = (ref: ContentRef): Stream.Stream<Uint8Array, JournalError> =>
    Stream.unwrap(
      Effect.map(info("ContentStore.get", ref), (found) => {
        if (found === undefined) return Stream.fail(failure("corrupt", `there is no content ${ref.sha256}`))
        if (found.size !== ref.size) return Stream.fail(failure("corrupt", `the content ${ref.sha256} has ${found.size} bytes`))
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
    putStream: (bytes) => Effect.scoped(Effect.flatMap(Spool.make(bytes), (spool) => store(spool.ref, spool.bytes))),
    get: (ref) => Effect.map(Stream.runCollect(read(ref)), concatenate),
    stream: read,
    has: (ref) => Effect.map(info("ContentStore.has", ref), (found) => found !== undefined && found.size === ref.size)
  }
}

export const open = (connection: Connection, options: Options): Effect.Effect<ContentStore, JournalError> => {
  const { jetstream, packages } = connection
  const { replicas = 1, storage = "file" } = options
  const create = connection.call("JetStream.open", () =>
    new packages.obj.Objm(jetstream).create(options.name, { storage: storage as StorageType, replicas })
  )
  return create.pipe(
    Effect.retry(creationRetryOptions),
    Effect.mapError((error) => (error._tag === "Refusal" ? failure("unavailable", error.message) : error)),
    Effect.map((objects) => make(connection, objects, options))
  )
}
