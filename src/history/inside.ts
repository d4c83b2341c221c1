/** Files of the machine that lie in a filesystem which is a directory of it. */
import { relative, sep } from "../runtime/node.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { isInside } from "../runtime/openRoots.ts"

/** Its path there, if it has one. `file` has its links resolved. */
export const insideOf = ({ history }: Backend, file: string): FsPath | undefined =>
  history?._tag === "Directory" && file !== history.root && isInside(history.root, file)
    ? (relative(history.root, file).split(sep).join("/") as FsPath)
    : undefined
