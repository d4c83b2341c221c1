import type { Directory, Model, Node, Outcome } from "./Model.ts"

export const failure = (tag: string): Outcome => ({ tag })
export const escapeDenied = failure("AccessDenied escape")
const linkLoop = failure("InvalidPath")

export const isOutcome = (value: object): value is Outcome => "tag" in value

export type Names = ReadonlyArray<string>

export const parse = (input: string): Names | Outcome => {
  const out: Array<string> = []
  for (const segment of input.split("/")) {
    if (segment === "" || segment === ".") continue
    if (segment !== "..") out.push(segment)
    else if (out.pop() === undefined) return failure("InvalidPath")
  }
  return out
}

export const folded = (self: Model, name: string): string => (self.caseSensitive ? name : name.toLowerCase())

export const isBelow = (self: Model, above: Names, names: Names): boolean =>
  above.length <= names.length && above.every((name, i) => folded(self, name) === folded(self, names[i]!))

export const isSame = (self: Model, one: Names, other: Names): boolean =>
  one.length === other.length && isBelow(self, one, other)

export const childOf = (self: Model, at: Directory, name: string) => at.entries.get(folded(self, name))

export interface Place {
  /** The names without links, each spelled as in its directory. */
  readonly names: Names
  readonly node: Node | undefined
  /** The failure for creating an entry here: an ancestor is not a directory, or a link goes up from a missing entry. */
  readonly creationFailure: Outcome | undefined
  readonly followedLinks: number
}

export const leavesRoot = (depth: number, target: string): boolean => {
  if (target.startsWith("/")) return true
  let level = depth
  for (const segment of target.split("/")) {
    if (segment === "..") level--
    else if (segment !== "" && segment !== ".") level++
    if (level < 0) return true
  }
  return false
}

export const resolvePlace = (self: Model, names: Names, keepLink: boolean, followedLinks = 0): Place | Outcome => {
  if (names.length === 0) return { names: [], node: self.root, creationFailure: undefined, followedLinks }
  const name = names.at(-1)!
  const above = resolvePlace(self, names.slice(0, -1), false, followedLinks)
  if (isOutcome(above)) return above
  if (name === "..") {
    if (above.node?.kind !== "directory") {
      const why = above.node === undefined ? "NotFound" : "NotADirectory"
      return { ...above, node: undefined, creationFailure: above.creationFailure ?? failure(why) }
    }
    return above.names.length === 0 ? escapeDenied : resolvePlace(self, above.names.slice(0, -1), false, above.followedLinks)
  }
  if (above.node?.kind !== "directory") {
    return {
      names: [...above.names, name],
      node: undefined,
      creationFailure: above.creationFailure ?? (above.node === undefined ? undefined : failure("NotADirectory")),
      followedLinks: above.followedLinks
    }
  }
  const found = childOf(self, above.node, name)
  const namesHere = [...above.names, found?.name ?? name]
  if (found?.node.kind !== "link" || keepLink) {
    return { names: namesHere, node: found?.node, creationFailure: undefined, followedLinks: above.followedLinks }
  }
  if (above.followedLinks >= 40) return linkLoop
  const { target } = found.node
  if (leavesRoot(above.names.length, target)) return escapeDenied
  const targetNames = target.split("/").filter((segment) => segment !== "" && segment !== ".")
  return resolvePlace(self, [...above.names, ...targetNames], false, above.followedLinks + 1)
}

/** Returns the tree with the node at the names, or without a node there. Creates missing directories on the way. */
export const withNodeAt = (self: Model, at: Directory, names: Names, node: Node | undefined): Directory => {
  const [name, ...rest] = names as [string, ...Array<string>]
  const key = folded(self, name)
  const found = at.entries.get(key)
  const entries = new Map(at.entries)
  if (rest.length > 0) {
    const below: Directory = found?.node.kind === "directory" ? found.node : { kind: "directory", entries: new Map() }
    entries.set(key, { name: found?.name ?? name, node: withNodeAt(self, below, rest, node) })
  } else if (node === undefined) entries.delete(key)
  else entries.set(key, { name: found?.name ?? name, node })
  return { kind: "directory", entries }
}

export const setNode = (self: Model, names: Names, node: Node | undefined): Model => ({
  ...self,
  root: withNodeAt(self, self.root, names, node)
})

/** Returns the model after a removal at these names. If the model prunes, directories that became empty are removed too. */
export const withoutEmptyParents = (self: Model, names: Names): Model => {
  const above = names.slice(0, -1)
  if (!self.prunes || above.length === 0) return self
  const found = resolvePlace(self, above, false)
  return isOutcome(found) || found.node?.kind !== "directory" || found.node.entries.size > 0
    ? self
    : withoutEmptyParents(setNode(self, above, undefined), above)
}
