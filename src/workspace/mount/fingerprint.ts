/**
 * The default of `mountPath` stays a default, because it depends on whether the source is a file, which only the disk can
 * tell.
 */
import { createHash } from "../../runtime/node.ts"
import { list } from "../../engine/options.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type HostMount, MountError } from "./model.ts"
import { parseMount } from "./request.ts"

/** Returns the mount with its keys in a fixed order. An invalid mount keeps its values as they were written. */
const canonical = (mount: HostMount): object => {
  const request = parseMount(mount)
  const { exclude, followSymlinks, hostPath, include, maxBytes, mountPath } = mount
  return request instanceof MountError
    ? { exclude: list(exclude), followSymlinks, hostPath, include: list(include), maxBytes, mountPath }
    : {
        exclude: request.exclude,
        followSymlinks: request.followSymlinks,
        hostPath,
        include: request.include,
        maxBytes: request.maxBytes ?? null,
        mountPath: request.mountPath === undefined ? null : FsPath.segments(request.mountPath)
      }
}

export const fingerprint = (mounts: ReadonlyArray<HostMount>): string =>
  createHash("sha256")
    .update(JSON.stringify(mounts.map(canonical)))
    .digest("hex")
    .slice(0, 16)
