/**
 * A directory as a tree that is ordered by the hashes of its names. A tree with a weight of at most `maxLeafWeight` is one leaf.
 * A heavier tree is a branch, with one child for each next digit of the hash. So the nodes depend only on the entries, not on the
 * order of the changes, and every node is small.
 *
 * All functions leave their arguments unchanged and return new nodes, which `Objects.store` stores.
 */
import * as Effect from "effect/Effect"
import * as Eager from "../../engine/eager.ts"
import type { StoreError } from "../errors.ts"
import {
  areEntriesEqual,
  type Branch,
  type Child,
  compareNames,
  type Entry,
  type Leaf,
  maxDepth,
  maxLeafWeight,
  nameHash,
  type Tree,
  type TreeNode,
  weightOf
} from "./nodes.ts"
import type { Objects } from "./objects.ts"

const digitAt = (hash: string, depth: number): number => Number.parseInt(hash[depth]!, 16)

/** Returns the index of the name. If the name is absent, returns `-i - 1` for the index `i` at which it would be inserted. */
const search = (entries: ReadonlyArray<Entry>, name: string): number => {
  let low = 0
  let high = entries.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const order = compareNames(entries[middle]!.name, name)
    if (order === 0) return middle
    if (order < 0) low = middle + 1
    else high = middle - 1
  }
  return -low - 1
}

export const get = (objects: Objects, tree: Tree, name: string): Effect.Effect<Entry | undefined, StoreError> => {
  if (tree === undefined) return Effect.succeed(undefined)
  let hash: string | undefined
  const find = (node: TreeNode): Effect.Effect<Entry | undefined, StoreError> => {
    if (node.kind === "leaf") {
      const at = search(node.entries, name)
      return Effect.succeed(at < 0 ? undefined : node.entries[at])
    }
    const digit = digitAt((hash ??= nameHash(name)), node.prefix.length)
    const child = node.children[digit]
    return child === undefined ? Effect.succeed(undefined) : Eager.flatMap(objects.child(node, child, digit), find)
  }
  return Eager.flatMap(objects.tree(tree, ""), find)
}

const isLeaf = (weight: number, depth: number): boolean => weight <= maxLeafWeight || depth >= maxDepth

const totalWeight = (entries: ReadonlyArray<Entry>): number => {
  let weight = 0
  for (const entry of entries) weight += weightOf(entry)
  return weight
}

/** Builds the node of entries that are sorted by name. */
const build = (entries: ReadonlyArray<Entry>, prefix: string): TreeNode | undefined => {
  if (entries.length === 0) return undefined
  const weight = totalWeight(entries)
  if (isLeaf(weight, prefix.length)) return { kind: "leaf", prefix, entries, weight }
  const groups: Array<Array<Entry>> = Array.from({ length: 16 }, () => [])
  for (const entry of entries) groups[digitAt(nameHash(entry.name), prefix.length)]!.push(entry)
  return {
    kind: "branch",
    prefix,
    weight,
    children: groups.map((group, digit) => {
      const tree = build(group, prefix + digit.toString(16))
      return tree && { tree, weight: tree.weight }
    })
  }
}

/** The number of children of one node that are read at the same time. */
const readConcurrency = 16

const forEachBelow = (objects: Objects, node: TreeNode, visit: (entry: Entry) => void): Effect.Effect<void, StoreError> => {
  if (node.kind === "leaf") {
    for (const entry of node.entries) visit(entry)
    return Effect.void
  }
  const digits: Array<number> = []
  node.children.forEach((child, digit) => child !== undefined && digits.push(digit))
  return Effect.asVoid(
    Eager.forEach(
      digits,
      (digit) =>
        Eager.flatMap(objects.child(node, node.children[digit]!, digit), (below) => forEachBelow(objects, below, visit)),
      // Only the two upper levels read children concurrently, which bounds the number of concurrent reads.
      node.prefix.length < 2 ? readConcurrency : 1
    )
  )
}

/** Visits all entries of a tree, in any order. */
export const forEach = (objects: Objects, tree: Tree, visit: (entry: Entry) => void): Effect.Effect<void, StoreError> =>
  tree === undefined ? Effect.void : Eager.flatMap(objects.tree(tree, ""), (node) => forEachBelow(objects, node, visit))

const changeLeaf = (node: Leaf, name: string, entry: Entry | undefined): TreeNode | undefined => {
  const at = search(node.entries, name)
  if (at < 0 && entry === undefined) return node
  const entries = node.entries.slice()
  if (entry === undefined) entries.splice(at, 1)
  else if (at < 0) entries.splice(-at - 1, 0, entry)
  else entries[at] = entry
  const removed = at < 0 ? 0 : weightOf(node.entries[at]!)
  const weight = node.weight - removed + (entry === undefined ? 0 : weightOf(entry))
  return entries.length > 0 && isLeaf(weight, node.prefix.length) ? { ...node, entries, weight } : build(entries, node.prefix)
}

/** Returns a tree in which `name` has the given entry, or no entry if `entry` is `undefined`. */
export const set = (
  objects: Objects,
  tree: Tree,
  name: string,
  entry: Entry | undefined
): Effect.Effect<TreeNode | undefined, StoreError> => {
  let hash: string | undefined
  const change = (node: TreeNode): Effect.Effect<TreeNode | undefined, StoreError> => {
    if (node.kind === "leaf") return Effect.succeed(changeLeaf(node, name, entry))
    const digit = digitAt((hash ??= nameHash(name)), node.prefix.length)
    const child = node.children[digit]
    const changed: Effect.Effect<TreeNode | undefined, StoreError> =
      child === undefined
        ? Effect.succeed(entry && build([entry], node.prefix + digit.toString(16)))
        : Eager.flatMap(objects.child(node, child, digit), change)
    return Eager.flatMap(changed, (next) => replaceChild(node, digit, next))
  }
  const replaceChild = (
    node: Branch,
    digit: number,
    next: TreeNode | undefined
  ): Effect.Effect<TreeNode | undefined, StoreError> => {
    const children = node.children.slice()
    const child: Child | undefined = next && { tree: next, weight: next.weight }
    const weight = node.weight - (children[digit]?.weight ?? 0) + (child?.weight ?? 0)
    children[digit] = child
    const branch: Branch = { ...node, children, weight }
    if (!isLeaf(weight, node.prefix.length)) return Effect.succeed(branch)
    return Effect.map(entriesOf(objects, branch), (entries) => build(entries, node.prefix))
  }
  if (tree === undefined) return Effect.succeed(entry && build([entry], ""))
  return Eager.flatMap(objects.tree(tree, ""), change)
}

/** Returns the entries of a node, sorted by name. */
const entriesOf = (objects: Objects, node: TreeNode): Effect.Effect<ReadonlyArray<Entry>, StoreError> => {
  if (node.kind === "leaf") return Effect.succeed(node.entries)
  return Effect.suspend(() => {
    const out: Array<Entry> = []
    return Effect.map(
      forEachBelow(objects, node, (entry) => out.push(entry)),
      () => out.sort((a, b) => compareNames(a.name, b.name))
    )
  })
}

/** Returns the entries of a directory, sorted by the bytes of their names. */
export const list = (objects: Objects, tree: Tree): Effect.Effect<ReadonlyArray<Entry>, StoreError> =>
  tree === undefined ? Effect.succeed([]) : Eager.flatMap(objects.tree(tree, ""), (node) => entriesOf(objects, node))

/** Visits the names whose entries differ between two trees. Parts with equal hashes are not read. */
export const forEachDifference = (
  objects: Objects,
  before: Tree,
  after: Tree,
  visit: (before: Entry | undefined, after: Entry | undefined) => void
): Effect.Effect<void, StoreError> => {
  const compareEntries = (before: ReadonlyArray<Entry>, after: ReadonlyArray<Entry>): void => {
    let [i, j] = [0, 0]
    while (i < before.length || j < after.length) {
      const order = i === before.length ? 1 : j === after.length ? -1 : compareNames(before[i]!.name, after[j]!.name)
      if (order < 0) visit(before[i++], undefined)
      else if (order > 0) visit(undefined, after[j++])
      else {
        if (!areEntriesEqual(before[i]!, after[j]!)) visit(before[i], after[j])
        i++
        j++
      }
    }
  }
  const all = (node: TreeNode | undefined) => (node === undefined ? Effect.succeed([]) : entriesOf(objects, node))
  const load = (parent: Branch, digit: number) => {
    const child = parent.children[digit]
    return child === undefined ? Effect.succeed(undefined) : objects.child(parent, child, digit)
  }
  const compare = (before: TreeNode | undefined, after: TreeNode | undefined): Effect.Effect<void, StoreError> =>
    before?.kind === "branch" && after?.kind === "branch"
      ? Effect.forEach(
          [...before.children.keys()].filter((digit) => before.children[digit]?.tree !== after.children[digit]?.tree),
          (digit) =>
            Effect.flatMap(load(before, digit), (one) => Effect.flatMap(load(after, digit), (other) => compare(one, other))),
          { discard: true }
        )
      : Effect.flatMap(all(before), (before) => Effect.map(all(after), (after) => compareEntries(before, after)))
  const top = (tree: Tree) => (tree === undefined ? Effect.succeed(undefined) : objects.tree(tree, ""))
  return before === after
    ? Effect.void
    : Effect.flatMap(top(before), (before) => Effect.flatMap(top(after), (after) => compare(before, after)))
}
