import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { withExclusiveLock } from "../../history/replace.ts"
import { Snapshots } from "../../history/Snapshots.ts"
import type { Operations } from "../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import { checkpointTag, asLabel } from "../checkpointTag.ts"
import type { ToolResult } from "../ToolResult.ts"
import { type Invocation, layer } from "./core.ts"
import { type StateKeeper, rollBackOnFailure } from "./takingBack.ts"

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
