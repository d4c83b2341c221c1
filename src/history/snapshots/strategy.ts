/**
 * The interface of the three storage strategies. They fail with plain data; `service.ts` validates arguments and
 * creates the errors.
 */
import type * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import type { ArchiveError, StoreFault } from "../errors.ts"
import type { Mismatch } from "../exchange.ts"
import type { Change, DirectoryNode } from "../tree.ts"
import type { LayerOptions } from "./options.ts"
import type { FilesystemSnapshot } from "./value.ts"

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
  /** The number of FIFOs, sockets and devices that were not captured. */
  readonly skipped?: number | undefined
  /** True if a `.git` at the root was left alone; the restore leaves it alone too. */
  readonly excludesGit?: boolean | undefined
}

export interface TakeOptions {
  /** A snapshot that must not expire yet. */
  readonly spared?: StoredSnapshot | undefined
  /** Set if the snapshot belongs to a running transaction: not listed, and ignored by retention. `forget` ends it. */
  readonly isPassing?: boolean | undefined
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

export interface StrategyRestoreOptions {
  readonly paths?: ReadonlyArray<FsPath> | undefined
  readonly dryRun?: boolean | undefined
  readonly verify?: boolean | undefined
}

/** Returns the root by which snapshots identify a filesystem; the same for every spelling of a directory. */
export const rootOf = ({ history, info }: Backend): string =>
  history?._tag === "Directory" ? history.root : info.root

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
