/** The order of whole paths in every result: a directory comes directly before its contents. */
import type { Kind } from "../model/Entry.ts"
import { compare, fold } from "../model/FsPath.ts"
import type { Child } from "./Backend.ts"

export const walkSortKey = (path: string, kind: Kind): string => (kind === "directory" ? `${path}/` : path)

/** Matches surrogates, which sort differently in UTF-16 and by code point. */
const surrogatePattern = /[\ud800-\udfff]/

export const inWalkOrder = (children: ReadonlyArray<Child>, caseSensitive: boolean): Array<Child> => {
  if (children.length < 2) return children.slice()
  const keyed = children.map((child) => {
    const key = walkSortKey(child.name, child.kind)
    return { child, key: caseSensitive ? key : fold(key) }
  })
  if (keyed.some(({ key }) => surrogatePattern.test(key))) keyed.sort((a, b) => compare(a.key, b.key))
  else keyed.sort((a, b) => (a.key < b.key ? -1 : a.key === b.key ? 0 : 1))
  return keyed.map(({ child }) => child)
}
