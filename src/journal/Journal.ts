/**
 * A journal: an append-only, ordered record of requests and answers. A position is an integer from 1, without gaps. A reader receives the
 * stored entries and then the new ones, and misses none, however slow it is.
 *
 * A journal works over a `Store`, which has few operations. So memory, a file and a server differ only in where the entries are stored.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { ContentStore } from "./ContentStore.ts"
import { DaemonChanged, LeafCheckpoint } from "./entries/status.ts"
import { JournalError } from "./errors.ts"
import * as FileSystemEntry from "./FileSystemEntry.ts"
import * as Compacting from "./store/maintenance.ts"
import * as FileStore from "./store/fileStore.ts"
import { makeFollowing } from "./store/fileStore.ts"
import * as MemoryStore from "./store/scrivener.ts"
import { makeReading } from "./store/scrivener.ts"

export {
  /** @since 0.1.0 */
  JournalError
} from "./errors.ts"
export { record, type RecordOptions } from "./record/record.ts"

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
 * The storage of a journal's entries. `append` is atomic: all entries of a call are stored at consecutive positions, or none is. Calls are
 * stored in order, and an entry is visible to all readers once its append completes. The caller has put contents above 4 KiB into
 * `contents` before.
 *
 * @since 0.1.0
 */
export interface Store<E> {
  /** Appends the entries and returns the position of the last one. */
  readonly append: (entries: ReadonlyArray<E>, at: number) => Effect.Effect<number, JournalError>
  /** Reads at most `limit` entries strictly after the position, in order. Returns an empty array at the end. */
  readonly read: (after: number, limit: number) => Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError>
  /** Reads at most `limit` entries strictly before the position, the latest first. */
  readonly readBackward: (before: number, limit: number) => Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError>
  /** The position of the last entry; 0 if there is none. */
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
   * Appends an entry and returns its position. Bytes above 4 KiB, anywhere in the entry, go to the content store, and the stored entry has
   * their `ContentRef` instead. The given entry is not changed, and the caller may change it afterwards.
   */
  readonly append: (entry: E) => Effect.Effect<number, JournalError>
  /**
   * Appends all entries at consecutive positions, or none, and returns the last position. Returns the current last position for an empty
   * array.
   */
  readonly appendAll: (entries: ReadonlyArray<E>) => Effect.Effect<number, JournalError>
  /** Emits the stored entries strictly after the position, then new entries as they arrive, without end. @default 0 */
  readonly tail: (after?: number) => Stream.Stream<Recorded<E>, JournalError>
  /** Emits the stored entries strictly after the position, then ends. @default 0 */
  readonly stored: (after?: number) => Stream.Stream<Recorded<E>, JournalError>
  /** Emits the stored entries strictly before the position, the latest first. @default from the end */
  readonly readBackward: (before?: number) => Stream.Stream<Recorded<E>, JournalError>
  /** Returns the first entry after the position that satisfies the predicate, and waits for it if necessary. */
  readonly waitFor: <B extends E>(after: number, is: (entry: E) => entry is B) => Effect.Effect<Recorded<B>, JournalError>
  /** The position of the last entry; 0 if there is none. */
  readonly last: Effect.Effect<number, JournalError>
  readonly contents: ContentStore
  /** Returns a copy of the bytes of a content from an entry. */
  readonly bytes: (content: FileSystemEntry.Content) => Effect.Effect<Uint8Array, JournalError>
}

/** @since 0.1.0 */
export const Entry = Schema.Union([...FileSystemEntry.FileSystemEntry.members, DaemonChanged, LeafCheckpoint])
/**
 * Any entry in the journal of a filesystem.
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

/**
 * Returns a journal over a store.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: <E>(store: Store<E>) => Scrivener<E> = makeReading

/**
 * Returns a journal in memory, of entries of any kind.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory = <E>(): Effect.Effect<Scrivener<E>> => Effect.sync(() => make(MemoryStore.make<E>()))

/**
 * Provides a journal of file operations in memory.
 *
 * @example
 * ```ts
 * const recorded = Effect.gen(function* () {
 *   const journal = yield* Journal.Journal
 *   const self = yield* Journal.record()(fs)
 *   yield* self.write("a.txt", "one")
 *   return yield* Stream.runCollect(journal.stored())
 * })
 * const entries = yield* Effect.provide(recorded, Journal.layerMemory)
 * entries.map(({ entry }) => entry._tag) // => ["FileWrite", "FileWritten"]
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<Journal> = Layer.effect(Journal, makeMemory<Entry>())

/**
 * The location and the durability of a journal in a file.
 *
 * @since 0.1.0
 */
export interface FileOptions {
  /** The path of the file. The file and its parent directories are created if they do not exist, readable by this user only. */
  readonly path: string
  /** The directory of the contents above 4 KiB. @default the path with ".contents" */
  readonly contents?: string | undefined
  /** True if an append waits until its entries are on disk, so that they survive a loss of power. @default false */
  readonly fsync?: boolean | undefined
  /**
   * True if each line carries a SHA-256 of itself and of the line before it. Tampering is then detectable, except for lines cut off at the
   * end. An existing journal keeps its format; `true` fails with `invalid` if it is not chained. @default false
   */
  readonly chained?: boolean | undefined
  /**
   * True to open the file for reading only, beside a process that writes it. New entries appear as that process appends them. Appends
   * fail with `readOnly`. @default false
   */
  readonly readOnly?: boolean | undefined
}

/**
 * Opens a journal of entries of any kind in a file, with one line of JSON for each entry: `{v, pos, at, entry}`. Appends that arrive during
 * a write are written together with the next write. Opening reads the whole file. A partial line at the end was never confirmed, and is cut
 * off. Any other damage fails with `corrupt` and its position. One process writes at a time; others fail with `busy`. The schema must
 * declare bytes that can exceed 4 KiB as `FileSystemEntry.Content`. All accepted entries are written before the scope closes.
 *
 * @since 0.1.0
 */
export const makeFile = <E, I>(
  schema: Schema.Codec<E, I>,
  { chained = false, contents, fsync = false, path, readOnly = false }: FileOptions
): Effect.Effect<Scrivener<E>, JournalError, Scope.Scope> => {
  if (path.trim() === "") {
    return Effect.fail(
      new JournalError({ operation: "Journal.open", reason: "invalid", detail: "the name of the file is blank" })
    )
  }
  const directory = contents ?? `${path}.contents`
  return Effect.map(
    readOnly
      ? makeFollowing(schema, { path, contents: directory })
      : FileStore.make(schema, { path, contents: directory, fsync, chained }),
    make
  )
}

/**
 * Provides the journal of file operations in a file.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFile = (options: FileOptions): Layer.Layer<Journal, JournalError> =>
  Layer.effect(Journal, makeFile(Entry, options))

/**
 * The contents of an intact journal file.
 *
 * @since 0.1.0
 */
export interface Verified {
  readonly entries: number
  /** The position up to which a compaction has removed the entries; absent if the journal was never compacted. */
  readonly after?: number
  readonly chained: boolean
  /** The hash of the last line, for a chained journal. A caller that keeps it elsewhere can later detect whether lines were cut off. */
  readonly head?: string
  /** True if the file ends with a partial line. Its entry was never confirmed, or is being written. */
  readonly torn: boolean
  /** Counts of the distinct contents above 4 KiB: named by entries, missing, and not matching their hash. */
  readonly contents: { readonly referenced: number; readonly missing: number; readonly damaged: number }
}

/**
 * Reads a whole journal of file operations and its contents. Fails with `corrupt` and the position of the first damaged entry. Changes
 * nothing, and may run beside a process that writes.
 *
 * @since 0.1.0
 */
export const verify = (path: string, options: Pick<FileOptions, "contents"> = {}): Effect.Effect<Verified, JournalError> =>
  Compacting.verify(Entry, path, options.contents ?? `${path}.contents`)

/**
 * The options of a compaction.
 *
 * @since 0.1.0
 */
export interface CompactOptions extends Pick<FileOptions, "contents"> {
  /** The limit of the removal: entries before this position, or older than this time. */
  readonly before: number | DateTime.Utc
}

/**
 * The result of a compaction.
 *
 * @since 0.1.0
 */
export interface Compacted {
  /** The number of entries removed. */
  readonly removed: number
  /** The position of the first remaining entry. */
  readonly first: number
  /** The number of contents above 4 KiB that were removed because no remaining entry names them. */
  readonly contents: number
  /** The reason why fewer entries were removed than requested: a leaf still needs them. */
  readonly kept?: "unanswered" | "recent"
}

/**
 * Removes the entries before a position from a journal of file operations in a file, and the contents that only these entries name. The
 * other entries keep their positions, and `verify` keeps its `head`. Afterwards `undo` and `tree` to an earlier position fail with
 * NotRecorded. Reading after an earlier position other than 0 fails with `compacted`. The last entry always stays. In a journal of leaves,
 * the requests without an answer and the latest 4,096 positions stay too.
 *
 * After a crash the journal is either the old one or the new one. Fails with `busy` if a process is writing the journal. A process that is
 * reading along must open it again.
 *
 * @since 0.1.0
 */
export const compact = (path: string, options: CompactOptions): Effect.Effect<Compacted, JournalError> =>
  Compacting.compact(path, options)
