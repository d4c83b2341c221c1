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

type Called = Result.ToolResult<unknown>

const failed = (result: Called): Result.ToolResult<never> => Result.error(result.message)

const interrupted = Result.error("The call was interrupted.")

/** Passes a defect on, and turns an interruption into a failed result, because the run ended that way. */
const resultOf = (exit: Exit.Exit<Called>): Effect.Effect<Called> =>
  Exit.isSuccess(exit)
    ? Effect.succeed(exit.value)
    : Cause.hasInterruptsOnly(exit.cause)
      ? Effect.succeed(interrupted)
      : Effect.failCause(exit.cause)

const sentence = (text: string): string => {
  const words = text.trim()
  return words === "" ? "The tool has failed." : /[.!?]$/.test(words) ? words : `${words}.`
}

export const begin = (
  definition: AnyDefinition<unknown>,
  scope: Scope.Scope,
  invoke: (definition: AnyDefinition<unknown>) => Effect.Effect<Called>
): Effect.Effect<Elsewhere, Result.ToolResult<never>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const outcome = yield* Deferred.make<Answer<unknown>, Refused>()
      const waiting = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(outcome))
      const fiber = yield* Effect.forkIn(invoke({ ...definition, handle: () => waiting }), scope)
      const ended = Effect.flatMap(Fiber.await(fiber), resultOf)
      const refusal = Effect.flatMap(ended, (result) => Effect.fail(failed(result)))
      yield* restore(Effect.raceFirst(Deferred.await(begun), refusal)).pipe(Effect.onInterrupt(() => Fiber.interrupt(fiber)))
      return Object.freeze<Elsewhere>({
        end: ({ message = `${definition.name} is done.`, value } = {}) =>
          Effect.andThen(Deferred.succeed(outcome, { message, value }), ended),
        abort: (reason) =>
          Effect.andThen(
            Deferred.fail(outcome, refused(sentence(reason), "Check the current files before you try again.")),
            Effect.map(ended, (result) =>
              result.success ? Result.error(`${definition.name} had already finished, so its changes stay.`) : failed(result)
            )
          )
      })
    })
  )
