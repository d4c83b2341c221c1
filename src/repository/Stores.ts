/**
 * Places for the blobs and the heads of repositories.
 *
 * All stores have the same meaning, which `StoreSuite` in `fs-algebra/testing` tests. They differ in what they survive and who
 * can share them.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { BlobStore } from "./BlobStore.ts"
import { HeadStore } from "./HeadStore.ts"
import * as Memory from "./stores/memory.ts"
import type { Stores } from "./stores/stores.ts"

export {
  /** @since 0.1.0 */
  StoreError
} from "./errors.ts"

const toContext = ({ blobs, heads }: Stores): Context.Context<BlobStore | HeadStore> =>
  Context.add(Context.make(BlobStore, blobs), HeadStore, heads)

/**
 * Provides stores in memory, for tests. Each build of the layer makes new, empty stores. So share one layer between the programs
 * that work together, or provide it once around all of them.
 *
 * @example
 * ```ts
 * const program = Effect.gen(function* () {
 *   const blobs = yield* BlobStore.BlobStore
 *   const hash = yield* blobs.put(Uint8Array.of(1, 2, 3))
 *   return yield* blobs.get(hash, { offset: 1, length: 9 })
 * })
 * yield* Effect.provide(program, Stores.layerMemory) // => Uint8Array.of(2, 3)
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<BlobStore | HeadStore> = Layer.effectContext(Effect.map(Memory.make, toContext))
