/** Runs effects for a program that expects promises. */
import type * as AsyncHooks from "node:async_hooks"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { builtin, isNode } from "../runtime/node.ts"

/** Runs an effect and returns its value. Throws its error. If the signal aborts, interrupts the effect. */
export type Run = <A>(effect: Effect.Effect<A, Error>, signal?: AbortSignal) => Promise<A>

/**
 * Returns a function that runs effects with the clock, the tracer and the other services of a context.
 *
 * The effects run in the asynchronous context of this call, not in that of the foreign program. So they also work in a
 * program that blocks timers in its own asynchronous context, as just-bash does.
 */
export const makeRun = (context: Context.Context<never>): Run => {
  const outside: <A>(start: () => A) => A = isNode
    ? builtin<typeof AsyncHooks>("node:async_hooks").AsyncLocalStorage.snapshot()
    : (start) => start()
  const runExit = Effect.runPromiseExitWith(context)
  return async (effect, signal) => {
    const exit = await outside(() => runExit(effect, signal === undefined ? undefined : { signal }))
    if (Exit.isSuccess(exit)) return exit.value
    throw Cause.squash(exit.cause)
  }
}
