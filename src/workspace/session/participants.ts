/**
 * What takes part in a session: it is held, captured, brought back and reset with the slices. What can fail comes first and is undone
 * where it fails; what is left then cannot fail.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { SessionError } from "../../model/sessionError.ts"
import { type Kept, type Participant, type Prepared, type Unmask, Unmasking } from "../../port/slices.ts"

/** What was captured of whom. */
export interface Share {
  readonly participant: Participant
  readonly kept: Kept
}

/** Runs all, whatever becomes of each; then dies of what any of them died of. */
export const runAll = (effects: ReadonlyArray<Effect.Effect<void>>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const reasons: Array<Cause.Reason<never>> = []
    for (const effect of effects) {
      const exit = yield* Effect.exit(effect)
      if (Exit.isFailure(exit)) reasons.push(...exit.cause.reasons)
    }
    if (reasons.length > 0) return yield* Effect.failCause(Cause.fromReasons(reasons))
  })

/** Who joins while another one is waited for is held as well. The caller holds the session. */
export const holding = <A, E, R>(
  participants: ReadonlyMap<string, Participant>,
  effect: Effect.Effect<A, E, R>,
  held: ReadonlyArray<Participant> = []
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const next = [...participants.values()].find((one) => !held.includes(one))
    if (next === undefined) return effect
    const inner = holding(participants, effect, [...held, next])
    return next.exclusively?.(inner) ?? inner
  })

/**
 * One after the other, each as an acquisition is: it is not interrupted but where it says that it may be, and where one of them fails, or
 * between them somebody interrupts, those before it are undone.
 */
const allOrNone = Effect.fnUntraced(function* <A, B>(
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
  allOrNone(
    participants.filter(({ capture }) => capture !== undefined),
    (participant) => Effect.map(participant.capture!, (kept): Share => ({ participant, kept })),
    ({ kept }) => kept.release,
    unmask
  )

export const prepareAll = (
  shares: ReadonlyArray<Share>,
  unmask: Unmask
): Effect.Effect<ReadonlyArray<Prepared>, SessionError> =>
  allOrNone(
    shares,
    ({ kept }) => kept.prepare,
    ({ discard }) => discard,
    unmask
  )

export const releaseAll = (shares: ReadonlyArray<Share>): Effect.Effect<void> => runAll(shares.map(({ kept }) => kept.release))

export const resetAll = (participants: ReadonlyArray<Participant>): Effect.Effect<void> =>
  runAll(participants.map(({ reset }) => reset ?? Effect.void))
