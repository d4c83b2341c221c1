/** The order of whole paths, in which everything that looks at trees answers: a directory comes just before what is in it. */
import type { Kind } from "../model/Entry.ts"
import { compare, fold } from "../model/FsPath.ts"
import type { Child } from "./Backend.ts"

/** Where an entry stands in that order: a directory as its name and "/". */
export const keyIn = (path: string, kind: Kind): string => (kind === "directory" ? `${path}/` : path)

/** By name, a directory as its name and "/". */
export const inWalkOrder = (children: ReadonlyArray<Child>, caseSensitive: boolean): Array<Child> => {
  const key = caseSensitive
    ? (child: Child) => keyIn(child.name, child.kind)
    : (child: Child) => fold(keyIn(child.name, child.kind))
  return children
    .map((child) => ({ child, key: key(child) }))
    .sort((a, b) => compare(a.key, b.key))
    .map(({ child }) => child)
}
