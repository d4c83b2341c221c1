/**
 * How snapshots are kept. Each of the three ways takes and gives the same values and fails with plain data, so that there is one place
 * (`service.ts`) that judges what callers bring and says what went wrong.
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

/** What the caller says of a snapshot. */
export interface Label {
  readonly tag?: string | undefined
  readonly tool?: string | undefined
  readonly callId?: string | undefined
}

export interface Kept {
  readonly snapshot: FilesystemSnapshot
  readonly label: Label
  /** Files, links among them, and their bytes. */
  readonly census: Effect.Effect<{ readonly files: number; readonly bytes: number }, Problem>
  /** The one that was the newest when this was taken. */
  readonly previous?: string | undefined
  /** FIFOs, sockets and devices that were there, and are not in it. */
  readonly skipped?: number | undefined
  /** A `.git` at the root was left alone, and is left alone when this is restored. */
  readonly excludesGit?: boolean | undefined
}

export interface TakeOptions {
  /** A snapshot that is needed yet, whatever its age. */
  readonly spared?: Kept | undefined
  /** For as long as a transaction runs: it is in no list, counts for no retention and makes none expire. Ends by `forget`. */
  readonly isPassing?: boolean | undefined
  /** Instead of what the layer was told. */
  readonly bounds?: Pick<LayerOptions, "maxFiles" | "maxBytes"> | undefined
}

/** What the snapshots take. */
export interface Stats {
  /** What the snapshots take, in bytes: on disk, or in memory beyond the tree itself where that is known. */
  readonly bytes: number
  /** Things that are kept once for all snapshots: git's objects, archives, captured trees. */
  readonly objects: number
  readonly snapshots: number
}

export interface Restoring {
  readonly paths?: ReadonlyArray<FsPath> | undefined
  readonly dryRun?: boolean | undefined
  /** Look at the whole tree again afterwards. */
  readonly verify?: boolean | undefined
}

/** By which a snapshot knows its filesystem: however a directory is spelt, it is the same. */
export const rootOf = ({ history, info }: Backend): string => (history?._tag === "Directory" ? history.root : info.root)

export interface Strategy {
  readonly name: "memory" | "git" | "archive"
  readonly commitRef: RegExp
  readonly rootPath: string
  /** Where values say that their snapshots are. */
  readonly gitDir?: string | undefined
  readonly take: (label: Label, options?: TakeOptions) => Effect.Effect<Kept, Problem>
  /** In the order in which they were taken. */
  readonly list: Effect.Effect<ReadonlyArray<Kept>, Problem>
  readonly find: (snapshotId: string) => Effect.Effect<Kept | undefined, Problem>
  /** The caller holds the whole filesystem. */
  readonly restore: (kept: Kept, options: Restoring) => Effect.Effect<ReadonlyArray<Change>, Problem>
  /** From a snapshot to another, or to what is there now. */
  readonly diff: (from: Kept, to: Kept | undefined) => Effect.Effect<ReadonlyArray<Change>, Problem>
  /** The captured tree: read-only. */
  readonly view: (kept: Kept) => Effect.Effect<Backend, Problem>
  /** The captured tree, and what is there now: for who compares both with a third. The caller holds the whole filesystem for `now`. */
  readonly tree: (kept: Kept) => Effect.Effect<DirectoryNode, Problem>
  readonly now: Effect.Effect<DirectoryNode, Problem>
  readonly forget: (kept: Kept) => Effect.Effect<void, Problem>
  readonly stats: Effect.Effect<Stats, Problem>
  /** Gives back what no snapshot needs. */
  readonly collect: Effect.Effect<void, Problem>
}
