/**
 * Runs work concurrently and returns the results in order.
 *
 * Unlike the concurrent stream operators, an interruption waits for all started work, so that the resources it uses can
 * be closed safely.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"

/**
 * Runs the values of `next` with at most `most` in progress, until `next` fails or returns `undefined`. The returned
 * effect gives the next output in order on each run, and finally that end.
 */
export const runInOrder = <A, B, E>(
  next: Effect.Effect<A | undefined, E>,
  run: (value: A) => Effect.Effect<B, E>,
  concurrency: number
): Effect.Effect<Effect.Effect<B | undefined, E>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.map(Scope.make("parallel"), (scope) => ({ scope, running: [] as Array<Fiber.Fiber<B, E>> })),
      ({ scope }) => Scope.close(scope, Exit.void)
    ),
    ({ running, scope }) => {
      let end: Effect.Effect<undefined, E> | undefined
      const nextOutput: Effect.Effect<B | undefined, E> = Effect.suspend(() => {
        const first = running[0]
        const isReady = first?.pollUnsafe() !== undefined
        if (first !== undefined && (isReady || end !== undefined || running.length === concurrency)) {
          running.shift()
          return Fiber.join(first)
        }
        if (end !== undefined) return end
        return Effect.flatMap(Effect.result(next), (value) => {
          if (Result.isFailure(value) || value.success === undefined) {
            end = Result.isFailure(value) ? Effect.fail(value.failure) : Effect.succeed(undefined)
            return nextOutput
          }
          const started = Effect.forkIn(run(value.success), scope, { startImmediately: true })
          return Effect.flatMap(started, (fiber) => {
            running.push(fiber)
            return nextOutput
          })
        })
      })
      return nextOutput
    }
  )
