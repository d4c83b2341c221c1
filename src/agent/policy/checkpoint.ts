import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import { Snapshots } from "../../history/Snapshots.ts"
import { withExclusiveLock } from "../../history/replace.ts"
import type { Operations } from "../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import * as Result from "../ToolResult.ts"
import type { ToolResult } from "../ToolResult.ts"
import { asLabel, checkpointTag } from "../checkpointTag.ts"
import { type Invocation, layer } from "./core.ts"

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

/** Tests whether a call needs a checkpoint. Taking a snapshot changes no file and needs none. */
export const needsCheckpoint = ({ mutates, past }: Pick<Invocation, "mutates" | "past">): boolean => mutates && past !== "keeps"

const keeperOf = (snapshots: Operations, { callId, tool }: Invocation): StateKeeper<FilesystemSnapshot> => ({
  take: snapshots.snapshot({ tag: checkpointTag(tool, callId), tool, callId: asLabel(callId) }),
  // Forget the snapshot after the restore, since the tree now equals it.
  restoreState: (snapshot) => Effect.andThen(snapshots.restore(snapshot), Effect.ignore(snapshots.forget(snapshot))),
  describeState: ({ snapshotId }) => `snapshot ${snapshotId}`
})

/**
 * Takes a snapshot tagged `pre:<tool>:<call id>` before each tool that may change something. If the tool fails, dies or is
 * interrupted, the tree is restored and the snapshot removed. Other writers to the same filesystem wait, because the restore
 * would undo their writes.
 *
 * @category policies
 * @since 0.1.0
 */
export const checkpoint: Layer.Layer<never, never, Snapshots> = layer(
  Effect.map(Snapshots, (snapshots) => ({
    name: "checkpoint",
    around: <V, R>(invocation: Invocation, call: Effect.Effect<ToolResult<V>, never, R>) =>
      needsCheckpoint(invocation)
        ? withExclusiveLock(invocation.filesystem.port, rollBackOnFailure(keeperOf(snapshots, invocation), call))
        : call
  }))
)
