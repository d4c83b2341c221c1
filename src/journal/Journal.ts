/**
 * What was asked and answered, in the order in which it was said, for ever. A position is an integer from 1, without gaps. Who reads
 * gets what is stored and then what comes, and loses nothing, however slow.
 *
 * A journal is written over a `Store`, which is small, so that memory, a file and a server differ in nothing but where entries lie.
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
import { LeafCheckpoint } from "./entries/checkpoint.ts"
import { DaemonChanged } from "./entries/daemon.ts"
import { JournalError } from "./errors.ts"
import * as FileSystemEntry from "./FileSystemEntry.ts"
import * as Compacting from "./journal/compacting.ts"
import * as FileStore from "./journal/fileStore.ts"
import * as Following from "./journal/following.ts"
import * as MemoryStore from "./journal/memoryStore.ts"
import * as Reading from "./journal/reading.ts"
import * as Verifying from "./journal/verifying.ts"

export {
  /** @since 0.1.0 */
  JournalError
} from "./errors.ts"
export {
  /** @since 0.1.0 */
  record,
  /** @since 0.1.0 */
  type RecordOptions
} from "./record/record.ts"

/**
 * An entry of a journal, with its position and its time.
 *
 * @since 0.1.0
 */
export interface Recorded<E> {
  /** From 1. */
  readonly position: number
  /** Milliseconds since 1970, of the Clock of who appended it. */
  readonly at: number
  readonly entry: E
}

/**
 * Where entries lie. `append` is atomic: all of a call or none, at consecutive positions, in order of the calls; what it has answered is
 * there for whoever reads. Contents over 4 KiB have been put into `contents` before.
 *
 * @since 0.1.0
 */
export interface Store<E> {
  /** The position of the last one. */
  readonly append: (entries: ReadonlyArray<E>, at: number) => Effect.Effect<number, JournalError>
  /** At most so many, strictly after the position, in order; none at the end. */
  readonly read: (after: number, limit: number) => Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError>
  /** At most so many, strictly before the position, the latest first. */
  readonly readBackward: (before: number, limit: number) => Effect.Effect<ReadonlyArray<Recorded<E>>, JournalError>
  /** 0 where there is none. */
  readonly last: Effect.Effect<number, JournalError>
  /** Ends as soon as there is one after the position. */
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
   * Answers its position. Bytes over 4 KiB, wherever they are in the entry, go to the content store, and their `ContentRef` stands
   * instead of them; the entry that was given is not changed, and may be afterwards.
   */
  readonly append: (entry: E) => Effect.Effect<number, JournalError>
  /** All or none, at consecutive positions; answers the last one's. None at all answers the position of the end. */
  readonly appendAll: (entries: ReadonlyArray<E>) => Effect.Effect<number, JournalError>
  /** What is stored strictly after the position, then what comes, for ever. @default 0 */
  readonly tail: (after?: number) => Stream.Stream<Recorded<E>, JournalError>
  /** What is stored strictly after the position, and an end. @default 0 */
  readonly stored: (after?: number) => Stream.Stream<Recorded<E>, JournalError>
  /** What is stored strictly before the position, the latest first. @default from the end */
  readonly readBackward: (before?: number) => Stream.Stream<Recorded<E>, JournalError>
  /** The first after the position that is such, stored or to come. */
  readonly waitFor: <B extends E>(after: number, is: (entry: E) => entry is B) => Effect.Effect<Recorded<B>, JournalError>
  /** The position of the last entry; 0 where there is none. */
  readonly last: Effect.Effect<number, JournalError>
  readonly contents: ContentStore
  /** Of an entry that was read: the bytes themselves, a copy. */
  readonly bytes: (content: FileSystemEntry.Content) => Effect.Effect<Uint8Array, JournalError>
}

/** @since 0.1.0 */
export const Entry = Schema.Union([...FileSystemEntry.FileSystemEntry.members, DaemonChanged, LeafCheckpoint])
/**
 * What the journal of a filesystem holds.
 *
 * @since 0.1.0
 */
export type Entry = FileSystemEntry.FileSystemEntry | DaemonChanged | LeafCheckpoint

/**
 * The journal of file operations.
 *
 * @since 0.1.0
 */
export class Journal extends Context.Service<Journal, Scrivener<Entry>>()("fs-algebra/Journal") {}

/**
 * A journal over a store.
 *
 * @since 0.1.0
 */
export const make: <E>(store: Store<E>) => Scrivener<E> = Reading.make

/**
 * A journal in memory, of entries of any kind.
 *
 * @since 0.1.0
 */
export const makeMemory = <E>(): Effect.Effect<Scrivener<E>> => Effect.sync(() => make(MemoryStore.make<E>()))

/**
 * The journal of file operations in memory.
 *
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<Journal> = Layer.effect(Journal, makeMemory<Entry>())

/**
 * Which file holds a journal, and how safely.
 *
 * @since 0.1.0
 */
export interface FileOptions {
  /** Made with its directories where it is not there, for this user only. */
  readonly path: string
  /** Directory of the contents over 4 KiB. @default the path with ".contents" */
  readonly contents?: string | undefined
  /** What was appended is on disk when it is answered, and so survives a loss of power. @default false */
  readonly fsync?: boolean | undefined
  /**
   * Each line carries a SHA-256 of the one before it and of itself, so that tampering shows, but for lines cut off at the end. A journal
   * that is there stays what it is; `true` fails with `invalid` where it is not chained. @default false
   */
  readonly chained?: boolean | undefined
  /** Beside a process that writes it, whose entries appear as they come. Appends fail with `readOnly`. @default false */
  readonly readOnly?: boolean | undefined
}

/**
 * A journal of entries of any kind in a file, of one line of JSON each: `{v, pos, at, entry}`. What comes while a write is on its way goes
 * with the next one. All is read when it is opened: what was torn at the end by a crash was never answered and is cut off; anything else
 * that is wrong fails with `corrupt` and its position. One process writes at a time; others get `busy`. Bytes in an entry have to be
 * `FileSystemEntry.Content` in its schema where they may be over 4 KiB. What was taken is written before the scope is closed.
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
      ? Following.make(schema, { path, contents: directory })
      : FileStore.make(schema, { path, contents: directory, fsync, chained }),
    make
  )
}

/**
 * The journal of file operations in a file.
 *
 * @since 0.1.0
 */
export const layerFile = (options: FileOptions): Layer.Layer<Journal, JournalError> =>
  Layer.effect(Journal, makeFile(Entry, options))

/**
 * What is found in a journal's file that is sound.
 *
 * @since 0.1.0
 */
export interface Verified {
  readonly entries: number
  /** Of a journal that was compacted: the position up to which entries are gone. */
  readonly after?: number
  readonly chained: boolean
  /** Of a chained journal, the hash that its end has: kept elsewhere it shows later whether lines were cut off. */
  readonly head?: string
  /** Something stands at the end that was not written whole: it was never answered, or is being written. */
  readonly torn: boolean
  /** Different contents over 4 KiB: named by the entries, and of them those that are not there, or are not what their hash says. */
  readonly contents: { readonly referenced: number; readonly missing: number; readonly damaged: number }
}

/**
 * Reads all of a journal of file operations and its contents. Fails with `corrupt` and the position of the first entry that is not what
 * was appended. It changes nothing, and may run beside a process that writes.
 *
 * @since 0.1.0
 */
export const verify = (path: string, options: Pick<FileOptions, "contents"> = {}): Effect.Effect<Verified, JournalError> =>
  Verifying.verify(Entry, path, options.contents ?? `${path}.contents`)

/**
 * The entries that a compaction removes.
 *
 * @since 0.1.0
 */
export interface CompactOptions extends Pick<FileOptions, "contents"> {
  /** Entries before this position, or older than this time, go. */
  readonly before: number | DateTime.Utc
}

/**
 * The result of a compaction.
 *
 * @since 0.1.0
 */
export interface Compacted {
  /** Entries that were removed. */
  readonly removed: number
  /** The position of the first entry that is there. */
  readonly first: number
  /** Contents over 4 KiB that were removed, because no entry names them any more. */
  readonly contents: number
  /** Why fewer went than were asked for: a leaf still needs them. */
  readonly kept?: "unanswered" | "recent"
}

/**
 * Removes the entries before a position from a journal of file operations in a file, and the contents that only they name. The others keep
 * their positions, and `verify` its `head`. Then `undo` and `tree` to an earlier position are NotRecorded, and reading after an earlier
 * position but 0 fails with `compacted`. The last entry stays. In a journal of leaves so does what they need: requests without an answer, and
 * the latest 4,096 positions.
 *
 * After a crash the journal is the old one or the new one. Nobody may write it meanwhile: `busy`. Who reads along opens it anew.
 *
 * @since 0.1.0
 */
export const compact = (path: string, options: CompactOptions): Effect.Effect<Compacted, JournalError> =>
  Compacting.compact(path, options)
