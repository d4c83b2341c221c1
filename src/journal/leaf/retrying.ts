import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

const isBusy = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "why" in error && error.why === "busy"

const firstDelayMillis = 50

/**
 * Retries while another program has the file open. Each delay is twice the one before, varied by up to a fifth. A first attempt that
 * succeeds costs only one error handler.
 */
export const retryWhileBusy = <A, E, R>(maxRetries: number, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const attempt = (retriesLeft: number, delayMillis: number): Effect.Effect<A, E, R> =>
    Effect.catch(effect, (error) =>
      retriesLeft > 0 && isBusy(error)
        ? Effect.flatMap(Random.next, (random) =>
            Effect.delay(attempt(retriesLeft - 1, delayMillis * 2), delayMillis * (0.8 + 0.4 * random))
          )
        : Effect.fail(error)
    )
  return attempt(maxRetries, firstDelayMillis)
}
