import { relative, sep } from "../runtime/node.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { isInside } from "../runtime/openRoots.ts"

/**
 * Converts an absolute path on the host to a path in the filesystem. Returns `undefined` for the root and for a file outside
 * the root. `file` must not contain symlinks.
 */
export const toInnerPath = ({ history }: Backend, file: string): FsPath | undefined =>
  history?._tag === "Directory" && file !== history.root && isInside(history.root, file)
    ? (relative(history.root, file).split(sep).join("/") as FsPath)
    : undefined
