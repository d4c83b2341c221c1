/** Runs effects for a program that expects promises. */
import type * as AsyncHooks from "node:async_hooks"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Tracer from "effect/Tracer"
import { builtin, isNode } from "../runtime/node.ts"

/**
 * Runs an effect and returns its value. Throws its error. If the signal aborts, interrupts the effect, waits for the release
 * of its resources and throws the reason of the signal.
 */
export type Run = <A, E>(effect: Effect.Effect<A, E>, signal?: AbortSignal | null) => Promise<A>

/** The surrounding context without its parent span. The foreign program outlives the span. */
const surroundingContext = Effect.map(Effect.context<never>(), Context.omit(Tracer.ParentSpan)) as Effect.Effect<
  Context.Context<never>
>

/**
 * Captures the surrounding services, and returns a function that runs effects with them.
 *
 * The effects run in the asynchronous context of this call, not in that of the foreign program. So the effects also work in
 * a program that blocks timers in its own asynchronous context, as just-bash does.
 */
export const runner: Effect.Effect<Run> = Effect.map(surroundingContext, (services): Run => {
  const outside: <A>(start: () => A) => A = isNode
    ? builtin<typeof AsyncHooks>("node:async_hooks").AsyncLocalStorage.snapshot()
    : (start) => start()
  const runExit = Effect.runPromiseExitWith(services)
  return async (effect, signal) => {
    signal?.throwIfAborted()
    const exit = await outside(() => runExit(effect, signal ? { signal } : undefined))
    if (Exit.isSuccess(exit)) return exit.value
    if (signal?.aborted === true && Cause.hasInterruptsOnly(exit.cause)) throw signal.reason
    throw Cause.squash(exit.cause)
  }
})
