/**
 * The access that a backend offers to snapshots. Combinators drop this access, because the tree that they show differs
 * from the backend's tree.
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend, Child } from "./Backend.ts"
import type { Explorer, Visit } from "./explorer.ts"

export type History = MemoryHistory | DirectoryHistory

/** A whole tree at one moment, which is immutable and shares structure with earlier and later trees. */
export interface Captured {
  readonly root: object
}

export interface Difference {
  readonly _tag: "Added" | "Modified" | "Removed"
  readonly path: FsPath
}

export interface MemoryHistory {
  readonly _tag: "Memory"
  /** Captures the tree in a few microseconds, whatever its size. */
  readonly capture: Effect.Effect<Captured>
  /**
   * Restores the whole tree, or the given paths and everything below, in one step. Entries that the captured tree lacks
   * are removed.
   */
  readonly restore: (captured: Captured, paths?: ReadonlyArray<FsPath>) => Effect.Effect<void, Fault>
  /** Returns a read-only backend that is independent of later changes. */
  readonly view: (captured: Captured) => Backend
  /**
   * Returns entries whose kind, bytes, target, name or mode differ, in path order. The cost depends only on the
   * differences.
   */
  readonly differences: (before: Captured, after: Captured) => ReadonlyArray<Difference>
}

export interface DirectoryHistory {
  readonly _tag: "Directory"
  /** The path of the directory, with all symlinks resolved. */
  readonly root: string
  /** Lists a directory with the stamps of its entries. Fails with NotFound or NotADirectory. */
  readonly listStamped: (path: FsPath) => Effect.Effect<ReadonlyArray<StampedChild>, Fault>
  /**
   * Reads many directories ahead, if this is faster. Each child is a `StampedChild`; the children are in any order. A
   * reading has `self` if it contains all entries of the directory.
   */
  readonly explore?:
    | (<V extends Visit>(pathOf: (visit: V) => FsPath) => Effect.Effect<Explorer<V>, never, Scope.Scope>)
    | undefined
  /**
   * Keeps a directory open for the scope, so that other threads can use it. Fails with NotFound or NotADirectory. Absent if the
   * confinement is not race-free.
   */
  readonly lend?: ((path: FsPath) => Effect.Effect<LentDirectory, Fault, Scope.Scope>) | undefined
}

export interface LentDirectory {
  /** A host path to which a name can be appended. The path leads to this directory until the end of the scope. */
  readonly base: string
  readonly device: number
  /** True if files with several hard links must not be read. */
  readonly refusesHardlinks: boolean
  /** True if threads may create files in the directory, because new files need neither a flush nor another owner. */
  readonly acceptsFiles: boolean
  /** Counts content bytes that threads read or wrote. Absent if nothing counts bytes. */
  readonly countBytes?: ((direction: "read" | "written", count: number) => Effect.Effect<void>) | undefined
}

/** The metadata of a directory directly before its listing, read through the descriptor of the listing. */
export interface ListedDirectory {
  readonly device: number
  /** The POSIX permission bits. */
  readonly mode: number
  readonly modified: number
  readonly changed: number
  readonly inode: number
}

export interface StampedChild extends Child {
  readonly sizeBytes: number
  /** The POSIX permission bits. */
  readonly mode: number
  /** The mtime of the entry in milliseconds since 1970, with a fraction. `changed` is the ctime in the same unit. */
  readonly modified: number
  readonly changed: number
  readonly inode: number
}
