import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import { DaemonChanged, LeafCheckpoint } from "./entries/status.ts"
import type { JournalError } from "./errors.ts"
import * as FileSystemEntry from "./FileSystemEntry.ts"

/**
 * A store of file contents by their SHA-256. Each content is stored once.
 *
 * @since 0.1.0
 */
export interface ContentStore {
  /** Stores the bytes permanently. The caller may change the array afterwards. */
  readonly put: (bytes: Uint8Array) => Effect.Effect<FileSystemEntry.ContentRef, JournalError>
  /** Stores the bytes of the stream, with constant memory use. Stores nothing if the stream fails. */
  readonly putStream: <E, R>(
    bytes: Stream.Stream<Uint8Array, E, R>
  ) => Effect.Effect<FileSystemEntry.ContentRef, JournalError | E, R>
  /** Returns a copy of the content. Fails with `corrupt` if the content is missing or does not match its hash. */
  readonly get: (ref: FileSystemEntry.ContentRef) => Effect.Effect<Uint8Array, JournalError>
  /**
   * Reads the content with constant memory use, in chunks of at most 64 KiB. If the content does not match its hash, the
   * stream fails at its end, after it has emitted all chunks.
   */
  readonly stream: (ref: FileSystemEntry.ContentRef) => Stream.Stream<Uint8Array, JournalError>
  /** Tests whether the content exists and has the size of the reference. */
  readonly has: (ref: FileSystemEntry.ContentRef) => Effect.Effect<boolean, JournalError>
}

/**
 * An entry of a journal, with its position and its time.
 *
 * @since 0.1.0
 */
export interface Recorded<E> {
  /** The position, from 1. */
  readonly position: number
  /** The time of the append in milliseconds since 1970, by the Clock of the process that appended. */
  readonly at: number
  readonly entry: E
}

/**
 * The storage of a journal's entries. `append` is atomic: it stores all entries of a call at consecutive positions, or no
 * entry. Calls are stored in order. After an append completes, all readers see its entries. The caller must store contents
 * above 4 KiB in `contents` before the append.
 *
 * @since 0.1.0
 */
export interface Store<E> {
  /** Appends the entries and returns the position of the last entry. */
  readonly append: (entries: ReadonlyArray<E>, at: number) => Effect.Effect<number, JournalError>
  /** Reads at most `limit` entries strictly after the position, in order. Returns an empty array at the end. */
  readonly read: (after: number, limit: number) => Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError>
  /** Reads at most `limit` entries strictly before the position, the latest first. */
  readonly readBackward: (before: number, limit: number) => Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError>
  /** The position of the last entry, or 0 if there is no entry. */
  readonly last: Effect.Effect<number, JournalError>
  /** Waits until there is an entry after the position. */
  readonly changed: (after: number) => Effect.Effect<void, JournalError>
  readonly contents: ContentStore
}

/**
 * A journal of entries of any kind.
 *
 * @since 0.1.0
 */
export interface Scrivener<E> {
  /**
   * Appends an entry and returns its position. Bytes above 4 KiB, anywhere in the entry, are stored in the content store, and
   * the stored entry contains a `FileSystemEntry.ContentRef` instead. The given entry is not changed, and the caller may change
   * it afterwards.
   */
  readonly append: (entry: E) => Effect.Effect<number, JournalError>
  /**
   * Appends all entries at consecutive positions, or no entry. Returns the last position. For an empty array, returns the
   * current last position.
   */
  readonly appendAll: (entries: ReadonlyArray<E>) => Effect.Effect<number, JournalError>
  /** Emits the stored entries strictly after the position, and then new entries when they arrive. Never ends. @default 0 */
  readonly tail: (after?: number) => Stream.Stream<Recorded<E>, JournalError>
  /** Emits the stored entries strictly after the position, then ends. @default 0 */
  readonly stored: (after?: number) => Stream.Stream<Recorded<E>, JournalError>
  /** Emits the stored entries strictly before the position, the latest first. @default from the end */
  readonly readBackward: (before?: number) => Stream.Stream<Recorded<E>, JournalError>
  /** Returns the first entry after the position that satisfies the predicate. Waits until such an entry exists. */
  readonly waitFor: <B extends E>(after: number, is: (entry: E) => entry is B) => Effect.Effect<Recorded<B>, JournalError>
  /** The position of the last entry, or 0 if there is no entry. */
  readonly last: Effect.Effect<number, JournalError>
  readonly contents: ContentStore
  /** Returns a copy of the bytes of an entry's content. */
  readonly bytes: (content: FileSystemEntry.Content) => Effect.Effect<Uint8Array, JournalError>
}

/** @since 0.1.0 */
export const Entry = Schema.Union([...FileSystemEntry.FileSystemEntry.members, DaemonChanged, LeafCheckpoint])
/**
 * Any entry in a journal of file operations.
 *
 * @since 0.1.0
 */
export type Entry = FileSystemEntry.FileSystemEntry | DaemonChanged | LeafCheckpoint

/**
 * The service for the journal of file operations.
 *
 * @category services
 * @since 0.1.0
 */
export class Journal extends Context.Service<Journal, Scrivener<Entry>>()("fs-algebra/Journal") {}
