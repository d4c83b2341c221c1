/**
 * Variants of the Effect combinators that avoid the Effect runtime if an effect has already succeeded.
 *
 * Most steps in memory complete immediately, and a runtime frame around each step would cost more than the step itself.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"

export const flatMap = <A, E, R, B, E2, R2>(
  self: Effect.Effect<A, E, R>,
  f: (value: A) => Effect.Effect<B, E2, R2>
): Effect.Effect<B, E | E2, R | R2> =>
  Exit.isExit(self) && Exit.isSuccess(self) ? f(self.value as A) : Effect.flatMap(self, f)

export const map = <A, E, R, B>(self: Effect.Effect<A, E, R>, f: (value: A) => B): Effect.Effect<B, E, R> =>
  Exit.isExit(self) && Exit.isSuccess(self) ? Effect.succeed(f(self.value as A)) : Effect.map(self, f)

export const answered = <A, E, R, E2, R2>(
  self: Effect.Effect<Option.Option<A>, E, R>,
  derived: () => Effect.Effect<A, E2, R2>
): Effect.Effect<A, E | E2, R | R2> =>
  flatMap(self, (answer): Effect.Effect<A, E2, R2> => (Option.isSome(answer) ? Effect.succeed(answer.value) : derived()))

const catch_ = <A, E, R, B, E2, R2>(
  self: Effect.Effect<A, E, R>,
  f: (error: E) => Effect.Effect<B, E2, R2>
): Effect.Effect<A | B, E2, R | R2> =>
  Exit.isExit(self) && Exit.isSuccess(self) ? (self as Exit.Exit<A>) : Effect.catch(self, f)

/**
 * Calls `f` for one item after another while the effects have already succeeded. Runs the next effect alone, and all others
 * `concurrency` at a time.
 *
 * Never calls `f` twice for an item, because a second call would leak the resources of the first call.
 */
export const forEach = <A, B, E, R>(
  items: ReadonlyArray<A>,
  f: (item: A) => Effect.Effect<B, E, R>,
  concurrency: number
): Effect.Effect<Array<B>, E, R> =>
  Effect.suspend(() => {
    const out: Array<B> = []
    for (let at = 0; at < items.length; at++) {
      const made = f(items[at]!)
      if (Exit.isExit(made) && Exit.isSuccess(made)) out.push(made.value as B)
      else {
        return Effect.flatMap(made, (first) =>
          Effect.map(
            Effect.forEach(items.slice(at + 1), (item) => Effect.suspend(() => f(item)), { concurrency }),
            (rest) => [...out, first, ...rest]
          )
        )
      }
    }
    return Effect.succeed(out)
  })

export { catch_ as catch }
