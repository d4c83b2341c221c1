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

export interface Pair {
  readonly session: Session
  readonly snapshots: Snapshots
}

type Unmask = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const masked: Unmask = (effect) => effect

export const slice: Slice<FilesystemSnapshot> = makeSlice("FilesystemSnapshot", FilesystemSnapshot)

/**
 * Runs the work uninterruptibly while no other caller changes the session or the filesystem. `work` receives the function that allows
 * interruption.
 */
const holding = <A, E, R>(
  { session, snapshots }: Pair,
  work: (unmask: Unmask) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const held = session.exclusively(Effect.uninterruptibleMask(work))
  return snapshots.exclusively?.(held) ?? held
}

/** Removes a snapshot. A failure is only logged, because a leftover snapshot only takes space. */
const forgetting = ({ snapshots }: Pair, snapshot: FilesystemSnapshot): Effect.Effect<void> =>
  Effect.ignoreCause(snapshots.forget(snapshot), { log: "Warn", message: "fs-algebra: a snapshot could not be forgotten" })

/** Takes a snapshot. An interrupted attempt may have created one that is not recorded anywhere, so this removes it. */
const capture = (pair: Pair, tag: string, isKnown: (id: string) => boolean, unmask: Unmask) =>
  Effect.flatMap(DateTime.now, (since) => {
    const isLeft = (one: FilesystemSnapshot): boolean =>
      one.tag === tag && one.createdAt.epochMilliseconds >= since.epochMilliseconds && !isKnown(one.snapshotId)
    const cleared = Effect.flatMap(pair.snapshots.list, (all) =>
      Effect.forEach(all.filter(isLeft), (one) => forgetting(pair, one), { discard: true })
    )
    return Effect.onError(unmask(pair.snapshots.snapshot({ tag })), () => Effect.ignoreCause(cleared))
  })

/**
 * Tests whether the filesystem was restored. A failure has changed nothing, but after an interruption or a defect the restore may have been
 * complete.
 */
const isBack = (
  { snapshots }: Pair,
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
const unlessUndone = <E, R>(
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
const bringBack = Effect.fnUntraced(function* (
  pair: Pair,
  target: SessionSnapshot,
  filesystem: FilesystemSnapshot | undefined,
  unmask: Unmask
): Effect.fn.Return<void, SnapshotRestoreError | SessionError> {
  if (filesystem === undefined) return yield* Effect.flatMap(pair.session.prepare(target), ({ commit }) => commit)
  let restored: Exit.Exit<unknown, SnapshotRestoreError> = Exit.void
  const restoring = Effect.gen(function* () {
    const { commit, discard } = yield* pair.session.prepare(target)
    restored = yield* Effect.exit(unmask(pair.snapshots.restore(filesystem)))
    const isDone = Exit.isSuccess(restored) || (yield* isBack(pair, filesystem, restored.cause))
    yield* isDone ? commit : discard
    return isDone
  })
  yield* unlessUndone(pair.session, restoring)
  if (Exit.isFailure(restored)) return yield* Effect.failCause(restored.cause)
})

export const bringBackTo = (pair: Pair, target: SessionSnapshot): Effect.Effect<void, SnapshotRestoreError | SessionError> =>
  holding(pair, (unmask) => bringBack(pair, target, target.items(slice).at(-1), unmask))

const unknown = (id: string): SessionError =>
  new SessionError({ operation: "rollback", reason: "unknown", detail: `there is no checkpoint ${JSON.stringify(id)}` })

const unlessGone = (error: SnapshotError): Effect.Effect<void, SnapshotError> =>
  error.reason === "unknown" ? Effect.void : Effect.fail(error)

export const make = (pair: Pair): Operations => {
  const { session, snapshots } = pair
  const all = new Map<string, Taken>()
  /** The ids of running transactions, which `list` does not show. */
  const passing = new Set<string>()

  const isKnown = (id: string): boolean => [...all.values()].some(({ filesystem }) => filesystem.snapshotId === id)

  const recorded = (
    more: FilesystemSnapshot | undefined,
    less: FilesystemSnapshot | undefined
  ): Effect.Effect<void, SessionError> =>
    Effect.flatMap(session.all(slice), (before) => {
      const rest = less === undefined ? before : before.filter(({ snapshotId }) => snapshotId !== less.snapshotId)
      return more === undefined && rest.length === before.length
        ? Effect.void
        : session.set(slice, ...rest, ...(more === undefined ? [] : [more]))
    })

  const taking = Effect.fnUntraced(function* (
    id: string,
    isPassing: boolean,
    unmask: Unmask
  ): Effect.fn.Return<Taken, SnapshotError | SessionError> {
    const old = all.get(id)
    const filesystem = yield* capture(pair, id, isKnown, unmask)
    const before = yield* session.all(slice)
    const completed = Effect.gen(function* () {
      if (!isPassing) yield* recorded(filesystem, old?.filesystem)
      return yield* session.snapshot(id)
    })
    const undone = Effect.andThen(Effect.ignoreCause(session.set(slice, ...before)), forgetting(pair, filesystem))
    const taken: Taken = Object.freeze({ id, filesystem, session: yield* Effect.onError(completed, () => undone) })
    all.delete(id)
    all.set(id, taken)
    if (isPassing) passing.add(id)
    if (old !== undefined) yield* forgetting(pair, old.filesystem)
    return taken
  })

  const forgettingBoth = Effect.fnUntraced(function* ({
    filesystem,
    id,
    session: snapshot
  }: Taken): Effect.fn.Return<void, SnapshotError> {
    yield* Effect.catch(snapshots.forget(filesystem), unlessGone)
    all.delete(id)
    passing.delete(id)
    // A newer snapshot of the session may have the same id.
    if ((yield* session.snapshots).includes(snapshot)) yield* session.forget(id)
    yield* Effect.ignore(recorded(undefined, filesystem))
  })

  const transaction: Operations["transaction"] = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    holding(
      pair,
      Effect.fnUntraced(function* (
        unmask: Unmask
      ): Effect.fn.Return<A, E | SnapshotError | SnapshotRestoreError | SessionError, R> {
        const taken = yield* taking(`transaction ${randomUUID()}`, true, unmask)
        const exit = yield* Effect.exit(unmask(effect))
        if (Exit.isSuccess(exit)) {
          yield* Effect.ignore(forgettingBoth(taken))
          return exit.value
        }
        const back = yield* Effect.exit(bringBack(pair, taken.session, taken.filesystem, masked))
        if (Exit.isFailure(back)) return yield* Effect.failCause(Cause.combine(exit.cause, back.cause))
        yield* Effect.ignore(forgettingBoth(taken))
        return yield* Effect.failCause(exit.cause)
      })
    )

  return {
    session,
    take: (id) => holding(pair, (unmask) => taking(id, false, unmask)),
    rollback: (id) =>
      holding(pair, (unmask) => {
        const found = all.get(id)
        return found === undefined ? Effect.fail(unknown(id)) : bringBack(pair, found.session, found.filesystem, unmask)
      }),
    forget: (id) =>
      holding(pair, () => {
        const found = all.get(id)
        return found === undefined ? Effect.succeed(false) : Effect.as(forgettingBoth(found), true)
      }),
    list: Effect.sync(() => [...all.values()].filter(({ id }) => !passing.has(id))),
    transaction,
    exclusively: (effect) => holding(pair, (unmask) => unmask(effect))
  }
}
