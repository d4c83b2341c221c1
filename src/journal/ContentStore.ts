/**
 * Contents stored by their hash next to a journal, which keeps the journal small. Each content is stored once, and any number of entries
 * may refer to it.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import * as Directory from "./content.ts"
import type { JournalError } from "./errors.ts"
import type { ContentRef } from "./FileSystemEntry.ts"

/**
 * A store of contents by their SHA-256. Each content is kept once.
 *
 * @since 0.1.0
 */
export interface ContentStore {
  /** Stores the bytes permanently. The caller may change the array afterwards. */
  readonly put: (bytes: Uint8Array) => Effect.Effect<ContentRef, JournalError>
  /** Stores the stream's bytes in constant memory. Stores nothing if the stream fails. */
  readonly putStream: <E, R>(bytes: Stream.Stream<Uint8Array, E, R>) => Effect.Effect<ContentRef, JournalError | E, R>
  /** Returns a copy of the content. Fails with `corrupt` if the content is missing or does not match its hash. */
  readonly get: (ref: ContentRef) => Effect.Effect<Uint8Array, JournalError>
  /**
   * Reads the content in constant memory, in chunks of at most 64 KiB. A mismatch with the hash is detected only at the end, after all
   * chunks have been emitted.
   */
  readonly stream: (ref: ContentRef) => Stream.Stream<Uint8Array, JournalError>
  /** Tests whether the content exists and has the size of the reference. */
  readonly has: (ref: ContentRef) => Effect.Effect<boolean, JournalError>
}

/**
 * The durability of a content store in a directory.
 *
 * @since 0.1.0
 */
export interface DirectoryOptions {
  /** True if `put` waits until the content is on disk, not only in the system's memory. @default false */
  readonly fsync?: boolean | undefined
}

/**
 * Returns a content store in memory, which lives as long as it is referenced.
 *
 * @example
 * ```ts
 * const contents = ContentStore.makeMemory()
 * const ref = yield* contents.put(Uint8Array.of(1, 2, 3))
 * yield* contents.get(ref) // => Uint8Array.of(1, 2, 3)
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory: () => ContentStore = Directory.make

/**
 * Opens a content store in a directory, which is created with the first content. Any number of processes may use the directory at once.
 * Opening removes the leftovers of dead processes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeDirectory = (directory: string, options: DirectoryOptions = {}): Effect.Effect<ContentStore, JournalError> =>
  Directory.makeDirectory(directory, { fsync: options.fsync === true, removesLeftovers: true })
