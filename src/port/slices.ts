/**
 * What a session is to those that keep their state in it, or beside it. It is synchronous where a change of state has to be whole.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SessionError } from "../model/sessionError.ts"
import type { Slice } from "../model/Slice.ts"

/** Makes an effect look for interruption, where it is safe to end. */
export type Unmask = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * What a capture or a preparation puts around the part of it that takes its time and can be ended: it is interrupted there where the
 * session's caller may be, and not where he may not be, as when something is taken back because he was interrupted.
 */
export const Unmasking: Context.Reference<Unmask> = Context.Reference<Unmask>("fs-algebra/port/Unmasking", {
  defaultValue: () => (effect) => effect
})

/** One value of a session, which is the last item of a slice. */
export interface Cell<A> {
  readonly get: () => A | undefined
  /** The slice then holds this item alone. The change is published; the holder of the cell is not told. */
  readonly set: (value: A) => void
  /** The slice then holds none, in the same way. */
  readonly clear: () => void
}

/** What was captured of something outside the slices. */
export interface Kept {
  /**
   * Everything that can fail, without a visible change; then `commit` makes it visible, and cannot fail, or `discard` undoes it. Can be
   * done any number of times: what is kept stays as it is.
   */
  readonly prepare: Effect.Effect<Prepared, SessionError>
  /** When nobody can ask for it any more. */
  readonly release: Effect.Effect<void>
}

export interface Prepared {
  readonly commit: Effect.Effect<void>
  readonly discard: Effect.Effect<void>
}

/** Something that is taken and brought back with the session. */
export interface Participant {
  readonly name: string
  /**
   * Around all that takes, brings back, resets, clones, saves: what this keeps is changed by nobody else meanwhile. Whoever holds it
   * otherwise, for as long as an effect of somebody else's runs, comes by the `exclusively` of the session.
   */
  readonly exclusively?: (<A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
  /** What it keeps outside the slices. @default nothing */
  readonly capture?: Effect.Effect<Kept, SessionError> | undefined
  /** The session has been reset: its slices hold what they held at first. */
  readonly reset?: Effect.Effect<void> | undefined
}

export interface Slices {
  readonly id: string
  /**
   * Installs the slice unless it is. `changed` is called, in the same step, when the slice gets another last item in any other way than
   * by this cell: by a rollback, a reset, a `set`. Fails with SessionError `duplicateSlice`.
   */
  readonly cell: <A, E>(
    slice: Slice<A, E>,
    changed: (latest: A | undefined) => void
  ) => Effect.Effect<Cell<A>, SessionError, Scope.Scope>
  /**
   * Runs the effect while nobody else changes what takes part; its own calls go through. The session is held first and its participants
   * after it, by everybody, so that nobody waits for who waits for him.
   */
  readonly exclusively: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Until the scope ends. Fails with SessionError `invalid` for a name that takes part already. */
  readonly join: (participant: Participant) => Effect.Effect<void, SessionError, Scope.Scope>
}
