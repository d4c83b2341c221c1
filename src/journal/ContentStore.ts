/**
 * Stores of file contents by their hash, next to a journal. Each content is stored once, and any number of entries may refer
 * to the content, so the journal stays small.
 *
 * A content store is a `BlobStore`: in memory, in a directory, in a SQL database, on a NATS server or in a bucket.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type * as BlobStore from "../repository/BlobStore.ts"
import * as Memory from "../repository/stores/memory.ts"
import type { JournalError } from "./errors.ts"
import type { ContentStore } from "./model.ts"
import * as BlobContents from "./store/blobContents.ts"
import * as Directory from "./store/directoryContents.ts"

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
 * Returns a content store on any store of blobs. In memory, and in a store of your own, a content has at most 1 GiB. The other
 * stores of this library keep contents of any size.
 *
 * The store must have no workspaces: a garbage collection in `Repository` deletes every blob to which no workspace refers.
 *
 * @example
 * ```ts
 * const program = Effect.gen(function* () {
 *   const contents = ContentStore.make(yield* BlobStore.BlobStore)
 *   const ref = yield* contents.put(Uint8Array.of(1, 2, 3))
 *   return yield* contents.get(ref)
 * })
 * yield* Effect.provide(program, Stores.layerMemory) // => Uint8Array.of(1, 2, 3)
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const make = (blobs: BlobStore.Operations): ContentStore => BlobContents.make(blobs)

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
export const makeMemory = (): ContentStore => make(Memory.makeBlobs())

/**
 * Opens a content store in a directory. The first content creates the directory. Any number of processes may use the
 * directory at the same time. Opening removes the leftovers of dead processes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeDirectory = (directory: string, options: DirectoryOptions = {}): Effect.Effect<ContentStore, JournalError> =>
  Directory.open(directory, options)
