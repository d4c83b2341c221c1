import { relative, sep } from "../runtime/node.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { isInside } from "../runtime/openRoots.ts"

/**
 * Returns the path of a host file inside a filesystem on a host directory, if it lies inside. `file` must have its
 * symlinks resolved.
 */
export const toInnerPath = ({ history }: Backend, file: string): FsPath | undefined =>
  history?._tag === "Directory" && file !== history.root && isInside(history.root, file)
    ? (relative(history.root, file).split(sep).join("/") as FsPath)
    : undefined
