/**
 * By what mounts are known again. Where a mount goes that does not say so depends on whether its source is a file, which only a look at the
 * disk could tell; so that default stays one, and is not the same as the path written out.
 */
import { createHash } from "../../runtime/node.ts"
import { list } from "../../engine/options.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type HostMount, MountError } from "./model.ts"
import { read } from "./request.ts"

/** Its keys are in their order. What is no mount is known by what was written. */
const canonical = (mount: HostMount): object => {
  const request = read(mount)
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
