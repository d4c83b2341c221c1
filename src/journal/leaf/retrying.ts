/** A file that somebody else has open is asked for again, a little later each time. */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

const isBusy = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "why" in error && error.why === "busy"

/** Milliseconds. */
const first = 50

/** Each pause is twice the one before, and all vary by a fifth either way. What succeeds at once pays for one handler. */
export const patiently = <A, E, R>(times: number, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const attempt = (left: number, pause: number): Effect.Effect<A, E, R> =>
    Effect.catch(effect, (error) =>
      left > 0 && isBusy(error)
        ? Effect.flatMap(Random.next, (random) => Effect.delay(attempt(left - 1, pause * 2), pause * (0.8 + 0.4 * random)))
        : Effect.fail(error)
    )
  return attempt(times, first)
}
