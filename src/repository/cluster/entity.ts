/** The entity of a workspace: its id is the name of the workspace, and its requests are those of a remote filesystem. */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Entity from "effect/cluster/Entity"
import { FilesystemRpcs } from "../../remote/protocol.ts"

export const entity = Entity.fromRpcGroup(
  "fs-algebra/Workspace",
  FilesystemRpcs.annotate(ClusterSchema.ClientTracingEnabled, false)
)

/** The header of a change: the instance of the owner for which the change was sent first. Another owner refuses the change. */
export const ownerHeader = "fs-algebra-owner"

/** The detail of the refusal. */
export const movedDetail =
  "the workspace moved to another runner, which does not know whether the change was made; read the file to see the result"
