/**
 * The source that the server shows: a dump, a filesystem or a store. A filesystem is read at each request, and a store at most a
 * second earlier. A dump stays as it was opened until a client reloads it.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import { type DebugError, makeDebugError } from "./errors.ts"
import type { FileJournal } from "./journal.ts"
import type * as Model from "./model.ts"
import type { Slice } from "./dump/opened.ts"
import type { Tree } from "./tree.ts"

export interface OpenTree {
  readonly filesystem: Algebra
  /** The identity of the tree. All filesystems that show the same tree have the same identity. @default the filesystem */
  readonly identity?: object | undefined
  /** The list of files. The same array is returned as long as the tree is known to be unchanged. */
  readonly tree: Effect.Effect<Tree, DebugError>
  readonly about: Pick<Model.FilesystemMeta, "name" | "created_at" | "archive_bytes" | "case_sensitive">
}

export type About = Pick<Model.Meta, "kind" | "title" | "path" | "tags" | "has_filesystem" | "problems"> &
  Partial<Pick<Model.Meta, "session_id" | "created_at">>

export interface Source {
  readonly about: Effect.Effect<About, DebugError>
  readonly generation: () => number
  readonly sessions: Effect.Effect<ReadonlyArray<Model.SessionInfo>, DebugError>
  readonly slices: Effect.Effect<ReadonlyArray<Model.SliceInfo>, DebugError>
  readonly slice: (name: string, session: string | undefined) => Effect.Effect<Slice | undefined, DebugError>
  readonly events: Effect.Effect<ReadonlyArray<Model.Event>, DebugError>
  readonly dumps: Effect.Effect<ReadonlyArray<Model.DumpFile>, DebugError>
  readonly reload: Effect.Effect<void, DebugError>
  readonly switchTo: (path: string) => Effect.Effect<void, DebugError>
  readonly snapshots: Effect.Effect<ReadonlyArray<Model.SnapshotInfo>, DebugError>
  /** The number of snapshots. Clients request the number more often than the list. */
  readonly snapshotCount: Effect.Effect<number>
  /**
   * Opens the tree of a snapshot or, without `at`, the current tree. Returns `undefined` if the source has no files. Fails with
   * `missing` for an unknown `at`.
   */
  readonly look: (at: string | undefined) => Effect.Effect<OpenTree | undefined, DebugError, Scope.Scope>
  readonly diff: (from: string | undefined, to: string | undefined) => Effect.Effect<Model.Diff, DebugError>
  readonly journal: FileJournal | undefined
  /** The live events. The sources of events stop when the last listener leaves. */
  readonly live: Stream.Stream<Model.LiveEvent>
}

/** Returns the parts of a source without a dump: no sessions, no events, and no dumps to switch to. `what` names the source. */
export const withoutDump = (what: string) => ({
  sessions: Effect.succeed([]),
  slices: Effect.succeed([]),
  slice: () => Effect.succeed(undefined),
  events: Effect.succeed([]),
  dumps: Effect.succeed([]),
  switchTo: () => Effect.fail(makeDebugError("missing", `the source is a ${what}, so there are no dumps to switch to`))
})

/** The trees that were opened last, by their ids. The oldest is dropped when there are too many. */
export class TreeCache extends Map<string, OpenTree> {
  override set(id: string, tree: OpenTree): this {
    if (this.size >= maxCachedTrees) this.delete(this.keys().next().value!)
    return super.set(id, tree)
  }
}

const maxCachedTrees = 8
