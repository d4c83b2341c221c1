/**
 * Work side by side, answered in order. Unlike the stream operator of that kind it waits, when it is interrupted, for the end of all
 * that it has started, so that nothing of it is left when what it works on is closed.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"

/** Runs what `next` brings until that is `undefined` or fails, `most` at a time. The answer of one after another, then that end. */
export const inOrder = <A, B, E>(
  next: Effect.Effect<A | undefined, E>,
  run: (value: A) => Effect.Effect<B, E>,
  most: number
): Effect.Effect<Effect.Effect<B | undefined, E>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.map(Scope.make("parallel"), (scope) => ({ scope, running: [] as Array<Fiber.Fiber<B, E>> })),
      ({ scope }) => Scope.close(scope, Exit.void)
    ),
    ({ running, scope }) => {
      /** What comes after all that was started. */
      let end: Effect.Effect<undefined, E> | undefined
      const answer: Effect.Effect<B | undefined, E> = Effect.suspend(() => {
        const first = running[0]
        const isReady = first?.pollUnsafe() !== undefined
        if (first !== undefined && (isReady || end !== undefined || running.length === most)) {
          running.shift()
          return Fiber.join(first)
        }
        if (end !== undefined) return end
        return Effect.flatMap(Effect.result(next), (value) => {
          if (Result.isFailure(value) || value.success === undefined) {
            end = Result.isFailure(value) ? Effect.fail(value.failure) : Effect.succeed(undefined)
            return answer
          }
          const started = Effect.forkIn(run(value.success), scope, { startImmediately: true })
          return Effect.flatMap(started, (fiber) => {
            running.push(fiber)
            return answer
          })
        })
      })
      return answer
    }
  )
