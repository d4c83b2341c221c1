/**
 * What a backend offers to those who keep its past. Combinators drop it: what they show is not what lies below.
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend, Child } from "./Backend.ts"
import type { Explorer, Visit } from "./explorer.ts"

export type History = MemoryHistory | DirectoryHistory

/** A whole tree as it was at one moment. Nothing changes it any more, and it is shared with what came before and after. */
export interface Captured {
  readonly root: object
}

export interface Difference {
  readonly _tag: "Added" | "Modified" | "Removed"
  readonly path: FsPath
}

/** A backend that can keep its whole tree at no cost. */
export interface MemoryHistory {
  readonly _tag: "Memory"
  /** Takes microseconds, whatever the tree holds. */
  readonly capture: Effect.Effect<Captured>
  /** At once, the whole tree or what is at each of the paths and below: what was not there then goes. */
  readonly restore: (captured: Captured, paths?: ReadonlyArray<FsPath>) => Effect.Effect<void, Fault>
  /** Read-only, and unconnected with the tree as it goes on. */
  readonly view: (captured: Captured) => Backend
  /** Entries whose kind, bytes, target, name or mode differ, in path order; costs what differs. */
  readonly differences: (before: Captured, after: Captured) => ReadonlyArray<Difference>
}

/** A backend that is a directory of the machine. */
export interface DirectoryHistory {
  readonly _tag: "Directory"
  /** Its path, all links resolved. */
  readonly root: string
  /** Everything in a directory, with what tells whether it has changed. Fails with NotFound, NotADirectory. */
  readonly stamps: (path: FsPath) => Effect.Effect<ReadonlyArray<Stamped>, Fault>
  /** Reads many directories ahead, where that is faster; its children are all Stamped, in any order. */
  readonly explore?:
    | (<V extends Visit>(pathOf: (visit: V) => FsPath) => Effect.Effect<Explorer<V>, never, Scope.Scope>)
    | undefined
}

export interface Stamped extends Child {
  readonly sizeBytes: number
  /** POSIX permission bits. */
  readonly mode: number
  /** When the content, and when anything about it, changed last: milliseconds since 1970, with a fraction. */
  readonly modified: number
  readonly changed: number
  /** What the disk knows it by. */
  readonly inode: number
}
