/**
 * The interface of the storage strategies for snapshots. A strategy fails with plain data; `service.ts` validates the
 * arguments and creates the errors.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { whole } from "../../model/words.ts"
import type { Backend } from "../../port/Backend.ts"
import { Fs, homedir, isAbsolute, join, randomBytes, tmpdir } from "../../runtime/node.ts"
import * as OpenRoots from "../../runtime/openRoots.ts"
import { describeWideRoot } from "../../runtime/wideRoots.ts"
import { type ArchiveError, type StoreFault, storeFault } from "../errors.ts"
import type { Mismatch } from "../transaction.ts"
import type { Census } from "../scan.ts"
import type { Change, DirectoryNode } from "../tree.ts"
import type { FilesystemSnapshot } from "./value.ts"

/**
 * The progress of a capture or restore. Both first count all files, and then read the files that may have changed.
 *
 * @since 0.1.0
 */
export interface SnapshotProgress {
  /** The current phase. A restore writes after counting and reading. */
  readonly phase: "counting" | "reading" | "writing"
  readonly files: number
  /** The number of bytes that were counted or read; 0 in the phase `writing`. */
  readonly bytes: number
  /** The number of bytes to read. Absent until the number is known. */
  readonly totalBytes?: number | undefined
  /** The number of files to write. Absent until the number is known. */
  readonly totalFiles?: number | undefined
}

/**
 * The rules that decide which old snapshots are removed.
 *
 * @since 0.1.0
 */
export interface Retention {
  /** The maximum number of snapshots. The newest snapshots stay. @default no limit */
  readonly maxSnapshots?: number | undefined
  /** The maximum age in milliseconds. The newest snapshot always stays. @default no limit */
  readonly maxAge?: number | undefined
  /**
   * The maximum size of the whole store in bytes. If the store is larger, its oldest snapshots are removed, but never the
   * newest. Only git snapshots have this limit.
   *
   * @default no limit
   */
  readonly maxBytes?: number | undefined
}

/**
 * The options of a snapshot layer. Not all strategies use all options:
 *
 * - git uses all of them
 * - archives ignore `onProgress` and `retention.maxBytes`
 * - memory uses only `git`, `retention.maxSnapshots` and `retention.maxAge`
 *
 * @since 0.1.0
 */
export interface LayerOptions {
  /** The treatment of a `.git` at the root: snapshots and restores include it or ignore it. @default "include" */
  readonly git?: "include" | "exclude" | undefined
  /**
   * The largest number of files. A larger tree fails with SnapshotError `budget` before anything is written. An archive
   * counts directories too. Snapshots in memory have no such limit.
   *
   * @default 1,000,000; for archives, Limits.maxArchiveEntries
   */
  readonly maxFiles?: number | undefined
  /**
   * The largest total size of all files in bytes. A larger tree fails with SnapshotError `budget`. Snapshots in memory have
   * no such limit.
   *
   * @default 64 GiB; for archives, Limits.maxArchiveBytes
   */
  readonly maxBytes?: number | undefined
  /** True to permit a root that is the root of a disk, a home directory, or a directory above a home directory. @default false */
  readonly anyRoot?: boolean | undefined
  readonly retention?: Retention | undefined
  /** The function that receives the progress of captures and restores. Only git snapshots report progress. */
  readonly onProgress?: ((progress: SnapshotProgress) => void) | undefined
}

/**
 * Returns the expired snapshots, which never include the newest snapshot.
 *
 * `all` must be in the order of creation. `now` is in milliseconds since 1970. `spared` counts towards `maxSnapshots`, but
 * never expires.
 */
export const findExpired = (
  all: ReadonlyArray<StoredSnapshot>,
  retention: Retention | undefined,
  now: number,
  spared?: StoredSnapshot
): ReadonlyArray<StoredSnapshot> => {
  const { maxAge, maxSnapshots } = retention ?? {}
  const excessCount = maxSnapshots === undefined ? 0 : all.length - Math.max(1, maxSnapshots)
  return all
    .slice(0, -1)
    .filter(
      ({ snapshot }, i) => i < excessCount || (maxAge !== undefined && now - snapshot.createdAt.epochMilliseconds > maxAge)
    )
    .filter(({ snapshot }) => snapshot.snapshotId !== spared?.snapshot.snapshotId)
}

const GiB = 1024 * 1024 * 1024

const maxFiles = 1_000_000
const maxBytes = 64 * GiB

/**
 * Returns a fault if `root` is the root of a disk, a home directory, or a directory that contains a home directory. Returns
 * `undefined` for other roots, and if `anyRoot` is true. `root` must not contain symlinks.
 */
export const refuseWideRoot = (root: string, options: LayerOptions): StoreFault | undefined => {
  const width = options.anyRoot === true ? undefined : describeWideRoot(root)
  return width === undefined ? undefined : storeFault("refused", `the root is ${width}; set anyRoot to capture it anyway`)
}

const tooManyFiles = (limit: number): StoreFault =>
  storeFault("budget", `there are more than ${whole(limit)} files; raise maxFiles to capture them`)

const tooManyBytes = (limit: number): StoreFault =>
  storeFault("budget", `the files have more than ${whole(limit)} bytes; raise maxBytes to capture them`)

const freeBytes = (directory: string): number | undefined => {
  try {
    const { bavail, bsize } = Fs.statfsSync(directory)
    return bavail * bsize
  } catch {
    return undefined
  }
}

/**
 * Checks the limits while the scan counts files. The last call, before the scan reads the first file, has `isWhole` and also
 * checks the free disk space.
 */
export const checkBudget = (
  { bytes, bytesToRead, files }: Census,
  isWhole: boolean,
  options: LayerOptions,
  directory: string | undefined
): Effect.Effect<void, StoreFault> => {
  if (files > (options.maxFiles ?? maxFiles)) return Effect.fail(tooManyFiles(options.maxFiles ?? maxFiles))
  if (bytes > (options.maxBytes ?? maxBytes)) return Effect.fail(tooManyBytes(options.maxBytes ?? maxBytes))
  if (!isWhole || directory === undefined) return Effect.void
  const free = freeBytes(directory)
  return free !== undefined && bytesToRead > free
    ? Effect.fail(storeFault("budget", `${whole(bytesToRead)} bytes must be stored, but the disk has only ${whole(free)} free`))
    : Effect.void
}

const gitDirectory = ".git"

export const excludeGit = (isExcluded: boolean): ((path: FsPath) => boolean) | undefined =>
  isExcluded ? (path) => path === gitDirectory : undefined

export const dropGit = (tree: DirectoryNode): DirectoryNode => {
  if (!tree.entries.has(gitDirectory)) return tree
  const entries = new Map(tree.entries)
  entries.delete(gitDirectory)
  return { kind: "directory", entries, ...(tree.mode === undefined ? undefined : { mode: tree.mode }) }
}

// Directories for stores are outside every workspace, so that programs in a workspace cannot reach them.

const whyRefused = (directory: string): string | undefined => {
  const fault = OpenRoots.reachabilityFault("directory", directory)
  return fault === undefined ? undefined : String(fault["detail"])
}

export const checkDirectory = (argument: string, directory: string): Effect.Effect<void, StoreFault> =>
  Effect.suspend(() => {
    if (typeof directory !== "string" || !isAbsolute(directory)) {
      return Effect.fail(storeFault("refused", `${argument} must be an absolute path`))
    }
    const why = whyRefused(directory)
    return why === undefined ? Effect.void : Effect.fail(storeFault("refused", `${argument}: ${why}`))
  })

const candidateDirectories = (): ReadonlyArray<string> => [tmpdir(), join(homedir(), ".cache"), "/var/tmp", "/dev/shm"]

const create = (prefix: string): string | undefined => {
  for (const place of candidateDirectories()) {
    const directory = join(place, `${prefix}${randomBytes(9).toString("hex")}`)
    if (whyRefused(directory) !== undefined) continue
    try {
      Fs.mkdirSync(directory, { mode: 0o700 })
      return directory
    } catch {
      // Try the next candidate.
    }
  }
  return undefined
}

/** Reserves a directory for a store, so that during the scope no filesystem can be opened on the directory. */
export const reserveDirectory = (directory: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => OpenRoots.registerStore(directory)),
      (unregister) => Effect.sync(unregister)
    )
  )

export const makeTemporaryDirectory = (prefix: string): Effect.Effect<string, StoreFault, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.suspend(() => {
      const directory = create(prefix)
      return directory === undefined
        ? Effect.fail(
            storeFault(
              "unavailable",
              "no writable directory outside the root was found for the store; make the temporary directory writable"
            )
          )
        : Effect.succeed(directory)
    }),
    (directory) =>
      Effect.promise(() => Fs.promises.rm(directory, { recursive: true, force: true, maxRetries: 3 }).catch(() => {}))
  )

export type Problem = StoreFault | Fault | Mismatch | ArchiveError

export interface Label {
  readonly tag?: string | undefined
  readonly tool?: string | undefined
  readonly callId?: string | undefined
}

export interface StoredSnapshot {
  readonly snapshot: FilesystemSnapshot
  readonly label: Label
  readonly counts: Effect.Effect<{ readonly files: number; readonly bytes: number }, Problem>
  /** The id of the previous snapshot. */
  readonly previous?: string | undefined
  /** The number of FIFOs, sockets and devices, which were not captured. */
  readonly skipped?: number | undefined
  /** True if the snapshot excludes a `.git` at the root. If so, a restore keeps the current `.git`. */
  readonly excludesGit?: boolean | undefined
}

export interface TakeOptions {
  /** The snapshot that retention must not remove. */
  readonly spared?: StoredSnapshot | undefined
  /**
   * True if the snapshot belongs to a running transaction. `list` and retention ignore such a snapshot, and `forget` removes
   * it.
   */
  readonly isPassing?: boolean | undefined
  /** The id of the new snapshot, a UUID in lower case. @default a new id */
  readonly snapshotId?: string | undefined
  readonly bounds?: Pick<LayerOptions, "maxFiles" | "maxBytes"> | undefined
}

/** The disk space or memory that snapshots use. */
export interface Stats {
  /** The number of bytes on the disk. For snapshots in memory, the number of bytes in addition to the current tree. */
  readonly bytes: number
  /** The number of items stored for all snapshots: git objects, archives, or captured trees. */
  readonly objects: number
  readonly snapshots: number
}

interface StrategyRestoreOptions {
  readonly paths?: ReadonlyArray<FsPath> | undefined
  readonly dryRun?: boolean | undefined
  readonly verify?: boolean | undefined
}

/** Returns the root by which snapshots identify a filesystem. All paths of one directory give the same root. */
export const rootOf = ({ history, info }: Backend): string => (history?._tag === "Directory" ? history.root : info.root)

export interface Strategy {
  readonly name: "memory" | "git" | "archive" | "repository"
  readonly commitRef: RegExp
  readonly rootPath: string
  readonly gitDir?: string | undefined
  readonly take: (label: Label, options?: TakeOptions) => Effect.Effect<StoredSnapshot, Problem>
  readonly list: Effect.Effect<ReadonlyArray<StoredSnapshot>, Problem>
  readonly find: (snapshotId: string) => Effect.Effect<StoredSnapshot | undefined, Problem>
  /** Restores a snapshot. The caller must hold the lock on the whole filesystem. */
  readonly restore: (kept: StoredSnapshot, options: StrategyRestoreOptions) => Effect.Effect<ReadonlyArray<Change>, Problem>
  /**
   * Runs an effect. Makes the changes of the effect together if the effect succeeds, and discards the changes otherwise.
   *
   * @default takes a snapshot before the effect, and restores the snapshot if the effect fails
   */
  readonly transaction?: <A, E, R, E2>(
    effect: Effect.Effect<A, E, R>,
    mapProblem: (problem: Problem) => E2
  ) => Effect.Effect<A, E | E2, R>
  readonly diff: (from: StoredSnapshot, to: StoredSnapshot | undefined) => Effect.Effect<ReadonlyArray<Change>, Problem>
  readonly view: (kept: StoredSnapshot) => Effect.Effect<Backend, Problem>
  readonly tree: (kept: StoredSnapshot) => Effect.Effect<DirectoryNode, Problem>
  /** The current tree. The caller must hold the lock on the whole filesystem. */
  readonly now: Effect.Effect<DirectoryNode, Problem>
  readonly forget: (kept: StoredSnapshot) => Effect.Effect<void, Problem>
  readonly stats: Effect.Effect<Stats, Problem>
  readonly collect: Effect.Effect<void, Problem>
}
