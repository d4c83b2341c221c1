/** The order of whole paths, in which everything that looks at trees answers: a directory comes just before what is in it. */
import type { Kind } from "../model/Entry.ts"
import { compare, fold } from "../model/FsPath.ts"
import type { Child } from "./Backend.ts"

/** Where an entry stands in that order: a directory as its name and "/". */
export const keyIn = (path: string, kind: Kind): string => (kind === "directory" ? `${path}/` : path)

/** Halves of characters, of which UTF-16 has another order than code points. */
const halves = /[\ud800-\udfff]/

/** By name, a directory as its name and "/". */
export const inWalkOrder = (children: ReadonlyArray<Child>, caseSensitive: boolean): Array<Child> => {
  if (children.length < 2) return children.slice()
  const keyed = children.map((child) => {
    const key = keyIn(child.name, child.kind)
    return { child, key: caseSensitive ? key : fold(key) }
  })
  if (keyed.some(({ key }) => halves.test(key))) keyed.sort((a, b) => compare(a.key, b.key))
  else keyed.sort((a, b) => (a.key < b.key ? -1 : a.key === b.key ? 0 : 1))
  return keyed.map(({ child }) => child)
}
