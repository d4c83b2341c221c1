import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "../ToolResult.ts"

interface Failed {
  readonly detail: string
}

export interface Keeping<T> {
  readonly take: Effect.Effect<T, Failed>
  readonly back: (taken: T) => Effect.Effect<void, Failed>
  /** Returns the name of the kept state, such as "snapshot 1", for the case that the restore fails. */
  readonly called: (taken: T) => string
}

const notTaken = ({ detail }: Failed) =>
  Result.error(
    `No checkpoint could be taken, and nothing was changed: ${detail}. Tell the user; nothing can be changed safely.`
  )

const notTakenBack = (message: string, { detail }: Failed, name: string) =>
  Result.error(
    `${message} The changes made before the failure could not be undone: ${detail}. Read the files again; ${name} holds their earlier state.`
  )

/** Runs the work in a fiber of its own. This fiber may be interrupted already, and the work may check for interruption. */
const apart = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.flatMap(Effect.forkChild(work), Fiber.join)

export const takingBack = <T, V, R>(
  { back, called, take }: Keeping<T>,
  call: Effect.Effect<Result.ToolResult<V>, never, R>
): Effect.Effect<Result.ToolResult<V>, never, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.matchEffect(restore(take), {
      onFailure: (error) => Effect.succeed(notTaken(error)),
      onSuccess: (taken) =>
        Effect.flatMap(Effect.exit(restore(call)), (exit): Effect.Effect<Result.ToolResult<V>, never, R> => {
          if (Exit.isSuccess(exit) && exit.value.success) return Effect.succeed(exit.value)
          const isBack = apart(back(taken))
          return Exit.isSuccess(exit)
            ? Effect.match(isBack, {
                onFailure: (error) => notTakenBack(exit.value.message, error, called(taken)),
                onSuccess: () => exit.value
              })
            : Effect.matchEffect(isBack, {
                onFailure: (error) => Effect.failCause(Cause.combine(exit.cause, Cause.die(error))),
                onSuccess: () => Effect.failCause(exit.cause)
              })
        })
    })
  )
