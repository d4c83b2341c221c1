/** Files of the machine that lie in a filesystem which is a directory of it. */
import { relative, sep } from "node:path"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { isInside } from "../../runtime/openRoots.ts"

/** Its path there, if it has one. `file` has its links resolved. */
export const insideOf = ({ port: { history } }: Algebra, file: string): string | undefined =>
  history?._tag === "Directory" && isInside(history.root, file) ? relative(history.root, file).split(sep).join("/") : undefined
