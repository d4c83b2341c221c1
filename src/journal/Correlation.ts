/**
 * Correlation ids: opaque strings that connect an answer with its request. The sender of the request creates the id.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { randomUUID } from "../runtime/node.ts"

/**
 * The generator of correlation ids. By default, an id is a random UUID as 32 hexadecimal digits. Tests can provide a generator
 * of predictable ids.
 *
 * @category references
 * @since 0.1.0
 */
export const Correlation: Context.Reference<Effect.Effect<string>> = Context.Reference<Effect.Effect<string>>(
  "fs-algebra/Correlation",
  { defaultValue: () => Effect.sync(() => randomUUID().replaceAll("-", "")) }
)

/**
 * Returns a new correlation id from the generator in the context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const generate: Effect.Effect<string> = Effect.withFiber((fiber) => fiber.getRef(Correlation))

/**
 * Returns a generator whose ids are the prefix followed by 1, 2, 3 and so on.
 *
 * @example
 * ```ts
 * const ids = Correlation.sequential("test-")
 * yield* Effect.provideService(Correlation.generate, Correlation.Correlation, ids) // => "test-1"
 * yield* Effect.provideService(Correlation.generate, Correlation.Correlation, ids) // => "test-2"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const sequential = (prefix = "req-"): Effect.Effect<string> => {
  let count = 0
  return Effect.sync(() => `${prefix}${++count}`)
}
