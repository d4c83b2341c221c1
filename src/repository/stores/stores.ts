import type * as BlobStore from "../BlobStore.ts"
import type * as HeadStore from "../HeadStore.ts"

/** The two stores of a repository. */
export interface Stores {
  readonly blobs: BlobStore.Operations
  readonly heads: HeadStore.Operations
}
