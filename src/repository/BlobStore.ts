/**
 * Stores of blobs, which are immutable contents under their SHA-256. Equal content is stored once.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as DateTime from "effect/DateTime"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { StoreError } from "./errors.ts"

export {
  /** @since 0.1.0 */
  StoreError
} from "./errors.ts"

/**
 * The operations of a store of blobs. A hash is the SHA-256 of the content, as 64 lowercase hexadecimal digits.
 *
 * @category models
 * @since 0.1.0
 */
export interface Operations {
  /** Stores content and returns its hash. Content that exists already gets the current time as its `storedAt`. */
  readonly put: (bytes: Uint8Array) => Effect.Effect<string, StoreError>
  /**
   * Returns the content, or the bytes of `range` that exist. Fails with `missing` for an unknown hash. Without `range`, checks
   * the hash of the bytes, and fails with `corrupt` if it differs.
   */
  readonly get: (
    hash: string,
    range?: { readonly offset: number; readonly length: number } | undefined
  ) => Effect.Effect<Uint8Array, StoreError>
  /** Returns the hashes whose content exists. */
  readonly has: (hashes: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>, StoreError>
  /** Deletes content. Unknown hashes are ignored. */
  readonly delete: (hashes: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
  /** All hashes, in any order, with the time of the last `put`. */
  readonly list: Stream.Stream<{ readonly hash: string; readonly storedAt: DateTime.Utc }, StoreError>
}

/**
 * The service that stores blobs.
 *
 * @example
 * ```ts
 * const program = Effect.gen(function* () {
 *   const blobs = yield* BlobStore.BlobStore
 *   const hash = yield* blobs.put(new TextEncoder().encode("abc"))
 *   yield* blobs.delete([hash])
 *   return yield* Effect.flip(blobs.get(hash))
 * })
 * const error = yield* Effect.provide(program, Stores.layerMemory)
 * error.reason // => "missing"
 * ```
 * @category services
 * @since 0.1.0
 */
export class BlobStore extends Context.Service<BlobStore, Operations>()("fs-algebra/BlobStore") {}
