/** What the server shows, whatever it is: a dump, or a workspace. Everything is asked anew, so that what is told is what is there. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { DebugError } from "./errors.ts"
import type { Files } from "./journal.ts"
import type * as Model from "./model.ts"
import type { Slice } from "./dump/said.ts"
import type { Tree } from "./tree.ts"

/** A tree at one moment, or as it is. */
export interface Look {
  readonly filesystem: Algebra
  /** The same array for as long as it is known to be the same tree. */
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
  /** The latest first. */
  readonly snapshots: Effect.Effect<ReadonlyArray<Model.SnapshotInfo>, DebugError>
  /** How many; it is asked more often. */
  readonly snapshotCount: Effect.Effect<number>
  /** `undefined`: what is shown by itself. Answers `undefined` where that has no files. Fails with `missing` for what no `at` names. */
  readonly look: (at: string | undefined) => Effect.Effect<Look | undefined, DebugError, Scope.Scope>
  readonly diff: (from: string | undefined, to: string | undefined) => Effect.Effect<Model.Diff, DebugError>
  readonly journal: Files | undefined
  /** What happens while somebody listens; all of it ends with the last who does. */
  readonly live: Stream.Stream<Model.LiveEvent>
}
