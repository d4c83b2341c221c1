/**
 * A filesystem on a bucket, or on a prefix of a bucket, of an S3-compatible store.
 *
 * Each file is one object, so other tools see ordinary keys. A directory exists if any key lies below it. An empty
 * directory is an empty object, the marker, whose key ends in a slash.
 *
 * A write is one conditional request: `If-None-Match: *` creates, and `If-Match` replaces only the object that was read. So
 * creating, replacing, appending and preconditions are atomic between programs on any machines. Building the layer tests, with
 * an object of its own, whether the store obeys these conditions.
 *
 * Limits:
 *
 * - A bucket cannot rename. A move copies and then deletes, and other programs can see both entries meanwhile. The store
 *   itself copies files of more than 1 MiB, if its copies obey the same conditions as its writes.
 * - Watching is not supported. Symlinks, permission bits and times of directories require `metadata: true`.
 * - An append rewrites the object, up to 64 MiB.
 * - An open file of at most 1 MiB keeps its content. A read from a larger file fails with IoError `ESTALE` if the object is
 *   replaced meanwhile.
 * - The deletion of a directory is best-effort while other programs write. So is the deletion of a file, on stores that
 *   ignore `If-Match` for deletions. So is a stream of more than 8 MiB, on stores that ignore conditions when an upload is
 *   completed.
 * - If other programs store both `a` and `a/b`, then `a` is the file. The other objects are listed as not addressable.
 *
 * Requires the package `aws4fetch`, unless the requests are not signed.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Filesystem from "../filesystem/Filesystem.ts"
import type { BackendError, InvalidArgument } from "../model/FsError.ts"
import type { Backend } from "../port/Backend.ts"
import type { BucketOptions } from "./bucket/open.ts"

export type {
  /** @since 0.1.0 */
  BucketOptions
} from "./bucket/open.ts"

/**
 * Opens a bucket: checks that it answers, and tests which write conditions the store obeys. The test writes and deletes one
 * object. The test is skipped for a read-only layer, and with `conditional: false`.
 *
 * Fails with InvalidArgument for an invalid option. Fails with Unavailable if the bucket does not exist or does not answer,
 * if the credentials are refused, or if the store ignores conditions.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: BucketOptions): Effect.Effect<Backend, BackendError | InvalidArgument> =>
  // Load the HTTP modules only in programs that open a bucket.
  Effect.flatMap(
    Effect.promise(() => import("./bucket/open.ts")),
    ({ open }) => open(options)
  )

/**
 * Creates a filesystem on a bucket. Fails like `make`.
 *
 * @example
 * ```ts
 * const read = Filesystem.Filesystem.use((fs) => fs.readString("july.md"))
 * yield* Effect.provide(read, Bucket.layer({ bucket: "reports", endpoint: "http://127.0.0.1:9000" }))
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: BucketOptions): Layer.Layer<Filesystem.Filesystem, BackendError | InvalidArgument> =>
  Filesystem.layer(make(options))
