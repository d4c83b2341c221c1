/**
 * A snapshot before each tool that may change something, and the tree as it was when the tool fails, dies or is interrupted. Nobody else
 * writes meanwhile, or what they wrote would be taken back too.
 */
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

/** Taking a snapshot changes no file. */
export const isKept = ({ mutates, past }: Pick<Invocation, "mutates" | "past">): boolean => mutates && past !== "keeps"

const keeping = (snapshots: Operations, { callId, tool }: Invocation): Keeping<FilesystemSnapshot> => ({
  take: snapshots.snapshot({ tag: checkpointTag(tool, callId), tool, callId: labelled(callId) }),
  // Gone again where it holds nothing that is not there.
  back: (snapshot) => Effect.andThen(snapshots.restore(snapshot), Effect.ignore(snapshots.forget(snapshot))),
  called: ({ snapshotId }) => `snapshot ${snapshotId}`
})

/**
 * Before each tool that may change something a snapshot tagged `pre:<tool>:<call id>` is taken; where the tool fails, dies or is
 * interrupted, the tree is what it was, and that snapshot goes. Others who write to the same filesystem wait.
 *
 * @since 0.1.0
 */
export const checkpoint: Layer.Layer<never, never, Snapshots> = layer(
  Effect.map(Snapshots, (snapshots) => ({
    name: "checkpoint",
    around: <V, R>(invocation: Invocation, call: Effect.Effect<ToolResult<V>, never, R>) =>
      isKept(invocation) ? alone(invocation.filesystem.port, takingBack(keeping(snapshots, invocation), call)) : call
  }))
)
