import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { alone } from "../../history/replace.ts"
import { Snapshots } from "../../history/Snapshots.ts"
import type { Operations } from "../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../history/snapshots/value.ts"
import { checkpointTag, labelled } from "../checkpointTag.ts"
import type { ToolResult } from "../ToolResult.ts"
import { type Invocation, layer } from "./core.ts"
import { type Keeping, takingBack } from "./takingBack.ts"

/** Tests whether a call needs a checkpoint. Taking a snapshot changes no file and needs none. */
export const isKept = ({ mutates, past }: Pick<Invocation, "mutates" | "past">): boolean => mutates && past !== "keeps"

const keeping = (snapshots: Operations, { callId, tool }: Invocation): Keeping<FilesystemSnapshot> => ({
  take: snapshots.snapshot({ tag: checkpointTag(tool, callId), tool, callId: labelled(callId) }),
  // Forget the snapshot after the restore, since the tree now equals it.
  back: (snapshot) => Effect.andThen(snapshots.restore(snapshot), Effect.ignore(snapshots.forget(snapshot))),
  called: ({ snapshotId }) => `snapshot ${snapshotId}`
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
      isKept(invocation) ? alone(invocation.filesystem.port, takingBack(keeping(snapshots, invocation), call)) : call
  }))
)
