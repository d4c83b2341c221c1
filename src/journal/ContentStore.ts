/**
 * Contents by their hash, beside a journal, which then stays small: what is stored once is there for every entry that names it.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import * as Directory from "./content/directory.ts"
import * as Memory from "./content/memory.ts"
import type { JournalError } from "./errors.ts"
import type { ContentRef } from "./FileSystemEntry.ts"

/**
 * Contents by their SHA-256, each kept once.
 *
 * @since 0.1.0
 */
export interface ContentStore {
  /** Is there for good when this ends. The bytes may be changed afterwards. */
  readonly put: (bytes: Uint8Array) => Effect.Effect<ContentRef, JournalError>
  /** The same in constant memory. Nothing is stored where the stream fails. */
  readonly putStream: <E, R>(bytes: Stream.Stream<Uint8Array, E, R>) => Effect.Effect<ContentRef, JournalError | E, R>
  /** A copy. Fails with `corrupt` where it is missing or is not what its hash says. */
  readonly get: (ref: ContentRef) => Effect.Effect<Uint8Array, JournalError>
  /**
   * The same in constant memory, in chunks of at most 64 KiB. That it is not what its hash says is known at the end, when the chunks
   * have been given.
   */
  readonly stream: (ref: ContentRef) => Stream.Stream<Uint8Array, JournalError>
  /** It is there and has its size. */
  readonly has: (ref: ContentRef) => Effect.Effect<boolean, JournalError>
}

/**
 * How safely a directory keeps contents.
 *
 * @since 0.1.0
 */
export interface DirectoryOptions {
  /** What was put is on disk, not only in the system's memory. @default false */
  readonly fsync?: boolean | undefined
}

/**
 * In memory, for as long as it is referred to.
 *
 * @since 0.1.0
 */
export const makeMemory: () => ContentStore = Memory.make

/**
 * In a directory, which is made with the first content. Any number of processes may use it at once. Of what processes that were killed
 * have left the next start removes the rest.
 *
 * @since 0.1.0
 */
export const makeDirectory = (directory: string, options: DirectoryOptions = {}): Effect.Effect<ContentStore, JournalError> =>
  Directory.make(directory, { fsync: options.fsync === true, sweeps: true })
