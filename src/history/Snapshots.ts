/**
 * Whole trees kept as they were, and brought back byte for byte and mode for mode: ignored files, empty directories, links, nested
 * repositories. A snapshot is a value; where it is kept is a matter of the layer.
 *
 * - in memory: the tree itself, shared with what comes later; taking one is free
 * - a directory of the machine: git as a store of objects, outside the directory; `git --git-dir … ls-tree -r <commitRef>` shows one
 * - anything else, and combinators: ZIP archives of what they show
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import * as Overlay from "../filesystem/Overlay.ts"
import { type SnapshotError } from "./errors.ts"
import type { Change } from "./tree.ts"
import * as ArchiveStrategy from "./snapshots/archive.ts"
import type { MergeConflicts, MergeOptions, MergeResult } from "./snapshots/fork.ts"
import * as GitStrategy from "./snapshots/git.ts"
import * as MemoryStrategy from "./snapshots/memory.ts"
import type { Operations } from "./snapshots/operations.ts"
import type { LayerOptions } from "./snapshots/options.ts"
import type { FilesystemSnapshot } from "./snapshots/value.ts"
import { make as makeService, orSnapshotError } from "./snapshots/service.ts"
import type { Problem, Strategy } from "./snapshots/strategy.ts"

export {
  /** @since 0.1.0 */
  ArchiveError,
  /** @since 0.1.0 */
  SnapshotError,
  /** @since 0.1.0 */
  SnapshotRestoreError
} from "./errors.ts"
export {
  /** @since 0.1.0 */
  Conflict,
  /** @since 0.1.0 */
  Hunk,
  /** @since 0.1.0 */
  LineRange,
  /** @since 0.1.0 */
  Version
} from "./merge/conflict.ts"
export {
  /** @since 0.1.0 */
  MergeConflicts,
  type MergeOptions,
  type MergeResult
} from "./snapshots/fork.ts"
export {
  /** @since 0.1.0 */
  FilesystemSnapshot
} from "./snapshots/value.ts"
export {
  /** @since 0.1.0 */
  RestoreResult
} from "./snapshots/operations.ts"
export type {
  /** @since 0.1.0 */
  Details,
  /** @since 0.1.0 */
  Operations,
  /** @since 0.1.0 */
  RestoreOptions,
  /** @since 0.1.0 */
  SnapshotOptions
} from "./snapshots/operations.ts"
export type {
  /** @since 0.1.0 */
  LayerOptions,
  /** @since 0.1.0 */
  Retention
} from "./snapshots/options.ts"
export type {
  /** @since 0.1.0 */
  SnapshotProgress
} from "./snapshots/progress.ts"
export type {
  /** @since 0.1.0 */
  Stats
} from "./snapshots/strategy.ts"
export {
  /** @since 0.1.0 */
  Change
} from "./tree.ts"

/**
 * The service that keeps the past of a filesystem, and brings it back.
 *
 * @since 0.1.0
 */
export class Snapshots extends Context.Service<Snapshots, Operations>()("fs-algebra/Snapshots") {}

const serving = (
  choose: (fs: Algebra) => Effect.Effect<Strategy, Problem, Scope.Scope>
): Layer.Layer<Snapshots, SnapshotError, Filesystem> =>
  Layer.effect(
    Snapshots,
    Effect.flatMap(Filesystem, (fs) =>
      Effect.map(orSnapshotError("Snapshots", choose(fs)), (strategy) => makeService(strategy, fs.port))
    )
  )

const own = (fs: Algebra, options: LayerOptions): Effect.Effect<Strategy, Problem, Scope.Scope> => {
  const { history } = fs.port
  switch (history?._tag) {
    case "Memory":
      return Effect.succeed(MemoryStrategy.make(fs.port, history, options))
    case "Directory":
      return GitStrategy.makeScoped(fs.port, options)
    case undefined:
      return ArchiveStrategy.make(fs, options)
  }
}

/**
 * The backend's own way, with options.
 *
 * @since 0.1.0
 */
export const layerWith = (options: LayerOptions): Layer.Layer<Snapshots, SnapshotError, Filesystem> =>
  serving((fs) => own(fs, options))

/**
 * The backend's own way; what it keeps lives and dies with the layer. Fails with SnapshotError `gitMissing` for a directory of a
 * machine that has no git.
 *
 * @since 0.1.0
 */
export const layer: Layer.Layer<Snapshots, SnapshotError, Filesystem> = layerWith({})

/**
 * The same in a git directory that outlives the layer, for restoring in a later process. It is made where it is not there, and refused
 * inside the root of any filesystem that is open, or when it is not one that this module has made.
 *
 * @since 0.1.0
 */
export const layerGit = (
  options: LayerOptions & { readonly gitDir: string }
): Layer.Layer<Snapshots, SnapshotError, Filesystem> => serving((fs) => GitStrategy.make(fs.port, options.gitDir, options))

/**
 * ZIP archives, in a temporary directory that goes with the layer: everywhere, and without git.
 *
 * @since 0.1.0
 */
export const layerArchive: Layer.Layer<Snapshots, SnapshotError, Filesystem> = serving((fs) => ArchiveStrategy.make(fs, {}))

/**
 * `fork` of the service in force.
 *
 * @since 0.1.0
 */
export const fork = (snapshot: FilesystemSnapshot): Effect.Effect<Algebra, SnapshotError, Snapshots> =>
  Snapshots.use((snapshots) => snapshots.fork(snapshot))

/**
 * What differs between a fork and the snapshot that it began as, in path order.
 *
 * @since 0.1.0
 */
export const changes: (fork: Algebra) => Effect.Effect<ReadonlyArray<Change>, Overlay.ChangesError> = Overlay.changes

/**
 * `merge` of the service in force.
 *
 * @since 0.1.0
 */
export const merge = (
  fork: Algebra,
  options?: MergeOptions
): Effect.Effect<MergeResult, SnapshotError | MergeConflicts, Snapshots> =>
  Snapshots.use((snapshots) => snapshots.merge(fork, options))
