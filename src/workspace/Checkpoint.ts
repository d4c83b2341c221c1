/**
 * Session and filesystem taken and brought back as one. The filesystem comes first, because it can fail; the session last, because
 * it then cannot; where anything fails, nothing has changed.
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
 * Session and filesystem at one moment.
 *
 * @since 0.1.0
 */
export interface Taken {
  readonly id: string
  readonly session: Session.SessionSnapshot
  readonly filesystem: FilesystemSnapshot
}

/**
 * Taking session and filesystem together, and bringing both back.
 *
 * @since 0.1.0
 */
export interface Operations {
  readonly session: Session.Operations
  /**
   * The filesystem's snapshot has the id as its tag, and the session records it in `FilesystemSnapshots`. The same id again replaces: what
   * it stood for is forgotten when the new one is complete, and stays where anything fails.
   */
  readonly take: (id: string) => Effect.Effect<Taken, SnapshotError | SessionError>
  /**
   * Fails with SessionError `unknown`, and as `prepare` of the session and `restore` of the filesystem do; then nothing has changed. Can be
   * done any number of times, back and forth.
   */
  readonly rollback: (id: string) => Effect.Effect<void, SnapshotRestoreError | SessionError>
  /** Answers whether there was one. */
  readonly forget: (id: string) => Effect.Effect<boolean, SnapshotError>
  /** In the order they were taken. */
  readonly list: Effect.Effect<ReadonlyArray<Taken>>
  /**
   * Both are what they were before when the effect fails, dies or is interrupted; until it ends nobody else changes either. Logs stay.
   * Where they cannot be brought back, that is added to what went wrong.
   */
  readonly transaction: <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | SnapshotError | SnapshotRestoreError | SessionError, R>
  /** Runs the effect while nobody else changes either; its own calls go through. */
  readonly exclusively: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * The service that takes session and filesystem together.
 *
 * @since 0.1.0
 */
export class Checkpoint extends Context.Service<Checkpoint, Operations>()("fs-algebra/Checkpoint") {}

/**
 * The snapshots of a filesystem that checkpoints, or anybody else, have recorded in a session: the oldest first.
 *
 * @since 0.1.0
 */
export const FilesystemSnapshots: Slice<FilesystemSnapshot> = Service.slice

/**
 * Of the session, and the filesystem whose snapshots these are. Fails with SessionError `duplicateSlice`.
 *
 * @since 0.1.0
 */
export const make = (options: {
  readonly session: Session.Operations
  readonly snapshots: SnapshotOperations
}): Effect.Effect<Operations, SessionError> => Effect.as(options.session.install(FilesystemSnapshots), Service.make(options))

/**
 * Checkpoints of the session and the snapshots in force.
 *
 * @since 0.1.0
 */
export const layer: Layer.Layer<Checkpoint, SessionError, Session.Session | Snapshots> = Layer.effect(
  Checkpoint,
  Effect.gen(function* () {
    return yield* make({ session: yield* Session.Session, snapshots: yield* Snapshots })
  })
)

/**
 * `transaction` of the service in force.
 *
 * @since 0.1.0
 */
export const transaction = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SnapshotError | SnapshotRestoreError | SessionError, R | Checkpoint> =>
  Checkpoint.use((checkpoint) => checkpoint.transaction(effect))

/**
 * Brings back the newest filesystem snapshot that is recorded in a snapshot of the session, then the session; where none is recorded, the
 * session alone. On failure nothing has changed.
 *
 * @since 0.1.0
 */
export const rollbackTo = (
  session: Session.Operations,
  snapshot: Session.SessionSnapshot,
  snapshots: SnapshotOperations
): Effect.Effect<void, SnapshotRestoreError | SessionError> => Service.bringBackTo({ session, snapshots }, snapshot)

/** @since 0.1.0 */
export type ExternalFsSnapshot = External.ExternalFsSnapshot

/**
 * A whole filesystem as an archive, for a session that is saved without it. As JSON, base64.
 *
 * @since 0.1.0
 */
export const ExternalFsSnapshot: Slice<ExternalFsSnapshot> = External.slice

/**
 * Keeps the tree of the filesystem, as it is, in `ExternalFsSnapshot`, in place of the one that was there. Fails as `Archive.exportBytes`.
 *
 * @since 0.1.0
 */
export const captureExternal = (
  session: Session.Operations,
  filesystem: Algebra
): Effect.Effect<void, ArchiveError | FsError | SessionError> => External.capture(session, filesystem)

/**
 * Makes the filesystem what `ExternalFsSnapshot` holds, and answers whether it holds anything. Fails as `Archive.importBytes`, with
 * nothing changed.
 *
 * @since 0.1.0
 */
export const restoreExternal = (
  session: Session.Operations,
  filesystem: Algebra
): Effect.Effect<boolean, ArchiveError | FsError> => External.restore(session, filesystem)
