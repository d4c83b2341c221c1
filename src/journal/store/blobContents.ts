/** A content store on a store of blobs. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { concatenate } from "../../runtime/buffer.ts"
import { hasher, sha256 } from "../../runtime/hash.ts"
import type { Operations } from "../../repository/BlobStore.ts"
import type { StoreError } from "../../repository/errors.ts"
import {
  collected,
  corruptBlob,
  maxBlobBytes,
  type OwnOperations,
  putMissing,
  type PutStream,
  putStream,
  sizeOf
} from "../../repository/stores/blobs.ts"
import { JournalError } from "../errors.ts"
import type { ContentRef } from "../FileSystemEntry.ts"
import type { ContentStore } from "../model.ts"

const chunkBytes = 65_536
/** The number of bytes in one request to the store. */
const requestBytes = 1024 * 1024

const damaged = ({ sha256 }: ContentRef): JournalError =>
  new JournalError({
    operation: "ContentStore.get",
    reason: "corrupt",
    detail: `the content ${sha256.slice(0, 80)} does not match its hash`
  })

const missing = ({ sha256 }: ContentRef): JournalError =>
  new JournalError({
    operation: "ContentStore.get",
    reason: "corrupt",
    detail: `the content ${sha256.slice(0, 80)} is missing`
  })

/** The error of a stream of the caller, which is not an error of the store even if it has the same type. */
class OfCaller<E> {
  readonly error: E
  constructor(error: E) {
    this.error = error
  }
}

const piecesOf = (bytes: Uint8Array): ReadonlyArray<Uint8Array> =>
  bytes.length <= chunkBytes
    ? [bytes]
    : Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, n) => bytes.slice(n * chunkBytes, (n + 1) * chunkBytes))

const toJournalError =
  (operation: string, unavailable: JournalError["reason"]) =>
  ({ detail, reason }: StoreError): JournalError => {
    const reasons = {
      unavailable,
      missing: "corrupt",
      // Only a read finds a damaged content. For a write, an entry that is no content is in the way.
      corrupt: operation === "ContentStore.get" ? "corrupt" : "io",
      full: "io",
      invalid: "invalid"
    } as const
    return new JournalError({ operation, reason: reasons[reason], detail })
  }

/** The key of the store of blobs of a content store. */
const blobsOf: unique symbol = Symbol("fs-algebra/journal/blobsOf")

interface BlobContents extends ContentStore {
  readonly [blobsOf]: Operations
}

/**
 * Tests whether anything is stored for the hash of the reference, intact or not. A content store of another library tells only
 * whether the content has the right size.
 */
export const holds = (contents: ContentStore, ref: ContentRef): Effect.Effect<boolean, JournalError> => {
  const blobs = (contents as Partial<BlobContents>)[blobsOf]
  return blobs === undefined
    ? contents.has(ref)
    : Effect.mapBoth(blobs.has([ref.sha256]), {
        onFailure: toJournalError("ContentStore.has", "unavailable"),
        onSuccess: (found) => found.has(ref.sha256)
      })
}

/** Makes a content store. `unavailable` returns the reason of the failure if the store of blobs cannot be used. */
export const make = (blobs: Operations, unavailable: () => JournalError["reason"] = () => "unavailable"): BlobContents => {
  const own: Partial<OwnOperations> = blobs
  const answer =
    (operation: string) =>
    <A, R>(run: Effect.Effect<A, StoreError, R>): Effect.Effect<A, JournalError, R> =>
      Effect.mapError(run, (error) => toJournalError(operation, unavailable())(error))
  const put = answer("ContentStore.put")

  /** Reads the bytes of a range. The last range of a content includes one byte more, which must not exist. */
  const read = (ref: ContentRef, offset: number, length: number): Effect.Effect<Uint8Array, JournalError> => {
    const isLast = offset + length === ref.size
    return blobs.get(ref.sha256, { offset, length: isLast ? length + 1 : length }).pipe(
      Effect.mapError((error) =>
        error.reason === "missing" ? missing(ref) : toJournalError("ContentStore.get", unavailable())(error)
      ),
      Effect.filterOrFail(
        (bytes) => bytes.length === length,
        () => damaged(ref)
      )
    )
  }

  const isPossible = ({ size }: ContentRef): boolean => Number.isSafeInteger(size) && size >= 0

  const stream = (ref: ContentRef): Stream.Stream<Uint8Array, JournalError> =>
    Stream.suspend(() => {
      if (!isPossible(ref)) return Stream.fail(damaged(ref))
      const digest = hasher()
      const requests = Stream.unfold(0, (at) => {
        // An empty content is read too, because it may be missing.
        if (at > 0 && at >= ref.size) return Effect.succeed(undefined)
        return Effect.map(read(ref, at, Math.min(requestBytes, ref.size - at)), (bytes) => {
          digest.update(bytes)
          return [bytes, at + Math.max(1, bytes.length)] as const
        })
      })
      return requests.pipe(
        Stream.flatMap((bytes) => (bytes.length === 0 ? Stream.empty : Stream.fromIterable(piecesOf(bytes)))),
        Stream.concat(Stream.suspend(() => (digest.digest() === ref.sha256 ? Stream.empty : Stream.fail(damaged(ref)))))
      )
    })

  const whole = (ref: ContentRef): Effect.Effect<Uint8Array, JournalError> =>
    Effect.filterOrFail(
      read(ref, 0, ref.size),
      (bytes) => sha256(bytes) === ref.sha256,
      () => damaged(ref)
    )

  /** Tests whether the last byte exists, and no byte after it. */
  const endsAt = ({ sha256, size }: ContentRef): Effect.Effect<boolean, StoreError> =>
    blobs.get(sha256, { offset: Math.max(0, size - 1), length: 2 }).pipe(
      Effect.map(({ length }) => length === Math.min(1, size)),
      Effect.catchIf(
        ({ reason }) => reason === "missing",
        () => Effect.succeed(false)
      )
    )

  const putOne =
    own[putMissing] ??
    ((hash: string, bytes: Uint8Array) =>
      Effect.flatMap(blobs.put(bytes), (stored) =>
        stored === hash ? Effect.void : Effect.fail(corruptBlob(hash, "the store returned another hash for it"))
      ))
  const putAll: PutStream = own[putStream] ?? collected(putOne)

  const store = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Effect.Effect<ContentRef, JournalError | E, R> =>
    putAll(Stream.mapError(bytes, (error) => new OfCaller(error))).pipe(
      Effect.mapBoth({
        onFailure: (error) =>
          error instanceof OfCaller ? error.error : toJournalError("ContentStore.put", unavailable())(error),
        onSuccess: ({ hash, size }) => ({ sha256: hash, size })
      })
    )

  return {
    [blobsOf]: blobs,
    put: (bytes) =>
      Effect.suspend(() => {
        const copy = new Uint8Array(bytes)
        if (copy.length > maxBlobBytes) return store(Stream.fromIterable(piecesOf(copy)))
        const ref = { sha256: sha256(copy), size: copy.length }
        return Effect.as(put(putOne(ref.sha256, copy)), ref)
      }),
    putStream: store,
    get: (ref) =>
      Effect.suspend(() => {
        if (!isPossible(ref)) return Effect.fail(damaged(ref))
        return ref.size < maxBlobBytes ? whole(ref) : Effect.map(Stream.runCollect(stream(ref)), concatenate)
      }),
    stream,
    has: (ref) =>
      isPossible(ref)
        ? answer("ContentStore.has")(
            own[sizeOf] ? Effect.map(own[sizeOf](ref.sha256), (size) => size === ref.size) : endsAt(ref)
          )
        : Effect.succeed(false)
  }
}
