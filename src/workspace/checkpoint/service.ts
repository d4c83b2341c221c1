/**
 * Holds the filesystem before the session, as calls that reach the session through the filesystem do. Steps that can fail come
 * before any visible change.
 */
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { randomUUID } from "../../runtime/node.ts"
import type { SnapshotError, SnapshotRestoreError } from "../../history/errors.ts"
import type { Operations as Snapshots } from "../../history/snapshots/operations.ts"
import { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import { SessionError } from "../../model/sessionError.ts"
import { make as makeSlice, type Slice } from "../../model/Slice.ts"
import type { Operations, Taken } from "../Checkpoint.ts"
import type { Operations as Session, SessionSnapshot } from "../Session.ts"

export interface SessionWithSnapshots {
  readonly session: Session
  readonly snapshots: Snapshots
}

type Unmask = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const keepMasked: Unmask = (effect) => effect

export const slice: Slice<FilesystemSnapshot> = makeSlice("FilesystemSnapshot", FilesystemSnapshot)

/**
 * Runs the work uninterruptibly while no other caller changes the session or the filesystem. `work` receives the function that allows
 * interruption.
 */
const holdBoth = <A, E, R>(
  { session, snapshots }: SessionWithSnapshots,
  work: (unmask: Unmask) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const heldWork = session.exclusively(Effect.uninterruptibleMask(work))
  return snapshots.exclusively?.(heldWork) ?? heldWork
}

/** Removes a snapshot. A failure is only logged, because a leftover snapshot only takes space. */
const forgetSnapshot = ({ snapshots }: SessionWithSnapshots, snapshot: FilesystemSnapshot): Effect.Effect<void> =>
  Effect.ignoreCause(snapshots.forget(snapshot), { log: "Warn", message: "fs-algebra: a snapshot could not be forgotten" })

/** Takes a snapshot. An interrupted attempt may have created one that is not recorded anywhere, so this removes it. */
const captureFilesystem = (
  sessionWithSnapshots: SessionWithSnapshots,
  tag: string,
  isKnown: (id: string) => boolean,
  unmask: Unmask
) =>
  Effect.flatMap(DateTime.now, (since) => {
    const isUnrecorded = (one: FilesystemSnapshot): boolean =>
      one.tag === tag && one.createdAt.epochMilliseconds >= since.epochMilliseconds && !isKnown(one.snapshotId)
    const forgetUnrecorded = Effect.flatMap(sessionWithSnapshots.snapshots.list, (all) =>
      Effect.forEach(all.filter(isUnrecorded), (one) => forgetSnapshot(sessionWithSnapshots, one), { discard: true })
    )
    return Effect.onError(unmask(sessionWithSnapshots.snapshots.snapshot({ tag })), () => Effect.ignoreCause(forgetUnrecorded))
  })

/**
 * Tests whether the filesystem was restored. A failure has changed nothing, but after an interruption or a defect the restore may have been
 * complete.
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
 * Runs the effect. If the effect returns false, restores the session, because the filesystem may have changed it during the restore and its
 * rollback.
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

/** Restores both. The caller must hold them. */
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

export const restoreToSnapshot = (
  sessionWithSnapshots: SessionWithSnapshots,
  target: SessionSnapshot
): Effect.Effect<void, SnapshotRestoreError | SessionError> =>
  holdBoth(sessionWithSnapshots, (unmask) => restoreBoth(sessionWithSnapshots, target, target.items(slice).at(-1), unmask))

const unknownCheckpoint = (id: string): SessionError =>
  new SessionError({ operation: "rollback", reason: "unknown", detail: `there is no checkpoint ${JSON.stringify(id)}` })

const ignoreUnknown = (error: SnapshotError): Effect.Effect<void, SnapshotError> =>
  error.reason === "unknown" ? Effect.void : Effect.fail(error)

export const make = (sessionWithSnapshots: SessionWithSnapshots): Operations => {
  const { session, snapshots } = sessionWithSnapshots
  const all = new Map<string, Taken>()
  /** The ids of running transactions, which `list` does not show. */
  const transactionIds = new Set<string>()

  const isKnown = (id: string): boolean => [...all.values()].some(({ filesystem }) => filesystem.snapshotId === id)

  const updateRecord = (
    added: FilesystemSnapshot | undefined,
    removed: FilesystemSnapshot | undefined
  ): Effect.Effect<void, SessionError> =>
    Effect.flatMap(session.all(slice), (before) => {
      const rest = removed === undefined ? before : before.filter(({ snapshotId }) => snapshotId !== removed.snapshotId)
      return added === undefined && rest.length === before.length
        ? Effect.void
        : session.set(slice, ...rest, ...(added === undefined ? [] : [added]))
    })

  const takeCheckpoint = Effect.fnUntraced(function* (
    id: string,
    isPassing: boolean,
    unmask: Unmask
  ): Effect.fn.Return<Taken, SnapshotError | SessionError> {
    const old = all.get(id)
    const filesystem = yield* captureFilesystem(sessionWithSnapshots, id, isKnown, unmask)
    const before = yield* session.all(slice)
    const completeTake = Effect.gen(function* () {
      if (!isPassing) yield* updateRecord(filesystem, old?.filesystem)
      return yield* session.snapshot(id)
    })
    const undoTake = Effect.andThen(
      Effect.ignoreCause(session.set(slice, ...before)),
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
    // A newer snapshot of the session may have the same id.
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
