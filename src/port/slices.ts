/**
 * The interface of a session for components that keep state in its slices or outside them. Changes of slices are
 * synchronous, so they are atomic.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SessionError } from "../model/sessionError.ts"
import type { Slice } from "../model/Slice.ts"

export type Unmask = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * The wrapper of the slow part of a capture or a preparation. An interruption of this part is safe.
 *
 * The part is interruptible if the caller of the session is interruptible. If a rollback runs because of an interruption,
 * the part is uninterruptible.
 */
export const Unmasking: Context.Reference<Unmask> = Context.Reference<Unmask>("fs-algebra/port/Unmasking", {
  defaultValue: () => (effect) => effect
})

/** One value of a session, stored as the last item of a slice. */
export interface Cell<A> {
  readonly get: () => A | undefined
  /**
   * Replaces all items of the slice by this value. The session publishes the change, but does not call `changed` of
   * this cell.
   */
  readonly set: (value: A) => void
  readonly clear: () => void
}

export interface Kept {
  /**
   * Prepares a restore: does everything that can fail, without a visible change. Afterwards `commit` makes the restored
   * state visible and cannot fail, or `discard` undoes the preparation.
   *
   * `prepare` can run any number of times; the captured state does not change.
   */
  readonly prepare: Effect.Effect<Prepared, SessionError>
  /** Frees the captured state. Must run after the last use of the state. */
  readonly release: Effect.Effect<void>
}

export interface Prepared {
  readonly commit: Effect.Effect<void>
  readonly discard: Effect.Effect<void>
}

export interface Participant {
  readonly name: string
  /**
   * Wraps every capture, restore, reset, clone and save, so that no other fiber changes this component's state
   * meanwhile.
   *
   * Code that locks the component while a caller's effect runs must use the session's `exclusively`.
   */
  readonly exclusively?: (<A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
  /** Captures the state outside the slices. @default nothing */
  readonly capture?: Effect.Effect<Kept, SessionError> | undefined
  /** Runs after a reset of the session, when its slices hold their initial items. */
  readonly reset?: Effect.Effect<void> | undefined
}

export interface Slices {
  readonly id: string
  /**
   * Returns a cell for the last item of the slice. Installs the slice if necessary. Fails with SessionError
   * `duplicateSlice` if a different slice has the same name.
   *
   * `changed` runs synchronously when anything other than the cell changes the last item, such as a rollback or a reset.
   */
  readonly cell: <A, E>(
    slice: Slice<A, E>,
    changed: (latest: A | undefined) => void
  ) => Effect.Effect<Cell<A>, SessionError, Scope.Scope>
  /**
   * Runs the effect while no other fiber can change the participants. Calls inside the effect are not blocked.
   *
   * All callers lock the session first and the participants second, so a deadlock is impossible.
   */
  readonly exclusively: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Adds a participant for the scope. Fails with SessionError `invalid` if the name is taken. */
  readonly addParticipant: (participant: Participant) => Effect.Effect<void, SessionError, Scope.Scope>
}
