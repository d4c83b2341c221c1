/**
 * A filesystem in a temporary directory of one session: the contents on disk, what is known of them in a slice.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Slice from "../model/Slice.ts"

/** @since 0.1.0 */
export interface VfsFile {
  /** Relative, its segments. */
  readonly path: ReadonlyArray<string>
  /** `utf-8`, `binary`, or whatever a writer says. */
  readonly encoding: string | null
  readonly sizeBytes: number
  /** 1 when it is made, one more with each write. */
  readonly version: number
  readonly createdAt: string
  readonly updatedAt: string
}

/** @since 0.1.0 */
export const VirtualFileSystem = Slice.make(
  "VirtualFileSystem",
  Schema.Struct({ rootPath: Schema.String, files: Schema.Array(Schema.Unknown) }),
  { reduce: Slice.replaceLatest }
)
