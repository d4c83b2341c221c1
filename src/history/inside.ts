import { relative, sep } from "../runtime/node.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { isInside } from "../runtime/openRoots.ts"

/**
 * Returns the path in the filesystem of a file on the host, or `undefined` if the file is outside the filesystem's root. `file`
 * must not contain symlinks.
 */
export const toInnerPath = ({ history }: Backend, file: string): FsPath | undefined =>
  history?._tag === "Directory" && file !== history.root && isInside(history.root, file)
    ? (relative(history.root, file).split(sep).join("/") as FsPath)
    : undefined
