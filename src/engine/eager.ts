/**
 * In memory most steps are done the moment they are asked for, and a frame of the runtime around each would cost more than the step.
 * Where an effect is a finished success already, these go on with its value at once.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

export const flatMap = <A, E, R, B, E2, R2>(
  self: Effect.Effect<A, E, R>,
  f: (value: A) => Effect.Effect<B, E2, R2>
): Effect.Effect<B, E | E2, R | R2> =>
  Exit.isExit(self) && Exit.isSuccess(self) ? f(self.value as A) : Effect.flatMap(self, f)

export const map = <A, E, R, B>(self: Effect.Effect<A, E, R>, f: (value: A) => B): Effect.Effect<B, E, R> =>
  Exit.isExit(self) && Exit.isSuccess(self) ? Effect.succeed(f(self.value as A)) : Effect.map(self, f)

/** Only what may still fail is caught. */
const catch_ = <A, E, R, B, E2, R2>(
  self: Effect.Effect<A, E, R>,
  f: (error: E) => Effect.Effect<B, E2, R2>
): Effect.Effect<A | B, E2, R | R2> =>
  Exit.isExit(self) && Exit.isSuccess(self) ? (self as Exit.Exit<A>) : Effect.catch(self, f)

export { catch_ as catch }
