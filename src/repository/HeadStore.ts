/**
 * Stores of heads: the current commit of each workspace.
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
 * The current commit of a workspace.
 *
 * @category models
 * @since 0.1.0
 */
export interface Head {
  /** The hash of the root node. */
  readonly root: string
  /** The number of the commit. The first commit has 1, and each later commit has one more. */
  readonly sequence: number
  readonly author: string
  readonly message: string
  readonly committedAt: DateTime.Utc
}

/**
 * The operations of a store of heads. The name of a workspace is a non-empty string of at most 256 UTF-8 bytes without control
 * characters. Other names fail with `invalid`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Operations {
  /** Returns the head, or `undefined` for an unknown workspace. */
  readonly get: (workspace: string) => Effect.Effect<Head | undefined, StoreError>
  /**
   * Replaces the head `expected` with `next`; `undefined` means that the workspace does not exist yet. Returns true if the head
   * was `expected` and is now `next`. If several callers pass the same `expected` concurrently, at most one of them gets true.
   */
  readonly compareAndSet: (workspace: string, expected: Head | undefined, next: Head) => Effect.Effect<boolean, StoreError>
  /** Deletes the workspace if its head is `expected`, and returns whether the workspace was deleted. */
  readonly delete: (workspace: string, expected: Head) => Effect.Effect<boolean, StoreError>
  /**
   * The names of all workspaces, in any order. If some names cannot be read, the stream fails with `corrupt` after all other
   * names.
   */
  readonly list: Stream.Stream<string, StoreError>
  /** The head, if there is one, and then each later head. A slow reader may miss heads, but never the last one. */
  readonly changes: (workspace: string) => Stream.Stream<Head, StoreError>
}

/**
 * The service that stores heads.
 *
 * @example
 * ```ts
 * const program = Effect.gen(function* () {
 *   const heads = yield* HeadStore.HeadStore
 *   const committedAt = yield* DateTime.now
 *   const first = { root: "0".repeat(64), sequence: 1, author: "ada", message: "start", committedAt }
 *   const isFirst = yield* heads.compareAndSet("notes", undefined, first)
 *   const isSecond = yield* heads.compareAndSet("notes", undefined, first)
 *   return [isFirst, isSecond]
 * })
 * yield* Effect.provide(program, Stores.layerMemory) // => [true, false]
 * ```
 * @category services
 * @since 0.1.0
 */
export class HeadStore extends Context.Service<HeadStore, Operations>()("fs-algebra/HeadStore") {}
