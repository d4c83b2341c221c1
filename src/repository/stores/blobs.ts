/** Derives a store of blobs from operations on valid hashes. Checks all arguments, and all contents that a store returns. */
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { sha256 } from "../../runtime/hash.ts"
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

/** The operations of a store on valid hashes. No list of hashes contains a hash twice. */
export interface Contents {
  /** Stores content. The caller must not change the bytes afterwards. */
  readonly put: (hash: string, bytes: Uint8Array) => Effect.Effect<void, StoreError>
  /** Returns the bytes of the range that exist, or all bytes, in a new array. Returns `undefined` for an unknown hash. */
  readonly get: (hash: string, range: Range | undefined) => Effect.Effect<Uint8Array | undefined, StoreError>
  readonly has: (hashes: ReadonlyArray<string>) => Effect.Effect<Iterable<string>, StoreError>
  readonly delete: (hashes: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
  /** Deletes the content of each hash whose last `put` was before `millis`. Returns the number of deleted contents. */
  readonly deleteOlder: (hashes: ReadonlyArray<string>, millis: number) => Effect.Effect<number, StoreError>
  /** All hashes. The list may also have names that other programs have stored. */
  readonly list: Stream.Stream<Listed, StoreError>
}

/**
 * The key of `deleteOlder`, which keeps content that was stored again. The library's own stores have this operation beside the
 * public ones.
 */
export const deleteOlder: unique symbol = Symbol("fs-algebra/repository/deleteOlder")

/** The key of a `put` with a hash that the caller has computed. The caller must not change the bytes afterwards. */
export const putHashed: unique symbol = Symbol("fs-algebra/repository/putHashed")

export interface OwnOperations extends Operations {
  readonly [putHashed]: Contents["put"]
  readonly [deleteOlder]: Contents["deleteOlder"]
}

export const isHash = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

const missing = (hash: string): StoreError =>
  new StoreError({ reason: "missing", detail: `the blob ${hash.slice(0, 80)} does not exist in the store` })

export const corruptBlob = (hash: string, detail: string): StoreError =>
  new StoreError({ reason: "corrupt", detail: `the blob ${hash} is corrupt: ${detail}; store its content again` })

/** The maximum size of a blob in bytes. Larger files or rows of other programs are not read. */
export const maxBlobBytes = 1024 * 1024 * 1024

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

const validHashes = (hashes: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(hashes)].filter(isHash)

export const make = (contents: Contents): OwnOperations => ({
  [putHashed]: contents.put,
  [deleteOlder]: (hashes, millis) =>
    Effect.suspend(() => {
      const valid = validHashes(hashes)
      return valid.length === 0 ? Effect.succeed(0) : contents.deleteOlder(valid, millis)
    }),
  put: (bytes) =>
    Effect.suspend(() => {
      if (bytes.length > maxBlobBytes) {
        const detail = `a blob of ${bytes.length} bytes is too large; divide content of more than ${maxBlobBytes} bytes`
        return Effect.fail(new StoreError({ reason: "invalid", detail }))
      }
      // The caller may change its array during the call.
      const copy = new Uint8Array(bytes)
      const hash = sha256(copy)
      return Effect.as(contents.put(hash, copy), hash)
    }),
  get: (hash, range) =>
    Effect.gen(function* () {
      yield* checkRange(range)
      const bytes = isHash(hash) ? yield* contents.get(hash, range) : undefined
      if (bytes === undefined) return yield* missing(hash)
      if (range === undefined && sha256(bytes) !== hash) {
        return yield* corruptBlob(hash, `the stored ${bytes.length} bytes have another hash`)
      }
      return bytes
    }),
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
