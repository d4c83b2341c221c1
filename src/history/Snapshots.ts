/**
 * Snapshots of whole trees. A restore gives back every byte and mode, including ignored files, empty directories, symlinks
 * and nested repositories.
 *
 * A snapshot is a value. The layer decides where the content is stored:
 *
 * - in memory: the snapshot shares the tree with the filesystem, so a snapshot copies nothing
 * - a directory on the host: a git repository outside the directory; `git --git-dir … ls-tree -r <commitRef>` lists a
 *   snapshot
 * - other backends, and combinators: ZIP archives
 *
 * @since 0.1.0
 */
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
import type { LayerOptions, Problem, Strategy } from "./snapshots/strategy.ts"
import type { FilesystemSnapshot } from "./snapshots/value.ts"
import { make as makeService, orSnapshotError } from "./snapshots/service.ts"
import { Snapshots } from "./snapshots/tag.ts"

export {
  /** @since 0.1.0 */
  ArchiveError,
  /** @since 0.1.0 */
  SnapshotError,
  /** @since 0.1.0 */
  SnapshotRestoreError
} from "./errors.ts"
export { Conflict, Hunk, LineRange, Version } from "./mergeText.ts"
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
export {
  /** @since 0.1.0 */
  Snapshots
} from "./snapshots/tag.ts"
export type { LayerOptions, Retention } from "./snapshots/strategy.ts"
export type { SnapshotProgress } from "./snapshots/strategy.ts"
export type {
  /** @since 0.1.0 */
  Stats
} from "./snapshots/strategy.ts"
export {
  /** @since 0.1.0 */
  Change
} from "./tree.ts"

const makeLayer = (
  choose: (fs: Algebra) => Effect.Effect<Strategy, Problem, Scope.Scope>
): Layer.Layer<Snapshots, SnapshotError, Filesystem> =>
  Layer.effect(
    Snapshots,
    Effect.flatMap(Filesystem, (fs) =>
      Effect.map(orSnapshotError("Snapshots", choose(fs)), (strategy) => makeService(strategy, fs.port))
    )
  )

const chooseStrategy = (fs: Algebra, options: LayerOptions): Effect.Effect<Strategy, Problem, Scope.Scope> => {
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
 * Provides snapshots in the storage that suits the backend, with options.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerWith = (options: LayerOptions): Layer.Layer<Snapshots, SnapshotError, Filesystem> =>
  makeLayer((fs) => chooseStrategy(fs, options))

/**
 * Provides snapshots in the storage that suits the backend. The snapshots live as long as the layer.
 *
 * For a directory on the host, fails with SnapshotError `gitMissing` if git is not installed or too old.
 *
 * @example
 * ```ts
 * const past = Effect.gen(function* () {
 *   const snapshots = yield* Snapshots.Snapshots
 *   const before = yield* snapshots.snapshot({ tag: "before" })
 *   yield* fs.delete("notes", { recursive: true })
 *   yield* snapshots.restore(before)
 *   return yield* fs.exists("notes/todo.md")
 * })
 * yield* Effect.provide(past, Snapshots.layer) // => true
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Snapshots, SnapshotError, Filesystem> = layerWith({})

/**
 * Provides snapshots in a git directory that remains after the layer is closed, so that a later process can restore them.
 *
 * A missing directory is created. An existing directory is refused if it has contents that this module did not create. A
 * directory inside the root of an open filesystem is refused too.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerGit = (
  options: LayerOptions & { readonly gitDir: string }
): Layer.Layer<Snapshots, SnapshotError, Filesystem> => makeLayer((fs) => GitStrategy.make(fs.port, options.gitDir, options))

/**
 * Provides snapshots as ZIP archives in a temporary directory, which is removed with the layer. This layer works with every
 * backend and needs no git.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerArchive: Layer.Layer<Snapshots, SnapshotError, Filesystem> = makeLayer((fs) => ArchiveStrategy.make(fs, {}))

/**
 * Runs `fork` of the current service.
 *
 * @category forks
 * @since 0.1.0
 */
export const fork = (snapshot: FilesystemSnapshot): Effect.Effect<Algebra, SnapshotError, Snapshots> =>
  Snapshots.use((snapshots) => snapshots.fork(snapshot))

/**
 * Returns the differences between a fork and the snapshot from which it was made, in path order.
 *
 * @since 0.1.0
 */
export const changes: (fork: Algebra) => Effect.Effect<ReadonlyArray<Change>, Overlay.ChangesError> = Overlay.changes

/**
 * Runs `merge` of the current service.
 *
 * @category forks
 * @since 0.1.0
 */
export const merge = (
  fork: Algebra,
  options?: MergeOptions
): Effect.Effect<MergeResult, SnapshotError | MergeConflicts, Snapshots> =>
  Snapshots.use((snapshots) => snapshots.merge(fork, options))
