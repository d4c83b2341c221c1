/**
 * Laws of the stores behind a repository, as values. Every implementation of the stores must satisfy all laws.
 *
 * @since 0.1.0
 */
import { blobLaws } from "./stores/blobLaws.ts"
import { headLaws } from "./stores/headLaws.ts"
import type { StoreLaw } from "./stores/law.ts"

export type {
  /** @since 0.1.0 */
  StoreLaw,
  /**
   * The services under test: a store of blobs and a store of heads.
   *
   * @since 0.1.0
   */
  StoreServices,
  /**
   * The sizes that the laws use.
   *
   * @since 0.1.0
   */
  StoreSizes
} from "./stores/law.ts"

/**
 * All laws of stores: first the laws of blobs, then the laws of heads.
 *
 * @category testing
 * @since 0.1.0
 */
export const storeLaws: ReadonlyArray<StoreLaw> = [...blobLaws, ...headLaws]
