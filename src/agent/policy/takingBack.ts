import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "../ToolResult.ts"

interface Failed {
  readonly detail: string
}

export interface StateKeeper<T> {
  readonly take: Effect.Effect<T, Failed>
  readonly restoreState: (savedState: T) => Effect.Effect<void, Failed>
  /** Returns the name of the kept state, such as "snapshot 1", for the case that the restore fails. */
  readonly describeState: (savedState: T) => string
}

const saveFailed = ({ detail }: Failed) =>
  Result.error(
    `No checkpoint could be taken, and nothing was changed: ${detail}. Tell the user; nothing can be changed safely.`
  )

const restoreFailed = (message: string, { detail }: Failed, name: string) =>
  Result.error(
    `${message} The changes made before the failure could not be undone: ${detail}. Read the files again; ${name} holds their earlier state.`
  )

/** Runs the work in a fiber of its own. This fiber may be interrupted already, and the work may check for interruption. */
const inOwnFiber = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.flatMap(Effect.forkChild(work), Fiber.join)

export const rollBackOnFailure = <T, V, R>(
  { restoreState, describeState, take }: StateKeeper<T>,
  call: Effect.Effect<Result.ToolResult<V>, never, R>
): Effect.Effect<Result.ToolResult<V>, never, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.matchEffect(restore(take), {
      onFailure: (error) => Effect.succeed(saveFailed(error)),
      onSuccess: (savedState) =>
        Effect.flatMap(Effect.exit(restore(call)), (exit): Effect.Effect<Result.ToolResult<V>, never, R> => {
          if (Exit.isSuccess(exit) && exit.value.success) return Effect.succeed(exit.value)
          const restored = inOwnFiber(restoreState(savedState))
          return Exit.isSuccess(exit)
            ? Effect.match(restored, {
                onFailure: (error) => restoreFailed(exit.value.message, error, describeState(savedState)),
                onSuccess: () => exit.value
              })
            : Effect.matchEffect(restored, {
                onFailure: (error) => Effect.failCause(Cause.combine(exit.cause, Cause.die(error))),
                onSuccess: () => Effect.failCause(exit.cause)
              })
        })
    })
  )
