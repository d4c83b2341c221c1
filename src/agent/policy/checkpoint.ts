/**
 * A snapshot before each tool that may change something, and the tree as it was when the tool fails, dies or is interrupted. Nobody else
 * writes meanwhile, or what they wrote would be taken back too.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import type { SnapshotError, SnapshotRestoreError } from "../../history/errors.ts"
import { alone } from "../../history/replace.ts"
import { Snapshots } from "../../history/Snapshots.ts"
import type { Operations } from "../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import { checkpointTag, labelled } from "../checkpointTag.ts"
import * as Result from "../ToolResult.ts"
import { type Invocation, layer } from "./core.ts"

const taken = (snapshots: Operations, invocation: Invocation): Effect.Effect<FilesystemSnapshot, SnapshotError> => {
  const { callId, tool } = invocation
  return snapshots.snapshot({ tag: checkpointTag(tool, callId), tool, callId: labelled(callId) })
}

/** Gone again where it holds nothing that is not there. */
const takenBack = (snapshots: Operations, snapshot: FilesystemSnapshot): Effect.Effect<void, SnapshotRestoreError> =>
  Effect.andThen(snapshots.restore(snapshot), Effect.ignore(snapshots.forget(snapshot)))

const notTaken = ({ detail }: SnapshotError) =>
  Result.error(
    `No checkpoint could be taken, and nothing was changed: ${detail}. Tell the user; nothing can be changed safely.`
  )

const notTakenBack = (message: string, { detail }: SnapshotRestoreError, { snapshotId }: FilesystemSnapshot) =>
  Result.error(
    `${message} What had been changed until then could not be taken back: ${detail}. Look at the files again; snapshot ${snapshotId} holds them as they were.`
  )

const around = <V, R>(
  snapshots: Operations,
  invocation: Invocation,
  call: Effect.Effect<Result.ToolResult<V>, never, R>
): Effect.Effect<Result.ToolResult<V>, never, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.matchEffect(restore(taken(snapshots, invocation)), {
      onFailure: (error) => Effect.succeed(notTaken(error)),
      onSuccess: (snapshot) =>
        Effect.flatMap(Effect.exit(restore(call)), (exit): Effect.Effect<Result.ToolResult<V>, never, R> => {
          if (Exit.isSuccess(exit) && exit.value.success) return Effect.succeed(exit.value)
          const back = takenBack(snapshots, snapshot)
          return Exit.isSuccess(exit)
            ? Effect.match(back, {
                onFailure: (error) => notTakenBack(exit.value.message, error, snapshot),
                onSuccess: () => exit.value
              })
            : Effect.matchEffect(back, {
                onFailure: (error) => Effect.failCause(Cause.combine(exit.cause, Cause.die(error))),
                onSuccess: () => Effect.failCause(exit.cause)
              })
        })
    })
  )

/**
 * Before each tool that may change something a snapshot tagged `pre:<tool>:<call id>` is taken; where the tool fails, dies or is
 * interrupted, the tree is what it was, and that snapshot goes. Others who write to the same filesystem wait.
 *
 * @since 0.1.0
 */
export const checkpoint: Layer.Layer<never, never, Snapshots> = layer(
  Effect.map(Snapshots, (snapshots) => ({
    name: "checkpoint",
    around: <V, R>(invocation: Invocation, call: Effect.Effect<Result.ToolResult<V>, never, R>) =>
      // Taking a snapshot changes no file.
      invocation.mutates && invocation.tool !== "snapshot"
        ? alone(invocation.filesystem.port, around(snapshots, invocation, call))
        : call
  }))
)
