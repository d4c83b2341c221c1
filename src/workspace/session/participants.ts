/** Steps that can fail come first and are undone on failure. The remaining steps cannot fail. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { SessionError } from "../../model/sessionError.ts"
import { type Kept, type Participant, type Prepared, type Unmask, Unmasking } from "../../port/slices.ts"

export interface Share {
  readonly participant: Participant
  readonly kept: Kept
}

/** Runs all effects even if some die, and then dies with all of their causes. */
export const runAll = (effects: ReadonlyArray<Effect.Effect<void>>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const reasons: Array<Cause.Reason<never>> = []
    for (const effect of effects) {
      const exit = yield* Effect.exit(effect)
      if (Exit.isFailure(exit)) reasons.push(...exit.cause.reasons)
    }
    if (reasons.length > 0) return yield* Effect.failCause(Cause.fromReasons(reasons))
  })

/** Holds all participants while the effect runs, including those that join during the wait. The caller holds the session. */
export const holdAll = <A, E, R>(
  participants: ReadonlyMap<string, Participant>,
  effect: Effect.Effect<A, E, R>,
  held: ReadonlyArray<Participant> = []
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const next = [...participants.values()].find((one) => !held.includes(one))
    if (next === undefined) return effect
    const inner = holdAll(participants, effect, [...held, next])
    return next.exclusively?.(inner) ?? inner
  })

/**
 * Acquires all items in order. Each step is uninterruptible, except where it allows interruption. On a failure, or an interruption between
 * the steps, undoes the earlier steps.
 */
const acquireAll = Effect.fnUntraced(function* <A, B>(
  items: ReadonlyArray<A>,
  acquire: (item: A) => Effect.Effect<B, SessionError>,
  undo: (acquired: B) => Effect.Effect<void>,
  unmask: Unmask
): Effect.fn.Return<ReadonlyArray<B>, SessionError> {
  const acquired: Array<B> = []
  for (const item of items) {
    const step = Effect.provideService(acquire(item), Unmasking, unmask)
    const exit = yield* Effect.exit(Effect.andThen(unmask(Effect.void), step))
    if (Exit.isFailure(exit)) {
      yield* runAll(acquired.reverse().map(undo))
      return yield* Effect.failCause(exit.cause)
    }
    acquired.push(exit.value)
  }
  return acquired
})

export const captureAll = (
  participants: ReadonlyArray<Participant>,
  unmask: Unmask
): Effect.Effect<ReadonlyArray<Share>, SessionError> =>
  acquireAll(
    participants.filter(({ capture }) => capture !== undefined),
    (participant) => Effect.map(participant.capture!, (kept): Share => ({ participant, kept })),
    ({ kept }) => kept.release,
    unmask
  )

export const prepareAll = (
  shares: ReadonlyArray<Share>,
  unmask: Unmask
): Effect.Effect<ReadonlyArray<Prepared>, SessionError> =>
  acquireAll(
    shares,
    ({ kept }) => kept.prepare,
    ({ discard }) => discard,
    unmask
  )

export const releaseAll = (shares: ReadonlyArray<Share>): Effect.Effect<void> => runAll(shares.map(({ kept }) => kept.release))

export const resetAll = (participants: ReadonlyArray<Participant>): Effect.Effect<void> =>
  runAll(participants.map(({ reset }) => reset ?? Effect.void))
