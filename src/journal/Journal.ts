/**
 * What was asked and answered, in the order in which it was said, for ever. A position is an integer from 1, without gaps. Who reads
 * gets what is stored and then what comes, and loses nothing, however slow.
 *
 * A journal is written over a `Store`, which is small, so that memory, a file and a server differ in nothing but where entries lie.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { ContentStore } from "./ContentStore.ts"
import { DaemonChanged } from "./entries/daemon.ts"
import type { JournalError } from "./errors.ts"
import * as FileSystemEntry from "./FileSystemEntry.ts"
import * as MemoryStore from "./journal/memoryStore.ts"
import * as Reading from "./journal/reading.ts"

export {
  /** @since 0.1.0 */
  JournalError
} from "./errors.ts"

/** @since 0.1.0 */
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
  /** Answers its position. Bytes over 4 KiB go to the content store; the entry is not changed, and may be afterwards. */
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
export const Entry = Schema.Union([...FileSystemEntry.FileSystemEntry.members, DaemonChanged])
/**
 * What the journal of a filesystem holds.
 *
 * @since 0.1.0
 */
export type Entry = FileSystemEntry.FileSystemEntry | DaemonChanged

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
