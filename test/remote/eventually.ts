import * as Effect from "effect/Effect"

/** Repeats a check until it holds. The limit of the test ends a check that never holds. */
export const eventually = <E, R>(check: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.flatMap(check, (holds) => (holds ? Effect.void : Effect.andThen(Effect.sleep("5 millis"), eventually(check))))
