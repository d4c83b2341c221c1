/**
 * Checkpoints of a session together with its filesystem.
 *
 * A rollback first restores the filesystem, which can fail, and then restores the session, which cannot fail. After any failure
 * nothing has changed.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import { bringBackBytesOf, importTarOf, keepBytesOf } from "../history/Archive.ts"
import { Snapshots as HistorySnapshots } from "../history/snapshots/tag.ts"
import type { ArchiveError, SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import { withExclusiveLock } from "../history/replace.ts"
import type { Operations as Snapshots, TransactionSnapshotOptions } from "../history/snapshots/operations.ts"
import { FilesystemSnapshot } from "../history/snapshots/value.ts"
import type { FsError } from "../model/FsError.ts"
import { make as makeSlice, replaceLatest, type Slice } from "../model/Slice.ts"
import { SessionError } from "../model/sessionError.ts"
import { randomUUID } from "../runtime/node.ts"
import * as SessionModule from "./Session.ts"
import type { Operations as Session, SessionSnapshot } from "./Session.ts"

// Locks the filesystem before the session, in the same order as calls that reach the session through the filesystem. Steps that
// can fail come before any visible change.

interface SessionWithSnapshots {
  readonly session: Session
  readonly snapshots: Snapshots
}

type Unmask = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const keepMasked: Unmask = (effect) => effect

/**
 * Runs `work` while no other caller changes the session or the filesystem. `work` is uninterruptible, and receives a function
 * that allows interruption.
 */
const holdBoth = <A, E, R>(
  { session, snapshots }: SessionWithSnapshots,
  work: (unmask: Unmask) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const heldWork = session.exclusively(Effect.uninterruptibleMask(work))
  return snapshots.exclusively?.(heldWork) ?? heldWork
}

/** Removes a snapshot. A failure is only logged, because a leftover snapshot only occupies space. */
const forgetSnapshot = ({ snapshots }: SessionWithSnapshots, snapshot: FilesystemSnapshot): Effect.Effect<void> =>
  Effect.ignoreCause(snapshots.forget(snapshot), {
    log: "Warn",
    message: `fs-algebra: cannot forget the unused snapshot ${snapshot.snapshotId}; it stays in the store`
  })

/** Takes a snapshot. After a failure or an interruption, removes the snapshot, because no caller knows its id. */
const captureFilesystem = (
  sessionWithSnapshots: SessionWithSnapshots,
  options: TransactionSnapshotOptions & { readonly tag: string },
  isKnown: (id: string) => boolean,
  unmask: Unmask
) =>
  Effect.flatMap(DateTime.now, (since) => {
    const isUnrecorded = (one: FilesystemSnapshot): boolean =>
      one.tag === options.tag && one.createdAt.epochMilliseconds >= since.epochMilliseconds && !isKnown(one.snapshotId)
    const forgetUnrecorded = Effect.flatMap(sessionWithSnapshots.snapshots.list, (all) =>
      Effect.forEach(all.filter(isUnrecorded), (one) => forgetSnapshot(sessionWithSnapshots, one), { discard: true })
    )
    return Effect.onError(unmask(sessionWithSnapshots.snapshots.snapshot(options)), () => Effect.ignoreCause(forgetUnrecorded))
  })

/**
 * Tests whether the filesystem was restored. A failed restore changes nothing. After an interruption or a defect the restore
 * may be complete, so the test compares the filesystem with the snapshot.
 */
const isRestored = (
  { snapshots }: SessionWithSnapshots,
  snapshot: FilesystemSnapshot,
  cause: Cause.Cause<SnapshotRestoreError>
): Effect.Effect<boolean> =>
  Cause.hasInterrupts(cause) || Cause.hasDies(cause)
    ? Effect.match(Effect.retry(Effect.sandbox(snapshots.diff(snapshot)), { times: 2 }), {
        onFailure: () => false,
        onSuccess: (changes) => changes.length === 0
      })
    : Effect.succeed(false)

/**
 * Runs the effect. If the effect returns false, restores the session to its state before the effect, because the filesystem may
 * have changed the session during its own restore.
 */
const restoreSessionIfUndone = <E, R>(
  session: Session,
  effect: Effect.Effect<boolean, E, R>
): Effect.Effect<boolean, E | SessionError, R> =>
  Effect.flatMap(session.snapshot(`rollback ${randomUUID()}`), (now) =>
    Effect.ensuring(
      Effect.tap(effect, (isDone) =>
        isDone ? Effect.void : Effect.ignoreCause(Effect.flatMap(session.prepare(now), ({ commit }) => commit))
      ),
      session.forget(now.snapshotId)
    )
  )

/** Restores the filesystem and the session. The caller must have locked both with `holdBoth`. */
const restoreBoth = Effect.fnUntraced(function* (
  sessionWithSnapshots: SessionWithSnapshots,
  target: SessionSnapshot,
  filesystem: FilesystemSnapshot | undefined,
  unmask: Unmask
): Effect.fn.Return<void, SnapshotRestoreError | SessionError> {
  if (filesystem === undefined)
    return yield* Effect.flatMap(sessionWithSnapshots.session.prepare(target), ({ commit }) => commit)
  let restoreExit: Exit.Exit<unknown, SnapshotRestoreError> = Exit.void
  const restoring = Effect.gen(function* () {
    const { commit, discard } = yield* sessionWithSnapshots.session.prepare(target)
    restoreExit = yield* Effect.exit(unmask(sessionWithSnapshots.snapshots.restore(filesystem)))
    const isDone = Exit.isSuccess(restoreExit) || (yield* isRestored(sessionWithSnapshots, filesystem, restoreExit.cause))
    yield* isDone ? commit : discard
    return isDone
  })
  yield* restoreSessionIfUndone(sessionWithSnapshots.session, restoring)
  if (Exit.isFailure(restoreExit)) return yield* Effect.failCause(restoreExit.cause)
})

const unknownCheckpoint = (id: string): SessionError =>
  new SessionError({ operation: "rollback", reason: "unknown", detail: `there is no checkpoint ${JSON.stringify(id)}` })

const ignoreUnknown = (error: SnapshotError): Effect.Effect<void, SnapshotError> =>
  error.reason === "unknown" ? Effect.void : Effect.fail(error)

const makeService = (sessionWithSnapshots: SessionWithSnapshots): Operations => {
  const { session, snapshots } = sessionWithSnapshots
  const all = new Map<string, Taken>()
  /** The ids of running transactions, which `list` does not show. */
  const transactionIds = new Set<string>()

  const isKnown = (id: string): boolean => [...all.values()].some(({ filesystem }) => filesystem.snapshotId === id)

  const updateRecord = (
    added: FilesystemSnapshot | undefined,
    removed: FilesystemSnapshot | undefined
  ): Effect.Effect<void, SessionError> =>
    Effect.flatMap(session.all(FilesystemSnapshots), (before) => {
      const rest = removed === undefined ? before : before.filter(({ snapshotId }) => snapshotId !== removed.snapshotId)
      return added === undefined && rest.length === before.length
        ? Effect.void
        : session.set(FilesystemSnapshots, ...rest, ...(added === undefined ? [] : [added]))
    })

  const takeCheckpoint = Effect.fnUntraced(function* (
    id: string,
    isPassing: boolean,
    unmask: Unmask
  ): Effect.fn.Return<Taken, SnapshotError | SessionError> {
    const old = all.get(id)
    const filesystem = yield* captureFilesystem(sessionWithSnapshots, { tag: id, isPassing }, isKnown, unmask)
    const before = yield* session.all(FilesystemSnapshots)
    const completeTake = Effect.gen(function* () {
      if (!isPassing) yield* updateRecord(filesystem, old?.filesystem)
      return yield* session.snapshot(id)
    })
    const undoTake = Effect.andThen(
      Effect.ignoreCause(session.set(FilesystemSnapshots, ...before)),
      forgetSnapshot(sessionWithSnapshots, filesystem)
    )
    const taken: Taken = Object.freeze({ id, filesystem, session: yield* Effect.onError(completeTake, () => undoTake) })
    all.delete(id)
    all.set(id, taken)
    if (isPassing) transactionIds.add(id)
    if (old !== undefined) yield* forgetSnapshot(sessionWithSnapshots, old.filesystem)
    return taken
  })

  const forgetCheckpoint = Effect.fnUntraced(function* ({
    filesystem,
    id,
    session: snapshot
  }: Taken): Effect.fn.Return<void, SnapshotError> {
    yield* Effect.catch(snapshots.forget(filesystem), ignoreUnknown)
    all.delete(id)
    transactionIds.delete(id)
    // Check the identity, because a newer snapshot of the session may have the same id.
    if ((yield* session.snapshots).includes(snapshot)) yield* session.forget(id)
    yield* Effect.ignore(updateRecord(undefined, filesystem))
  })

  const transaction: Operations["transaction"] = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    holdBoth(
      sessionWithSnapshots,
      Effect.fnUntraced(function* (
        unmask: Unmask
      ): Effect.fn.Return<A, E | SnapshotError | SnapshotRestoreError | SessionError, R> {
        const taken = yield* takeCheckpoint(`transaction ${randomUUID()}`, true, unmask)
        const exit = yield* Effect.exit(unmask(effect))
        if (Exit.isSuccess(exit)) {
          yield* Effect.ignore(forgetCheckpoint(taken))
          return exit.value
        }
        const rollbackExit = yield* Effect.exit(restoreBoth(sessionWithSnapshots, taken.session, taken.filesystem, keepMasked))
        if (Exit.isFailure(rollbackExit)) return yield* Effect.failCause(Cause.combine(exit.cause, rollbackExit.cause))
        yield* Effect.ignore(forgetCheckpoint(taken))
        return yield* Effect.failCause(exit.cause)
      })
    )

  return {
    session,
    take: (id) => holdBoth(sessionWithSnapshots, (unmask) => takeCheckpoint(id, false, unmask)),
    rollback: (id) =>
      holdBoth(sessionWithSnapshots, (unmask) => {
        const found = all.get(id)
        return found === undefined
          ? Effect.fail(unknownCheckpoint(id))
          : restoreBoth(sessionWithSnapshots, found.session, found.filesystem, unmask)
      }),
    forget: (id) =>
      holdBoth(sessionWithSnapshots, () => {
        const found = all.get(id)
        return found === undefined ? Effect.succeed(false) : Effect.as(forgetCheckpoint(found), true)
      }),
    list: Effect.sync(() => [...all.values()].filter(({ id }) => !transactionIds.has(id))),
    transaction,
    exclusively: (effect) => holdBoth(sessionWithSnapshots, (unmask) => unmask(effect))
  }
}

/**
 * A checkpoint: a snapshot of the session and a snapshot of the filesystem, taken at one moment.
 *
 * @since 0.1.0
 */
export interface Taken {
  readonly id: string
  readonly session: SessionModule.SessionSnapshot
  readonly filesystem: FilesystemSnapshot
}

/**
 * The operations on the checkpoints of a session and a filesystem.
 *
 * @since 0.1.0
 */
export interface Operations {
  readonly session: SessionModule.Operations
  /**
   * Takes a checkpoint. An existing checkpoint with the same id is replaced when the new checkpoint is complete. If the call
   * fails, the existing checkpoint stays.
   *
   * The snapshot of the filesystem has the id as its tag. The session records this snapshot in `FilesystemSnapshots`.
   */
  readonly take: (id: string) => Effect.Effect<Taken, SnapshotError | SessionError>
  /**
   * Restores a checkpoint. Each checkpoint can be restored any number of times and in any order.
   *
   * Fails with SessionError `unknown`, or with an error of the session's `prepare` or the filesystem's `restore`. After a
   * failure nothing has changed.
   */
  readonly rollback: (id: string) => Effect.Effect<void, SnapshotRestoreError | SessionError>
  /** Removes a checkpoint, and returns whether it existed. */
  readonly forget: (id: string) => Effect.Effect<boolean, SnapshotError>
  /** The checkpoints in the order in which they were taken. */
  readonly list: Effect.Effect<ReadonlyArray<Taken>>
  /**
   * Runs the effect. If the effect fails, dies or is interrupted, restores the session and the filesystem, except log slices.
   *
   * No other caller changes the session or the filesystem before the effect ends. If the restore fails, its cause is added to
   * the cause of the effect.
   */
  readonly transaction: <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | SnapshotError | SnapshotRestoreError | SessionError, R>
  /** Runs the effect while no other caller changes the session or the filesystem. The effect itself may change both. */
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
 * The slice of filesystem snapshots that a session has recorded, with the oldest first. Checkpoints append to this slice, and
 * other code may append too.
 *
 * @since 0.1.0
 */
export const FilesystemSnapshots: Slice<FilesystemSnapshot> = makeSlice("FilesystemSnapshot", FilesystemSnapshot)

/**
 * Returns the checkpoints of a session and a filesystem. `snapshots` must be the snapshots of the filesystem. Fails with
 * SessionError `duplicateSlice` if the session has another slice with the name of `FilesystemSnapshots`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: {
  readonly session: SessionModule.Operations
  readonly snapshots: Snapshots
}): Effect.Effect<Operations, SessionError> => Effect.as(options.session.install(FilesystemSnapshots), makeService(options))

/**
 * Provides checkpoints. The session and the snapshots come from the context.
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
export const layer: Layer.Layer<Checkpoint, SessionError, SessionModule.Session | HistorySnapshots> = Layer.effect(
  Checkpoint,
  Effect.gen(function* () {
    return yield* make({ session: yield* SessionModule.Session, snapshots: yield* HistorySnapshots })
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
 * Restores a snapshot of the session, and the newest filesystem snapshot that it contains.
 *
 * If the session snapshot contains no filesystem snapshot, restores the session only. After a failure nothing has changed.
 *
 * @since 0.1.0
 */
export const rollbackTo = (
  session: SessionModule.Operations,
  snapshot: SessionModule.SessionSnapshot,
  snapshots: Snapshots
): Effect.Effect<void, SnapshotRestoreError | SessionError> => {
  const both = { session, snapshots }
  return holdBoth(both, (unmask) => restoreBoth(both, snapshot, snapshot.items(FilesystemSnapshots).at(-1), unmask))
}

/**
 * A whole filesystem as one archive.
 *
 * @since 0.1.0
 */
export interface ExternalFsSnapshot {
  /**
   * A ZIP archive from `captureExternal` or `Archive.exportBytes`. A tar archive, with or without gzip, is accepted too. The
   * array must not be changed.
   */
  readonly data: Uint8Array
}

/**
 * The slice that contains a whole filesystem as an archive, for sessions that are saved without their filesystem. In JSON the
 * archive is base64.
 *
 * @since 0.1.0
 */
export const ExternalFsSnapshot: Slice<ExternalFsSnapshot> = makeSlice(
  "ExternalFsSnapshot",
  Schema.Struct({ data: Schema.Uint8ArrayFromBase64 }),
  { reduce: replaceLatest }
)

/**
 * Stores the current tree of the filesystem in `ExternalFsSnapshot`, and replaces an earlier archive. Fails as
 * `Archive.exportBytes` or `set` of the session does.
 *
 * @since 0.1.0
 */
export const captureExternal = (
  session: SessionModule.Operations,
  filesystem: Algebra
): Effect.Effect<void, ArchiveError | FsError | SessionError> =>
  Effect.flatMap(withExclusiveLock(filesystem.port, keepBytesOf(filesystem)), (data) =>
    session.set(ExternalFsSnapshot, { data })
  )

const isZip = (bytes: Uint8Array): boolean => bytes[0] === 0x50 && bytes[1] === 0x4b

/**
 * Restores the filesystem from `ExternalFsSnapshot`. Returns false if the slice is empty. Fails as `Archive.importBytes` does,
 * and then nothing has changed.
 *
 * @since 0.1.0
 */
export const restoreExternal = (
  session: SessionModule.Operations,
  filesystem: Algebra
): Effect.Effect<boolean, ArchiveError | FsError> =>
  Effect.flatMap(session.latest(ExternalFsSnapshot), (latest) => {
    if (Option.isNone(latest)) return Effect.succeed(false)
    // Copy the bytes, so that no other code changes them between the check and the use.
    const bytes = latest.value.data.slice()
    const restored = isZip(bytes) ? bringBackBytesOf(filesystem, bytes) : importTarOf(filesystem, Stream.succeed(bytes))
    return Effect.as(restored, true)
  })
