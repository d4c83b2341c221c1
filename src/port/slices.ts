/**
 * The interface of a session for state that lives in it or beside it. Changes of state are synchronous, so they are
 * atomic.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SessionError } from "../model/sessionError.ts"
import type { Slice } from "../model/Slice.ts"

export type Unmask = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * Wraps the slow part of a capture or preparation, at which an interruption is safe.
 *
 * The part is interruptible if the session's caller is. During a rollback after an interruption it stays
 * uninterruptible.
 */
export const Unmasking: Context.Reference<Unmask> = Context.Reference<Unmask>("fs-algebra/port/Unmasking", {
  defaultValue: () => (effect) => effect
})

/** One value of a session, stored as the last item of a slice. */
export interface Cell<A> {
  readonly get: () => A | undefined
  /**
   * Replaces all items of the slice by this one. The change is published, but the owner of the cell gets no callback.
   */
  readonly set: (value: A) => void
  readonly clear: () => void
}

export interface Kept {
  /**
   * Does everything that can fail, without a visible change. Then `commit` makes it visible and cannot fail, or
   * `discard` undoes it.
   *
   * It can run any number of times; the captured state does not change.
   */
  readonly prepare: Effect.Effect<Prepared, SessionError>
  /** Frees the captured state, when it can no longer be requested. */
  readonly release: Effect.Effect<void>
}

export interface Prepared {
  readonly commit: Effect.Effect<void>
  readonly discard: Effect.Effect<void>
}

export interface Participant {
  readonly name: string
  /**
   * Wraps every capture, restore, reset, clone and save: no other fiber may change this component's state meanwhile.
   *
   * Code that holds the component while a caller's effect runs must use the session's `exclusively`.
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
   * Installs the slice unless it is installed.
   *
   * `changed` runs synchronously when the last item changes by anything but this cell: a rollback, a reset, a `set`.
   * Fails with SessionError `duplicateSlice`.
   */
  readonly cell: <A, E>(
    slice: Slice<A, E>,
    changed: (latest: A | undefined) => void
  ) => Effect.Effect<Cell<A>, SessionError, Scope.Scope>
  /**
   * Runs the effect while no other fiber changes the participants; its own calls go through.
   *
   * All callers lock the session first and the participants second, so a deadlock is impossible.
   */
  readonly exclusively: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Adds a participant for the scope. Fails with SessionError `invalid` if the name is taken. */
  readonly addParticipant: (participant: Participant) => Effect.Effect<void, SessionError, Scope.Scope>
}
