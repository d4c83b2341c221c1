/**
 * The interface of the three storage strategies. They fail with plain data; `service.ts` validates arguments and
 * creates the errors.
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
 * The progress of a capture or restore: it counts all files, then reads those that may have changed.
 *
 * @since 0.1.0
 */
export interface SnapshotProgress {
  /** The current phase. A restore also counts and reads, and then writes. */
  readonly phase: "counting" | "reading" | "writing"
  readonly files: number
  /** Bytes read; 0 in the phase `writing`. */
  readonly bytes: number
  /** The total bytes to read, once known. */
  readonly totalBytes?: number | undefined
  /** The total files to write. */
  readonly totalFiles?: number | undefined
}

/**
 * The rules by which old snapshots are removed.
 *
 * @since 0.1.0
 */
export interface Retention {
  /** The number of newest snapshots to keep. @default all */
  readonly maxSnapshots?: number | undefined
  /** The maximum age in milliseconds. The newest snapshot always stays. @default any age */
  readonly maxAge?: number | undefined
  /**
   * The maximum size of the whole store in bytes; the oldest snapshots are removed. The newest always stays. Only for
   * git.
   *
   * @default any size
   */
  readonly maxBytes?: number | undefined
}

/**
 * The options of a snapshot layer. Each strategy uses a part of them:
 *
 * - git uses all of them
 * - archives ignore `onProgress` and `retention.maxBytes`
 * - memory uses `git`, `retention.maxSnapshots` and `retention.maxAge`
 *
 * @since 0.1.0
 */
export interface LayerOptions {
  /** The treatment of a `.git` at the root: captured and restored like every entry, or left alone. @default "include" */
  readonly git?: "include" | "exclude" | undefined
  /**
   * The most files to capture; beyond it, SnapshotError `budget` before anything is written. An archive counts
   * directories too. Not in memory.
   *
   * @default 1,000,000; of archives Limits.maxArchiveEntries
   */
  readonly maxFiles?: number | undefined
  /**
   * The most bytes in all files; beyond it, SnapshotError `budget`. Not in memory.
   *
   * @default 64 GiB; of archives Limits.maxArchiveBytes
   */
  readonly maxBytes?: number | undefined
  /** Set to allow capturing the whole machine or a home directory. @default false */
  readonly anyRoot?: boolean | undefined
  readonly retention?: Retention | undefined
  /** Called during captures and restores. Only for git. */
  readonly onProgress?: ((progress: SnapshotProgress) => void) | undefined
}

/**
 * Returns the expired snapshots, never the newest one.
 *
 * `all` must be in the order of creation; `now` is in milliseconds since 1970. `spared` counts but never expires.
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

/** Refuses to capture the whole machine or a home directory. `root` must have its symlinks resolved. */
export const refuseWideRoot = (root: string, options: LayerOptions): StoreFault | undefined => {
  const width = options.anyRoot === true ? undefined : describeWideRoot(root)
  return width === undefined ? undefined : storeFault("refused", `the root is ${width}; capture it only with anyRoot`)
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

/** Checks the limits during the count of files, and once more before the first read, when nothing has been written. */
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

// Directories for stores, always outside every workspace, so that code in a workspace cannot reach them.

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

/** Prevents filesystems from being opened on the directory during the scope. */
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
        ? Effect.fail(storeFault("unavailable", "there is no writable directory for a store outside the root"))
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
  /** The id of the newest snapshot at the time when this one was taken. */
  readonly previous?: string | undefined
  /** FIFOs, sockets and devices, which were not captured. */
  readonly skipped?: number | undefined
  /** True if a `.git` at the root was left alone; the restore leaves it alone too. */
  readonly excludesGit?: boolean | undefined
}

export interface TakeOptions {
  /** A snapshot that must not expire yet. */
  readonly spared?: StoredSnapshot | undefined
  /**
   * Set if the snapshot belongs to a running transaction. Such a snapshot is not listed, ignored by retention, and
   * removed by `forget`.
   */
  readonly isPassing?: boolean | undefined
  /** The id of the new snapshot, a UUID in lower case. @default a new one */
  readonly snapshotId?: string | undefined
  readonly bounds?: Pick<LayerOptions, "maxFiles" | "maxBytes"> | undefined
}

/** The space that snapshots use. */
export interface Stats {
  /** Bytes on disk, or in memory beyond the tree itself if known. */
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

/** Returns the root by which snapshots identify a filesystem; the same for every spelling of a directory. */
export const rootOf = ({ history, info }: Backend): string => (history?._tag === "Directory" ? history.root : info.root)

export interface Strategy {
  readonly name: "memory" | "git" | "archive"
  readonly commitRef: RegExp
  readonly rootPath: string
  readonly gitDir?: string | undefined
  readonly take: (label: Label, options?: TakeOptions) => Effect.Effect<StoredSnapshot, Problem>
  readonly list: Effect.Effect<ReadonlyArray<StoredSnapshot>, Problem>
  readonly find: (snapshotId: string) => Effect.Effect<StoredSnapshot | undefined, Problem>
  /** Restores a snapshot. The caller must hold the lock on the whole filesystem. */
  readonly restore: (kept: StoredSnapshot, options: StrategyRestoreOptions) => Effect.Effect<ReadonlyArray<Change>, Problem>
  readonly diff: (from: StoredSnapshot, to: StoredSnapshot | undefined) => Effect.Effect<ReadonlyArray<Change>, Problem>
  readonly view: (kept: StoredSnapshot) => Effect.Effect<Backend, Problem>
  /**
   * Returns the captured tree; `now` is the current one. The caller must hold the lock on the whole filesystem for
   * `now`.
   */
  readonly tree: (kept: StoredSnapshot) => Effect.Effect<DirectoryNode, Problem>
  readonly now: Effect.Effect<DirectoryNode, Problem>
  readonly forget: (kept: StoredSnapshot) => Effect.Effect<void, Problem>
  readonly stats: Effect.Effect<Stats, Problem>
  readonly collect: Effect.Effect<void, Problem>
}
