/** Runs the steps of a search concurrently, and returns their outputs in order. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"

const isReady = <B, E>(output: Fiber.Fiber<B, E> | Effect.Effect<B, E>): boolean =>
  Effect.isEffect(output) || output.pollUnsafe() !== undefined

/**
 * Runs `run` on the values of `next`, at most `concurrency` at a time, until `next` fails or returns `undefined`.
 *
 * Each run of the returned effect gives the next output in order, and after the last output the failure or `undefined`.
 * Unlike the concurrent stream operators, an interruption waits for all started work. So the resources that the work
 * uses can be closed safely.
 */
export const runInOrder = <A, B, E>(
  next: Effect.Effect<A | undefined, E>,
  run: (value: A) => Effect.Effect<B, E>,
  concurrency: number
): Effect.Effect<Effect.Effect<B | undefined, E>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.map(Scope.make("parallel"), (scope) => ({ scope, running: [] as Array<Fiber.Fiber<B, E> | Effect.Effect<B, E>> })),
      ({ scope }) => Scope.close(scope, Exit.void)
    ),
    ({ running, scope }) => {
      let end: Effect.Effect<undefined, E> | undefined
      const nextOutput: Effect.Effect<B | undefined, E> = Effect.suspend(() => {
        const first = running[0]
        if (first !== undefined && (isReady(first) || end !== undefined || running.length === concurrency)) {
          running.shift()
          return Effect.isEffect(first) ? first : Fiber.join(first)
        }
        if (end !== undefined) return end
        return Effect.flatMap(Effect.result(next), (value) => {
          if (Result.isFailure(value) || value.success === undefined) {
            end = Result.isFailure(value) ? Effect.fail(value.failure) : Effect.succeed(undefined)
            return nextOutput
          }
          const output = run(value.success)
          // Most outputs are ready, and a fiber for each would cost more than the output itself.
          if (Exit.isExit(output)) {
            running.push(output)
            return nextOutput
          }
          const started = Effect.forkIn(output, scope, { startImmediately: true })
          return Effect.flatMap(started, (fiber) => {
            running.push(fiber)
            return nextOutput
          })
        })
      })
      return nextOutput
    }
  )
