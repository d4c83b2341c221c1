/**
 * Checkpoints of a session together with its filesystem. A rollback restores the filesystem first, because that can fail, and then the
 * session, which can no longer fail. On any failure nothing has changed.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { ArchiveError, SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import { Snapshots } from "../history/Snapshots.ts"
import type { Operations as SnapshotOperations } from "../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../history/snapshots/value.ts"
import type { FsError } from "../model/FsError.ts"
import type { SessionError } from "../model/sessionError.ts"
import type { Slice } from "../model/Slice.ts"
import * as External from "./checkpoint/external.ts"
import * as Service from "./checkpoint/service.ts"
import * as Session from "./Session.ts"

/**
 * A session and a filesystem at one moment.
 *
 * @since 0.1.0
 */
export interface Taken {
  readonly id: string
  readonly session: Session.SessionSnapshot
  readonly filesystem: FilesystemSnapshot
}

/**
 * Takes checkpoints of a session and a filesystem, and restores them.
 *
 * @since 0.1.0
 */
export interface Operations {
  readonly session: Session.Operations
  /**
   * Takes a checkpoint. The filesystem's snapshot has the id as its tag, and the session records it in `FilesystemSnapshots`. An existing
   * checkpoint of the same id is replaced once the new one is complete, and stays on failure.
   */
  readonly take: (id: string) => Effect.Effect<Taken, SnapshotError | SessionError>
  /**
   * Restores a checkpoint, any number of times and in any order. Fails with SessionError `unknown`, and as the session's `prepare` and the
   * filesystem's `restore` do; then nothing has changed.
   */
  readonly rollback: (id: string) => Effect.Effect<void, SnapshotRestoreError | SessionError>
  /** Removes a checkpoint, and returns whether there was one. */
  readonly forget: (id: string) => Effect.Effect<boolean, SnapshotError>
  /** The checkpoints in the order in which they were taken. */
  readonly list: Effect.Effect<ReadonlyArray<Taken>>
  /**
   * Runs the effect, and restores both if it fails, dies or is interrupted. Until the effect ends, no other caller changes either of them.
   * Log slices are not restored. If the restore fails, its cause is added to the effect's cause.
   */
  readonly transaction: <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | SnapshotError | SnapshotRestoreError | SessionError, R>
  /** Runs the effect while no other caller changes the session or the filesystem. The effect's own calls may change both. */
  readonly exclusively: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * The checkpoint service.
 *
 * @category services
 * @since 0.1.0
 */
export class Checkpoint extends Context.Service<Checkpoint, Operations>()("fs-algebra/Checkpoint") {}

/**
 * The slice of filesystem snapshots that a session has recorded, the oldest first. Checkpoints add to it, and other code may too.
 *
 * @since 0.1.0
 */
export const FilesystemSnapshots: Slice<FilesystemSnapshot> = Service.slice

/**
 * Returns the checkpoints of the session and of the filesystem that `snapshots` belongs to. Fails with SessionError `duplicateSlice`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: {
  readonly session: Session.Operations
  readonly snapshots: SnapshotOperations
}): Effect.Effect<Operations, SessionError> => Effect.as(options.session.install(FilesystemSnapshots), Service.make(options))

/**
 * Provides checkpoints of the session and the snapshots in the context.
 *
 * @example
 * ```ts
 * const undone = Effect.gen(function* () {
 *   const checkpoint = yield* Checkpoint.Checkpoint
 *   yield* checkpoint.take("start")
 *   yield* fs.delete("notes/todo.md")
 *   yield* checkpoint.rollback("start") // the files and the session
 *   return yield* fs.exists("notes/todo.md")
 * })
 * yield* Effect.provide(undone, Checkpoint.layer.pipe(Layer.provide([Session.layer(), Snapshots.layer]))) // => true
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Checkpoint, SessionError, Session.Session | Snapshots> = Layer.effect(
  Checkpoint,
  Effect.gen(function* () {
    return yield* make({ session: yield* Session.Session, snapshots: yield* Snapshots })
  })
)

/**
 * Runs the effect in `transaction` of the Checkpoint service.
 *
 * @category transactions
 * @since 0.1.0
 */
export const transaction = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SnapshotError | SnapshotRestoreError | SessionError, R | Checkpoint> =>
  Checkpoint.use((checkpoint) => checkpoint.transaction(effect))

/**
 * Restores the newest filesystem snapshot that a snapshot of the session has recorded, and then the session. If none is recorded, restores
 * the session only. On failure nothing has changed.
 *
 * @since 0.1.0
 */
export const rollbackTo = (
  session: Session.Operations,
  snapshot: Session.SessionSnapshot,
  snapshots: SnapshotOperations
): Effect.Effect<void, SnapshotRestoreError | SessionError> => Service.restoreToSnapshot({ session, snapshots }, snapshot)

/** @since 0.1.0 */
export type ExternalFsSnapshot = External.ExternalFsSnapshot

/**
 * The slice with a whole filesystem as an archive, for a session that is saved without its filesystem. The JSON form is base64.
 *
 * @since 0.1.0
 */
export const ExternalFsSnapshot: Slice<ExternalFsSnapshot> = External.slice

/**
 * Stores the current tree of the filesystem in `ExternalFsSnapshot`, and replaces an earlier one. Fails as `Archive.exportBytes` does.
 *
 * @since 0.1.0
 */
export const captureExternal = (
  session: Session.Operations,
  filesystem: Algebra
): Effect.Effect<void, ArchiveError | FsError | SessionError> => External.capture(session, filesystem)

/**
 * Restores the filesystem from `ExternalFsSnapshot`. Returns false if the slice is empty. Fails as `Archive.importBytes` does, with nothing
 * changed.
 *
 * @since 0.1.0
 */
export const restoreExternal = (
  session: Session.Operations,
  filesystem: Algebra
): Effect.Effect<boolean, ArchiveError | FsError> => External.restore(session, filesystem)
