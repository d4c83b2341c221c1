/**
 * Named snapshots. Each snapshot is a ZIP archive `{id}.fs.zip` in a directory on the host.
 *
 * The directory is the only state. So snapshots outlive the process, and several processes can share them. An archive that a
 * user copies into the directory is a snapshot too.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { join, tmpdir } from "../runtime/node.ts"
import { Filesystem } from "../filesystem/Filesystem.ts"
import type { SnapshotError } from "./errors.ts"
import { make as makeService, type Operations, type Options, toError } from "./snapshotStore/service.ts"
import { SnapshotDirectory } from "./snapshotStore/directory.ts"

export {
  /** @since 0.1.0 */
  ArchiveError,
  /** @since 0.1.0 */
  SnapshotError,
  /** @since 0.1.0 */
  SnapshotRestoreError
} from "./errors.ts"
export { SnapshotInfo } from "./snapshotStore/service.ts"
export type { Operations, Options, TreeEntry } from "./snapshotStore/service.ts"
export type {
  /** @since 0.1.0 */
  Manifest
} from "./zip/manifest.ts"

/**
 * The service that keeps archives of the tree in a directory.
 *
 * @category services
 * @since 0.1.0
 */
export class SnapshotStore extends Context.Service<SnapshotStore, Operations>()("fs-algebra/SnapshotStore") {}

/**
 * Creates a store for the current filesystem. The archives remain after the scope closes.
 *
 * During the scope no filesystem can be opened in the directory, once it exists. Fails with SnapshotError `refused` if the
 * directory violates the rules of `Options.directory`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: Options): Effect.Effect<Operations, SnapshotError, Filesystem | Scope.Scope> =>
  Effect.flatMap(Filesystem, (fs) =>
    Effect.mapBoth(SnapshotDirectory.make(options?.directory ?? join(tmpdir(), "fs-algebra-snapshots")), {
      onFailure: toError("SnapshotStore"),
      onSuccess: (snapshotDirectory) => makeService(fs, snapshotDirectory, options?.onDuplicate !== "error")
    })
  )

/**
 * Provides a store for the current filesystem. Fails with SnapshotError `refused` if the directory violates the rules of
 * `Options.directory`.
 *
 * @example
 * ```ts
 * const save = SnapshotStore.SnapshotStore.use((store) => store.list)
 * yield* Effect.provide(save, SnapshotStore.layer({ directory: "/srv/snapshots" }))
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<SnapshotStore, SnapshotError, Filesystem> =>
  Layer.effect(SnapshotStore, make(options))
