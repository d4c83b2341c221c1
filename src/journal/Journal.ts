/**
 * A journal: an append-only, ordered record of requests and answers. A position is an integer from 1, without gaps. A
 * reader receives the stored entries and then the new entries. Even a slow reader receives every entry.
 *
 * A journal keeps its entries in a `Store`, which may be in memory, in a file, or on a server.
 *
 * @since 0.1.0
 */
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { JournalError } from "./errors.ts"
import { type ContentStore, Entry, Journal, type Scrivener, type Store } from "./model.ts"
import * as Maintenance from "./store/maintenance.ts"
import type { Compacted, Verified } from "./store/maintenance.ts"
import * as FileStore from "./store/fileStore.ts"
import { makeFollowing } from "./store/fileStore.ts"
import * as MemoryStore from "./store/memoryStore.ts"
import { makeReading } from "./store/memoryStore.ts"

export {
  /** @since 0.1.0 */
  JournalError
} from "./errors.ts"
export {
  /** @since 0.1.0 */
  Entry,
  /** @since 0.1.0 */
  Journal,
  /** @since 0.1.0 */
  type Recorded,
  /** @since 0.1.0 */
  type Scrivener,
  /** @since 0.1.0 */
  type Store
} from "./model.ts"
export type {
  /** @since 0.1.0 */
  Compacted,
  /** @since 0.1.0 */
  Verified
} from "./store/maintenance.ts"
export { record, type RecordOptions } from "./record/record.ts"

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
 * The options of a journal in a file.
 *
 * @since 0.1.0
 */
export interface FileOptions {
  /** The path of the file. Opening creates the file, with access for this user only, and missing parent directories. */
  readonly path: string
  /** The directory of the contents that are not in entries, or a content store. @default the path with ".contents" */
  readonly contents?: string | ContentStore | undefined
  /** True if an append waits until its entries are on disk, so that they survive a loss of power. @default false */
  readonly fsync?: boolean | undefined
  /**
   * True if each line contains a SHA-256 of the previous line's hash and of its own bytes. So `verify` detects changes to the
   * file, except for lines cut off at the end, and for a change after which all later hashes were recomputed. An existing journal
   * keeps its format. `true` fails with `invalid` if the existing journal is not chained.
   * @default false
   */
  readonly chained?: boolean | undefined
  /**
   * True to open the file for reading only, while another process writes it. New entries appear when that process appends
   * them. Appends fail with `readOnly`. @default false
   */
  readonly readOnly?: boolean | undefined
}

/**
 * Opens a journal of entries of any kind in a file, with one line of JSON for each entry: `{v, pos, at, entry}`. Appends that
 * arrive during a write are written together in the next write. Opening reads the whole file. An incomplete line at the end was
 * never confirmed, and is cut off. Fails with `corrupt` and a position if the file is damaged in any other way. Fails with `busy`
 * if another writer, in this or another process, has the journal open. The schema must declare bytes that can exceed 4 KiB as
 * `FileSystemEntry.Content`. All accepted entries are written before the scope closes.
 *
 * @since 0.1.0
 */
export const makeFile = <E, I>(
  schema: Schema.Codec<E, I>,
  { chained = false, contents, fsync = false, path, readOnly = false }: FileOptions
): Effect.Effect<Scrivener<E>, JournalError, Scope.Scope> => {
  if (path.trim() === "") {
    return Effect.fail(
      new JournalError({ operation: "Journal.open", reason: "invalid", detail: "the path of the journal file is blank" })
    )
  }
  const place = contents ?? `${path}.contents`
  return Effect.map(
    readOnly
      ? makeFollowing(schema, { path, contents: place })
      : FileStore.make(schema, { path, contents: place, fsync, chained }),
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
 * Reads a whole journal of file operations and its contents. Fails with `corrupt` and the position of the first damaged entry.
 * Changes nothing, and can run while another process writes the journal.
 *
 * @since 0.1.0
 */
export const verify = (path: string, options: Pick<FileOptions, "contents"> = {}): Effect.Effect<Verified, JournalError> =>
  Maintenance.verify(Entry, path, options.contents ?? `${path}.contents`)

/**
 * The options of a compaction.
 *
 * @since 0.1.0
 */
export interface CompactOptions extends Pick<FileOptions, "contents"> {
  /** The position or the time of the first entry to keep. All earlier entries are removed. */
  readonly before: number | DateTime.Utc
}

/**
 * Removes the entries before a position from a journal file of file operations. Also removes the contents to which no remaining
 * entry refers, but not from a directory given in `contents`, which other journals may use too. The other entries keep their
 * positions, and `verify` still returns the same `head`. Afterwards `undo` and `tree` to an earlier position fail with
 * NotRecorded. Reading after an earlier position other than 0 fails with `compacted`. The last entry always stays. If leaves use
 * the journal, unanswered requests and the latest 4,096 positions stay too.
 *
 * After a crash the file is either the old journal or the new journal. Fails with `busy` if a process is writing the journal. A
 * process that reads the journal must open the journal again.
 *
 * @since 0.1.0
 */
export const compact = (path: string, options: CompactOptions): Effect.Effect<Compacted, JournalError> =>
  Maintenance.compact(path, options)
