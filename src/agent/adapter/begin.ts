/**
 * Runs a call whose work another program does. Its handler waits for the reported outcome, so policies, the deadline and the
 * rollback apply as to every other call.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { Elsewhere } from "../Adapter.ts"
import { type AnyDefinition, type Answer, type Refused, refused } from "../definition.ts"
import * as Result from "../ToolResult.ts"

type CallResult = Result.ToolResult<unknown>

const asFailure = (result: CallResult): Result.ToolResult<never> => Result.error(result.message)

const interruptedResult = Result.error("The call was interrupted.")

/** Passes a defect on, and turns an interruption into a failed result, because the run ended that way. */
const resultOf = (exit: Exit.Exit<CallResult>): Effect.Effect<CallResult> =>
  Exit.isSuccess(exit)
    ? Effect.succeed(exit.value)
    : Cause.hasInterruptsOnly(exit.cause)
      ? Effect.succeed(interruptedResult)
      : Effect.failCause(exit.cause)

const asSentence = (text: string): string => {
  const words = text.trim()
  return words === "" ? "The tool has failed." : /[.!?]$/.test(words) ? words : `${words}.`
}

export const begin = (
  definition: AnyDefinition<unknown>,
  scope: Scope.Scope,
  invoke: (definition: AnyDefinition<unknown>) => Effect.Effect<CallResult>
): Effect.Effect<Elsewhere, Result.ToolResult<never>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const handlerStarted = yield* Deferred.make<void>()
      const outcome = yield* Deferred.make<Answer<unknown>, Refused>()
      const awaitOutcome = Effect.andThen(Deferred.succeed(handlerStarted, undefined), Deferred.await(outcome))
      const fiber = yield* Effect.forkIn(invoke({ ...definition, handle: () => awaitOutcome }), scope)
      const finalResult = Effect.flatMap(Fiber.await(fiber), resultOf)
      const refusal = Effect.flatMap(finalResult, (result) => Effect.fail(asFailure(result)))
      yield* restore(Effect.raceFirst(Deferred.await(handlerStarted), refusal)).pipe(
        Effect.onInterrupt(() => Fiber.interrupt(fiber))
      )
      return Object.freeze<Elsewhere>({
        end: ({ message = `${definition.name} is done.`, value } = {}) =>
          Effect.andThen(Deferred.succeed(outcome, { message, value }), finalResult),
        abort: (reason) =>
          Effect.andThen(
            Deferred.fail(outcome, refused(asSentence(reason), "Check the current files before you try again.")),
            Effect.map(finalResult, (result) =>
              result.success ? Result.error(`${definition.name} had already finished, so its changes stay.`) : asFailure(result)
            )
          )
      })
    })
  )
