/**
 * Session and filesystem taken and brought back as one. The filesystem comes first, because it can fail; the session last, because
 * it then cannot; where anything fails, nothing has changed.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import type { FilesystemSnapshot } from "../history/snapshots/value.ts"
import type { SessionError } from "../model/sessionError.ts"
import type * as Session from "./Session.ts"

/** @since 0.1.0 */
export interface Taken {
  readonly id: string
  readonly session: Session.SessionSnapshot
  readonly filesystem: FilesystemSnapshot
}

/** @since 0.1.0 */
export interface Operations {
  readonly session: Session.Operations
  /** The same id again replaces. */
  readonly take: (id: string) => Effect.Effect<Taken, SnapshotError | SessionError>
  readonly rollback: (id: string) => Effect.Effect<void, SnapshotRestoreError | SessionError>
  /** Answers whether there was one. */
  readonly forget: (id: string) => Effect.Effect<boolean, SnapshotError>
  /** In the order they were taken. */
  readonly list: Effect.Effect<ReadonlyArray<Taken>>
}

/** @since 0.1.0 */
export class Checkpoint extends Context.Service<Checkpoint, Operations>()("fs-algebra/Checkpoint") {}
