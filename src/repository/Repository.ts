/**
 * A workspace whose files live in a store of blobs, and its current commit in a store of heads.
 *
 * The files are an immutable tree of small nodes, each stored under its SHA-256. The head of the workspace refers to the
 * root of the newest tree. A commit stores its new nodes, and then replaces the head by compare-and-set. So readers and
 * other writers, on any machine, see the old tree or the new one.
 *
 * A change returns after its commit. If another writer commits first, the change is made again on the new tree. If the other
 * writer has changed the same file, a replacing write or a removal fails with Conflict.
 *
 * Snapshots are part of the commits and share all unchanged nodes. So the cost to take, compare or restore a snapshot depends
 * on the differences, not on the size of the workspace.
 *
 * Limits:
 *
 * - Reads see the newest commit that this layer knows. The layer learns about commits of other layers when the store reports
 *   them, and before each change.
 * - Watching is not supported.
 * - An append collects its bytes in memory, up to 256 MiB. The first append to a large file reads the whole file to compute
 *   its hash.
 * - A transaction keeps its changes in memory, except the chunks of files over 2 KiB.
 * - `collect` may delete an old blob at the moment when another program stores the same content again. The file of that
 *   program is then damaged, which `verify` reports. This cannot happen with the stores in memory, in SQL and on a NATS server.
 * - A transaction that takes longer than the grace period of `collect` may fail with Unavailable. Such a transaction changes
 *   nothing.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Filesystem } from "../filesystem/Filesystem.ts"
import type { Snapshots } from "../history/snapshots/tag.ts"
import {
  type AlreadyExists,
  type BackendError,
  type Conflict,
  type FsError,
  IoError,
  type NotFound,
  promote
} from "../model/FsError.ts"
import type { SnapshotError } from "../history/errors.ts"
import type { Fault } from "../model/FsError.ts"
import type { BlobStore } from "./BlobStore.ts"
import type { StoreError } from "./errors.ts"
import type { GitExportOptions, GitImportOptions, GitResult } from "./git.ts"
import type { Head, HeadStore } from "./HeadStore.ts"
import type { RepositoryOptions } from "./open.ts"
import type { CommitInfo } from "./past.ts"

export {
  /** @since 0.1.0 */
  StoreError
} from "./errors.ts"
export type {
  /** @since 0.1.0 */
  GitExportOptions,
  /** @since 0.1.0 */
  GitImportOptions,
  /** @since 0.1.0 */
  GitResult,
  /** @since 0.1.0 */
  GitSkipped
} from "./git.ts"
export type {
  /** @since 0.1.0 */
  RepositoryOptions
} from "./open.ts"
export type {
  /** @since 0.1.0 */
  CommitInfo
} from "./past.ts"

// Load these modules only in programs that use a repository.
const loadModules = Effect.promise(() =>
  Promise.all([
    import("./open.ts"),
    import("./workspace.ts"),
    import("./maintenance.ts"),
    import("./port.ts"),
    import("./drafts.ts")
  ])
)

const backendTags: ReadonlySet<string> = new Set(["IoError", "Timeout", "Unavailable"])
const transactionTags: ReadonlySet<string> = new Set([...backendTags, "Conflict"])

/**
 * Opens a workspace, and creates it if it does not exist.
 *
 * Fails with Unavailable if a store does not answer, and with IoError if the head or the root of the workspace is missing or
 * damaged.
 *
 * @example
 * ```ts
 * const program = Filesystem.Filesystem.use((fs) =>
 *   Effect.andThen(fs.write("notes.md", "Remember."), fs.readString("notes.md"))
 * )
 * const layer = Layer.provide(Repository.layer({ workspace: "team" }), Stores.layerMemory)
 * yield* Effect.provide(program, layer) // => "Remember."
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: RepositoryOptions): Layer.Layer<Filesystem | Snapshots, BackendError, BlobStore | HeadStore> =>
  Layer.effectContext(
    Effect.flatMap(loadModules, ([{ open }, , , , { toFault }]) =>
      Effect.mapError(
        open(options),
        (error) => promote(toFault(error), "Repository.layer", options.workspace, backendTags) as BackendError
      )
    )
  )

/**
 * Runs an effect and, if it succeeds, commits all its changes in one commit. Reads inside the effect see its own changes. If
 * the effect fails or is interrupted, nothing is changed.
 *
 * Fails with Conflict if another writer has changed anything that the effect has read or changed. Nothing is changed then,
 * and the whole transaction can be run again. Fails with IoError if the filesystem is not a repository.
 *
 * @category transactions
 * @since 0.1.0
 */
export const transaction = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Conflict | BackendError, R | Filesystem> =>
  Effect.flatMap(Filesystem, ({ port }) =>
    Effect.flatMap(loadModules, ([, { transaction }, , { backendName }]): Effect.Effect<A, E | Conflict | BackendError, R> => {
      const operation = "Repository.transaction"
      if (port.info.name !== backendName) {
        return Effect.fail(
          new IoError({
            operation,
            path: "",
            detail: "the filesystem is not a workspace of a repository; open one with Repository.layer"
          })
        )
      }
      return transaction(effect, (fault: Fault) => promote(fault, operation, "", transactionTags) as Conflict | BackendError)
    })
  )

/**
 * Creates the workspace `to` with the files and snapshots of `from`. Writes only one head, whatever the size of the workspace.
 * Later changes of one workspace do not change the other. If `from` changes during the call, the fork has the newer files.
 * Fails with StoreError `unavailable` if `from` changes too often.
 *
 * @category forks
 * @since 0.1.0
 */
export const fork = (from: string, to: string): Effect.Effect<Head, StoreError | NotFound | AlreadyExists, HeadStore> =>
  Effect.flatMap(loadModules, ([, , { fork }]) => fork(from, to))

/**
 * Returns the commits of a workspace, the newest first. Reads one root node for each commit, and keeps at most two in memory.
 *
 * The stream ends after the first commit, or after a commit with `isStored: false`, whose root `collect` has deleted. A root that
 * the store has lost in another way looks the same. The stream also ends at a commit whose format, version 1, did not record
 * its parent. A fork has commits of its own only.
 *
 * Fails with StoreError `missing` if there is no such workspace, or if its newest root is missing. Fails with `corrupt` if a root
 * is damaged or is not the parent of the next commit. The message names the node.
 *
 * @example
 * ```ts
 * const program = Effect.gen(function* () {
 *   yield* Effect.scoped(Layer.build(Repository.layer({ workspace: "team", author: "ada" })))
 *   yield* Repository.fork("team", "trial")
 *   return yield* Stream.runCollect(Stream.map(Repository.commits("trial"), ({ author, message }) => `${author}: ${message}`))
 * })
 * yield* Effect.provide(program, Stores.layerMemory) // => ["ada: fork team"]
 * ```
 * @category history
 * @since 0.1.0
 */
export const commits = (workspace: string): Stream.Stream<CommitInfo, StoreError, BlobStore | HeadStore> =>
  Stream.unwrap(
    Effect.map(
      Effect.promise(() => import("./past.ts")),
      ({ commits }) => commits(workspace)
    )
  )

/**
 * Reads everything that a workspace refers to, and checks hashes, encoding, order and sizes. Also checks that the last 10,000
 * commits form one history, as far as they are still stored. Returns the number of blobs, and their total size in bytes.
 *
 * Fails with StoreError `missing` or `corrupt`. The message names the node.
 *
 * @category maintenance
 * @since 0.1.0
 */
export const verify = (
  workspace: string
): Effect.Effect<{ readonly nodes: number; readonly bytes: number }, StoreError, BlobStore | HeadStore> =>
  Effect.flatMap(loadModules, ([, , { verify }]) => verify(workspace))

/**
 * Deletes the blobs to which no workspace refers and that were stored more than `grace` ago. Workspaces can be changed during
 * the call.
 *
 * The grace period must be longer than two hours if there are writers: a write may stage content for an hour before it refers
 * to the content. The clocks of all machines may differ only by a small part of the grace period. Keeps the hashes of all
 * reachable blobs in memory.
 *
 * @default grace: 1 day
 * @category maintenance
 * @since 0.1.0
 */
export const collect = (options?: {
  readonly grace?: Duration.Input | undefined
}): Effect.Effect<{ readonly deleted: number }, StoreError, BlobStore | HeadStore> =>
  Effect.flatMap(loadModules, ([, , { collect }]) => collect(options))

/**
 * Makes the files of the workspace equal to the files of a commit of a git repository, in one commit of the workspace. Files
 * with the same content and mode are not touched. Submodules are skipped and reported.
 *
 * Imports the executable bit of each file, and symlinks with their targets. Fails with SnapshotError:
 *
 * - `unknown` if the directory is no git repository, or has no such commit
 * - `refused` for names that are not UTF-8, `.git` in any spelling, `..`, control characters, duplicate or unsorted entries, and
 *   for repositories with SHA-256 ids
 * - `corrupt` if an object is missing or damaged
 * - `budget` for more than 1,000,000 entries, or more than 256 MiB of directories and targets of symlinks
 * - `gitMissing` without the program git
 *
 * Also fails with the errors of `transaction` and of `write`. An import that fails changes nothing. Runs no hook, filter or
 * program that the repository names, and fetches nothing.
 *
 * @category git
 * @since 0.1.0
 */
export const importGit = (options: GitImportOptions): Effect.Effect<GitResult, SnapshotError | FsError, Filesystem> =>
  transaction(
    Effect.flatMap(
      Effect.promise(() => import("./git.ts")),
      ({ importGit }) => importGit(options)
    )
  )

/**
 * Adds a commit with the files of the workspace to a git repository, and moves a reference to the commit. The parent is the old
 * commit of the reference, if there is one. Directories without files are skipped and reported, because git cannot store them.
 *
 * Git stores one bit of each mode: whether the owner may execute the file. Fails with SnapshotError `refused` for names that git
 * does not accept or that have control characters, and for a branch that is checked out. An export that fails does not move the
 * reference. The content of `.gitmodules` is not checked.
 *
 * @category git
 * @since 0.1.0
 */
export const exportGit = (options: GitExportOptions): Effect.Effect<GitResult, SnapshotError | FsError, Filesystem> =>
  Effect.flatMap(
    Effect.promise(() => import("./git.ts")),
    ({ exportGit }) => exportGit(options)
  )
