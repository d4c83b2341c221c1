/**
 * Stores of file contents by their hash, next to a journal. Each content is stored once, and any number of entries may refer
 * to the content, so the journal stays small.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type { JournalError } from "./errors.ts"
import type { ContentStore } from "./model.ts"
import * as Directory from "./store/contents.ts"

export type {
  /** @since 0.1.0 */
  ContentStore
} from "./model.ts"

/**
 * The options of a content store in a directory.
 *
 * @since 0.1.0
 */
export interface DirectoryOptions {
  /** True if `put` waits until the content is on disk, so that the content survives a loss of power. @default false */
  readonly fsync?: boolean | undefined
}

/**
 * Returns a content store in memory.
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
 * Opens a content store in a directory. The first content creates the directory. Any number of processes may use the
 * directory at the same time. Opening removes the leftovers of dead processes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeDirectory = (directory: string, options: DirectoryOptions = {}): Effect.Effect<ContentStore, JournalError> =>
  Directory.makeDirectory(directory, { fsync: options.fsync === true, removesLeftovers: true })
