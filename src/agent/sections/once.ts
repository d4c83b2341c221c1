/**
 * Makes a value at its first use and keeps it until the scope ends. A failed or interrupted attempt leaves nothing behind, and
 * the next use tries again.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { Unavailable } from "../../model/FsError.ts"
import { root } from "../../model/FsPath.ts"

export const scopeEnded = new Unavailable({ operation: "Section", path: root, detail: "the scope of its section has ended" })

export const failIfClosed =
  (scope: Scope.Scope) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Unavailable, R> =>
    Effect.suspend((): Effect.Effect<A, E | Unavailable, R> =>
      scope.state._tag === "Closed" ? Effect.fail(scopeEnded) : effect
    )

/** Makes the value in the context of this call, not in that of the first use. */
export const memoized = <A, E, R>(
  make: Effect.Effect<A, E, R>
): Effect.Effect<Effect.Effect<A, E | Unavailable>, never, R | Scope.Scope> =>
  Effect.contextWith((context: Context.Context<R | Scope.Scope>) => {
    const outer = Context.get(context as Context.Context<Scope.Scope>, Scope.Scope)
    const lock = Semaphore.makeUnsafe(1)
    let kept: { readonly value: A } | undefined

    const makeValue = Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const own = yield* Scope.fork(outer)
        const value = yield* restore(Scope.provide(make, own)).pipe(
          Effect.onError((cause) => Scope.close(own, Exit.failCause(cause)))
        )
        kept = { value }
        return value
      })
    ).pipe(Effect.provideContext(context)) as Effect.Effect<A, E>

    const cachedOrMade = Effect.suspend(() => (kept === undefined ? makeValue : Effect.succeed(kept.value)))
    return Effect.succeed(
      failIfClosed(outer)(
        Effect.suspend(() => (kept === undefined ? lock.withPermit(failIfClosed(outer)(cachedOrMade)) : cachedOrMade))
      )
    )
  })
