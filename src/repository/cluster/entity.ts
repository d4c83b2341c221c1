/** The entity of a workspace: its id is the name of the workspace, and its requests are those of a remote filesystem. */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Entity from "effect/cluster/Entity"
import { FilesystemRpcs } from "../../remote/protocol.ts"

export const entity = Entity.fromRpcGroup(
  "fs-algebra/Workspace",
  FilesystemRpcs.annotate(ClusterSchema.ClientTracingEnabled, false)
)

/** The header of a change: the time at which its client sent it first, in milliseconds since 1970. */
export const sentHeader = "fs-algebra-sent"

/**
 * Tests whether a change publishes an upload, whose bytes only one owner has. Other changes are made once, whichever owner gets
 * them.
 */
export const isUpload = (tag: string): boolean => tag === "port.publish"

/** The header of a publication: the instance of the owner to which the bytes were sent. Another owner refuses it. */
export const ownerHeader = "fs-algebra-owner"

/** The detail of the refusal. */
export const movedDetail =
  "the workspace moved to another runner, which does not know whether the stream was written; read the file to see the result"
