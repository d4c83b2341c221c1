/** The entity of a workspace: its id is the name of the workspace, and its requests are those of a remote filesystem. */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Entity from "effect/cluster/Entity"
import { FilesystemRpcs } from "../../remote/protocol.ts"

export const entity = Entity.fromRpcGroup(
  "fs-algebra/Workspace",
  FilesystemRpcs.annotate(ClusterSchema.ClientTracingEnabled, false)
)

/**
 * The header of a change with the time when the client sent the change first, in milliseconds since 1970, by the clock of the
 * owner.
 */
export const sentHeader = "fs-algebra-sent"

/**
 * Tests whether a change publishes an upload. Only the owner that received the bytes can make such a change. All other changes
 * can be made by any owner.
 */
export const isUpload = (tag: string): boolean => tag === "port.publish"

/**
 * The header with the instance of the owner that received the bytes of an upload. Any other owner refuses to publish the
 * upload.
 */
export const ownerHeader = "fs-algebra-owner"

/** The detail of the error with which another owner refuses an upload. */
export const movedDetail =
  "the workspace moved to another runner, which does not know whether the stream was written; read the file to see the result"
