import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import { Snapshots } from "../../history/snapshots/tag.ts"
import { withExclusiveLock } from "../../history/replace.ts"
import type { Operations } from "../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import * as Result from "../ToolResult.ts"
import type { ToolResult } from "../ToolResult.ts"
import { type Invocation, layer } from "./core.ts"

const maxIdLength = 200

/** Makes the id of a call fit on one line. Model providers may send any text as an id. */
export const asLabel = (callId: string): string =>
  // oxlint-disable-next-line no-control-regex
  callId
    .toWellFormed()
    .replace(/[\u0000-\u001f\u007f]/g, "?")
    .slice(0, maxIdLength)
    .toWellFormed()

export const checkpointTag = (tool: string, callId: string): string => `pre:${tool}:${asLabel(callId)}`

interface Failed {
  readonly detail: string
}

export interface StateKeeper<T> {
  readonly take: Effect.Effect<T, Failed>
  readonly restoreState: (savedState: T) => Effect.Effect<void, Failed>
  readonly describeState: (savedState: T) => string
}

const saveFailed = ({ detail }: Failed) =>
  Result.error(
    `The call was not run, because no checkpoint could be taken: ${detail}. Tell the user that changes are not safe now.`
  )

const restoreFailed = (message: string, { detail }: Failed, name: string) =>
  Result.error(
    `${message} The changes made before the failure could not be undone: ${detail}. Read the files again; ${name} contains their earlier state.`
  )

/** Runs the work in a new fiber. The current fiber may be interrupted already, and the work may check for interruption. */
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

export const needsCheckpoint = ({ mutates, past }: Pick<Invocation, "mutates" | "past">): boolean => mutates && past !== "keeps"

const keeperOf = (snapshots: Operations, { callId, tool }: Invocation): StateKeeper<FilesystemSnapshot> => ({
  take: snapshots.snapshot({ tag: checkpointTag(tool, callId), tool, callId: asLabel(callId) }),
  restoreState: (snapshot) => Effect.andThen(snapshots.restore(snapshot), Effect.ignore(snapshots.forget(snapshot))),
  describeState: ({ snapshotId }) => `snapshot ${snapshotId}`
})

/**
 * Takes a snapshot tagged `pre:<tool>:<call id>` before each tool that may change something. If the tool fails, dies or is
 * interrupted, the tree is restored and the snapshot removed. Other writers of this process to the same filesystem wait, because
 * the restore would undo their writes.
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
