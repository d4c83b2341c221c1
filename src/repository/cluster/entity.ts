/** The entity of a workspace: its id is the name of the workspace, and its requests are those of a remote filesystem. */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Entity from "effect/cluster/Entity"
import { FilesystemRpcs } from "../../remote/protocol.ts"

export const entity = Entity.fromRpcGroup(
  "fs-algebra/Workspace",
  FilesystemRpcs.annotate(ClusterSchema.ClientTracingEnabled, false)
)
