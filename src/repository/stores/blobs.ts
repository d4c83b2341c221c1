/** Derives a store of blobs from operations on valid hashes. Checks all arguments, and all contents that a store returns. */
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { concatenate } from "../../runtime/buffer.ts"
import { hasher, sha256 } from "../../runtime/hash.ts"
import type { Operations } from "../BlobStore.ts"
import { StoreError } from "../errors.ts"

export interface Range {
  readonly offset: number
  readonly length: number
}

export interface Listed {
  readonly hash: string
  readonly storedAt: DateTime.Utc
}

/** A content that is stored. */
export interface Stored {
  readonly hash: string
  readonly size: number
}

/**
 * Stores the bytes of a stream. Most stores accept a stream of any size, with constant memory use. Stores nothing if the stream
 * fails.
 */
export type PutStream = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>) => Effect.Effect<Stored, StoreError | E, R>

/** The operations of a store on valid hashes. No list of hashes contains a hash twice. */
export interface Contents {
  /** Stores content. The caller must not change the bytes afterwards. */
  readonly put: (hash: string, bytes: Uint8Array) => Effect.Effect<void, StoreError>
  readonly putStream: PutStream
  /** True if `put` compares existing content where it is stored, so that asking before would only cost more. @default false */
  readonly comparesInPlace?: boolean
  /** Returns the number of bytes that are stored for a hash, or `undefined` for an unknown hash. */
  readonly sizeOf: (hash: string) => Effect.Effect<number | undefined, StoreError>
  /** Returns the bytes of the range that exist, or all bytes, in a new array. Returns `undefined` for an unknown hash. */
  readonly get: (hash: string, range: Range | undefined) => Effect.Effect<Uint8Array | undefined, StoreError>
  readonly has: (hashes: ReadonlyArray<string>) => Effect.Effect<Iterable<string>, StoreError>
  readonly delete: (hashes: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
  /** Deletes the content of each hash whose last `put` was before `millis`. Returns the number of deleted contents. */
  readonly deleteOlder: (hashes: ReadonlyArray<string>, millis: number) => Effect.Effect<number, StoreError>
  /** Removes the leftovers of programs that were killed before a time in milliseconds. Keeps the parts of a running `put`. */
  readonly sweep?: Sweep
  /** All hashes. The list may also have other names that other programs have stored. */
  readonly list: Stream.Stream<Listed, StoreError>
}

/** `youngest` is the age in milliseconds below which nothing is removed, whatever the time is. Returns the number of removals. */
export type Sweep = (before: number, youngest?: number) => Effect.Effect<number, StoreError>

/**
 * The key of `deleteOlder`, which keeps content that was stored again. The library's own stores have this operation beside the
 * public ones.
 */
export const deleteOlder: unique symbol = Symbol("fs-algebra/repository/deleteOlder")

/** The key of a `put` with a hash that the caller has computed. The caller must not change the bytes afterwards. */
export const putHashed: unique symbol = Symbol("fs-algebra/repository/putHashed")

/**
 * The key of a `put` like `putHashed` that may skip the upload if the store has content of the same hash and size. The content
 * may keep its old `storedAt`, so callers that collect garbage by `storedAt` must not use this operation.
 */
export const putMissing: unique symbol = Symbol("fs-algebra/repository/putMissing")

/** The key of a `put` of a stream. */
export const putStream: unique symbol = Symbol("fs-algebra/repository/putStream")

export const sizeOf: unique symbol = Symbol("fs-algebra/repository/sizeOf")

export const sweep: unique symbol = Symbol("fs-algebra/repository/sweep")

export interface OwnOperations extends Operations {
  readonly [putHashed]: Contents["put"]
  readonly [putMissing]: Contents["put"]
  readonly [putStream]: PutStream
  readonly [sizeOf]: Contents["sizeOf"]
  readonly [deleteOlder]: Contents["deleteOlder"]
  readonly [sweep]: Sweep
}

export const isHash = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

const missing = (hash: string): StoreError =>
  new StoreError({ reason: "missing", detail: `the blob ${hash.slice(0, 80)} does not exist in the store` })

export const corruptBlob = (hash: string, detail: string): StoreError =>
  new StoreError({ reason: "corrupt", detail: `the blob ${hash} is corrupt: ${detail}; store its content again` })

/** The largest number of bytes that one call puts or reads. Content that was put as a stream may be larger, and is read in ranges. */
export const maxBlobBytes = 1024 * 1024 * 1024

export const tooLarge = (size: number): StoreError =>
  new StoreError({
    reason: "invalid",
    detail: `a blob of ${size} bytes is too large; divide content of more than ${maxBlobBytes} bytes`
  })

const checkRange = (range: Range | undefined): Effect.Effect<void, StoreError> => {
  const isValid = (value: number): boolean => Number.isSafeInteger(value) && value >= 0
  return range === undefined || (isValid(range.offset) && isValid(range.length))
    ? Effect.void
    : Effect.fail(
        new StoreError({
          reason: "invalid",
          detail: `the range from ${range.offset} of length ${range.length} is invalid: both must be whole numbers from 0`
        })
      )
}

/** Returns a copy of the bytes of the range that exist. */
export const sliceOf = (bytes: Uint8Array, range: Range | undefined): Uint8Array =>
  range === undefined ? new Uint8Array(bytes) : new Uint8Array(bytes.subarray(range.offset, range.offset + range.length))

/** Collects a stream in memory, for stores that keep contents there, or whose `put` takes only whole contents. */
export const collected =
  (put: Contents["put"]): PutStream =>
  (bytes) =>
    Effect.suspend(() => {
      const digest = hasher()
      const chunks: Array<Uint8Array> = []
      let size = 0
      const take = (chunk: Uint8Array): Effect.Effect<void, StoreError> => {
        size += chunk.length
        if (size > maxBlobBytes) return Effect.fail(tooLarge(size))
        // The source of the stream may use its array again.
        const copy = new Uint8Array(chunk)
        digest.update(copy)
        chunks.push(copy)
        return Effect.void
      }
      return Stream.runForEachArray(bytes, (more) => Effect.forEach(more, take, { discard: true })).pipe(
        Effect.andThen(Effect.suspend(() => put(digest.digest(), concatenate(chunks)))),
        Effect.map(() => ({ hash: digest.digest(), size }))
      )
    })

const validHashes = (hashes: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(hashes)].filter(isHash)

export const make = (contents: Contents): OwnOperations => ({
  [putHashed]: contents.put,
  [putMissing]: (hash, bytes) =>
    contents.comparesInPlace === true
      ? contents.put(hash, bytes)
      : Effect.flatMap(contents.sizeOf(hash), (size) => (size === bytes.length ? Effect.void : contents.put(hash, bytes))),
  [putStream]: contents.putStream,
  [sizeOf]: (hash) => (isHash(hash) ? contents.sizeOf(hash) : Effect.succeed(undefined)),
  [sweep]: contents.sweep ?? (() => Effect.succeed(0)),
  [deleteOlder]: (hashes, millis) =>
    Effect.suspend(() => {
      const valid = validHashes(hashes)
      return valid.length === 0 ? Effect.succeed(0) : contents.deleteOlder(valid, millis)
    }),
  put: (bytes) =>
    Effect.suspend(() => {
      if (bytes.length > maxBlobBytes) return Effect.fail(tooLarge(bytes.length))
      // The caller may change its array during the call.
      const copy = new Uint8Array(bytes)
      const hash = sha256(copy)
      return Effect.as(contents.put(hash, copy), hash)
    }),
  get: (hash, range) => {
    if (!isHash(hash)) return Effect.andThen(checkRange(range), missing(hash))
    const found = Effect.flatMap(contents.get(hash, range), (bytes) => {
      if (bytes === undefined) return Effect.fail(missing(hash))
      return range === undefined && sha256(bytes) !== hash
        ? Effect.fail(corruptBlob(hash, `the stored ${bytes.length} bytes have a different hash`))
        : Effect.succeed(bytes)
    })
    return range === undefined ? found : Effect.andThen(checkRange(range), found)
  },
  has: (hashes) =>
    Effect.suspend(() => {
      const valid = validHashes(hashes)
      return valid.length === 0
        ? Effect.succeed(new Set<string>())
        : Effect.map(contents.has(valid), (found): ReadonlySet<string> => new Set(found))
    }),
  delete: (hashes) =>
    Effect.suspend(() => {
      const valid = validHashes(hashes)
      return valid.length === 0 ? Effect.void : contents.delete(valid)
    }),
  list: Stream.filter(contents.list, ({ hash }) => isHash(hash))
})
