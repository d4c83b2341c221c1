/**
 * Both are held while one of them is worked on: the filesystem first, as those do who work on it and come to the session by that; one that is
 * kept in the session holds that before itself. What can fail is done before anything is seen of it; where it cannot be known whether the
 * filesystem was brought back, it is looked at.
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

/** What is taken and brought back as one. */
export interface Pair {
  readonly session: Session
  readonly snapshots: Snapshots
}

/** Makes an effect look for interruption, where it is safe to end. */
type Unmask = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const masked: Unmask = (effect) => effect

export const slice: Slice<FilesystemSnapshot> = makeSlice("FilesystemSnapshot", FilesystemSnapshot)

/** Nobody else changes either of them while this runs, which is told where it can be interrupted. */
const holding = <A, E, R>(
  { session, snapshots }: Pair,
  work: (unmask: Unmask) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const held = session.exclusively(Effect.uninterruptibleMask(work))
  return snapshots.exclusively?.(held) ?? held
}

/** What is left of it takes room, and harms nobody. */
const forgetting = ({ snapshots }: Pair, snapshot: FilesystemSnapshot): Effect.Effect<void> =>
  Effect.ignoreCause(snapshots.forget(snapshot), { log: "Warn", message: "fs-algebra: a snapshot could not be forgotten" })

/** One that was interrupted may have been taken all the same, and nobody knows of it. */
const capture = (pair: Pair, tag: string, isKnown: (id: string) => boolean, unmask: Unmask) =>
  Effect.flatMap(DateTime.now, (since) => {
    const isLeft = (one: FilesystemSnapshot): boolean =>
      one.tag === tag && one.createdAt.epochMilliseconds >= since.epochMilliseconds && !isKnown(one.snapshotId)
    const cleared = Effect.flatMap(pair.snapshots.list, (all) =>
      Effect.forEach(all.filter(isLeft), (one) => forgetting(pair, one), { discard: true })
    )
    return Effect.onError(unmask(pair.snapshots.snapshot({ tag })), () => Effect.ignoreCause(cleared))
  })

/** A failure has changed nothing; who was interrupted, or died, may have been through with it. */
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
 * Runs the effect, and where it answers that nothing was brought back, the session is what it was, whatever the filesystem wrote into it
 * on the way there and back.
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

/** The caller holds both. */
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

/** One that is gone already need not be forgotten. */
const unlessGone = (error: SnapshotError): Effect.Effect<void, SnapshotError> =>
  error.reason === "unknown" ? Effect.void : Effect.fail(error)

export const make = (pair: Pair): Operations => {
  const { session, snapshots } = pair
  const all = new Map<string, Taken>()
  /** Of transactions that run. */
  const passing = new Set<string>()

  const isKnown = (id: string): boolean => [...all.values()].some(({ filesystem }) => filesystem.snapshotId === id)

  /** What the session knows of filesystem snapshots, with one more or less. */
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
    // Another one of that id may have been taken of the session alone.
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
