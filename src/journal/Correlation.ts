/**
 * Correlation ids: opaque strings by which an answer finds what it answers. Whoever asks makes the id.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { randomUUID } from "../runtime/node.ts"

/**
 * What makes them: a random UUID, as 32 hex digits. Tests provide their own.
 *
 * @since 0.1.0
 */
export const Correlation: Context.Reference<Effect.Effect<string>> = Context.Reference<Effect.Effect<string>>(
  "fs-algebra/Correlation",
  { defaultValue: () => Effect.sync(() => randomUUID().replaceAll("-", "")) }
)

/**
 * A new id for an entry that asks for something: a UUID, or what is in force instead.
 *
 * @since 0.1.0
 */
export const generate: Effect.Effect<string> = Effect.withFiber((fiber) => fiber.getRef(Correlation))

/**
 * The prefix and a number from 1, the same in every run.
 *
 * @since 0.1.0
 */
export const sequential = (prefix = "req-"): Effect.Effect<string> => {
  let count = 0
  return Effect.sync(() => `${prefix}${++count}`)
}
