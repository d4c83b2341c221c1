/**
 * The tree of files, made from the server's flat list. To be fast with 50,000 files, the tree sorts children only when their
 * directory is opened. The filter keeps all paths in lower case.
 */
import type { TreeFile } from "../../model.ts"

export interface Node {
  readonly name: string
  readonly path: string
  readonly kind: "file" | "directory" | "symlink" | "other"
  /** The number of directories above the node; 0 for the root. */
  readonly depth: number
  readonly parent: Node | undefined
  size: number
  files: number
  readonly children: Array<Node>
  isSorted: boolean
}

const node = (path: string, kind: Node["kind"], parent: Node | undefined): Node => ({
  name: path.slice(path.lastIndexOf("/") + 1),
  path,
  kind,
  depth: parent === undefined ? 0 : parent.depth + 1,
  parent,
  size: 0,
  files: 0,
  children: [],
  isSorted: false
})

export interface Tree {
  readonly root: Node
  readonly nodes: ReadonlyMap<string, Node>
  readonly files: ReadonlyArray<Node>
}

export const treeOf = (files: ReadonlyArray<TreeFile>): Tree => {
  const root = node("", "directory", undefined)
  const nodes = new Map<string, Node>()
  const directory = (path: string): Node => {
    if (path === "") return root
    const known = nodes.get(path)
    if (known !== undefined) return known
    const parent = directory(path.slice(0, Math.max(0, path.lastIndexOf("/"))))
    const made = node(path, "directory", parent)
    parent.children.push(made)
    nodes.set(path, made)
    return made
  }
  const listed: Array<Node> = []
  for (const { kind = "file", path, size_bytes } of files) {
    if (kind === "directory") {
      directory(path)
      continue
    }
    const parent = directory(path.slice(0, Math.max(0, path.lastIndexOf("/"))))
    const made = node(path, kind, parent)
    made.size = size_bytes
    parent.children.push(made)
    nodes.set(path, made)
    listed.push(made)
    for (let above: Node | undefined = parent; above !== undefined; above = above.parent) {
      above.size += size_bytes
      above.files++
    }
  }
  return { root, nodes, files: listed }
}

const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" })

/** Returns the children in order: directories first, then by name with numbers in order (2 before 10). */
export const childrenOf = (parent: Node): ReadonlyArray<Node> => {
  if (!parent.isSorted) {
    parent.children.sort(
      (a, b) =>
        Number(b.kind === "directory") - Number(a.kind === "directory") ||
        order.compare(a.name, b.name) ||
        (a.name < b.name ? -1 : 1)
    )
    parent.isSorted = true
  }
  return parent.children
}

export const rowsOf = (tree: Tree, open: Pick<ReadonlySet<string>, "has">): ReadonlyArray<Node> => {
  const rows: Array<Node> = []
  const add = (parent: Node): void => {
    for (const child of childrenOf(parent)) {
      rows.push(child)
      if (child.kind === "directory" && open.has(child.path)) add(child)
    }
  }
  add(tree.root)
  return rows
}

/**
 * Returns the directories that are open at first. In a tree of at most 40 nodes, all directories are open. In a larger tree,
 * a directory is open only if each directory on its path, and the directory itself, is the only entry of its parent.
 */
export const initiallyOpen = (tree: Tree): ReadonlySet<string> => {
  const open = new Set<string>()
  if (tree.nodes.size <= 40) {
    for (const { kind, path } of tree.nodes.values()) if (kind === "directory") open.add(path)
    return open
  }
  let [only, second] = tree.root.children
  while (only !== undefined && second === undefined && only.kind === "directory") {
    open.add(only.path)
    ;[only, second] = only.children
  }
  return open
}

export interface Found {
  readonly node: Node
  readonly marks: ReadonlySet<number>
}

/**
 * Returns a bit set of the low five bits of each character. A text can match a word only if its set contains all bits of the
 * word's set.
 */
const letterBits = (lower: string): number => {
  let bits = 0
  for (let i = 0; i < lower.length; i++) bits |= 1 << (lower.charCodeAt(i) & 31)
  return bits
}

/** Returns the score of a path that matches all words, or `undefined` if a word does not match. A lower score is better. */
const scorePath = (lower: string, nameStart: number, words: ReadonlyArray<string>): number | undefined => {
  let score = 0
  for (const word of words) {
    const inName = lower.indexOf(word, nameStart)
    if (inName >= 0) {
      score += inName === nameStart ? (lower.length - nameStart === word.length ? 0 : 1) : 2
      continue
    }
    if (lower.includes(word)) {
      score += 4
      continue
    }
    let at = -1
    let gaps = 0
    for (const letter of word) {
      const next = lower.indexOf(letter, at + 1)
      if (next < 0) return undefined
      if (next !== at + 1) gaps++
      at = next
    }
    score += 8 + gaps
  }
  return score
}

const marksOf = (lower: string, nameStart: number, words: ReadonlyArray<string>): ReadonlySet<number> => {
  const marks = new Set<number>()
  for (const word of words) {
    let at = lower.indexOf(word, nameStart)
    if (at < 0) at = lower.indexOf(word)
    if (at >= 0) {
      for (let i = 0; i < word.length; i++) marks.add(at + i)
      continue
    }
    for (const letter of word) {
      at = lower.indexOf(letter, at + 1)
      marks.add(at)
    }
  }
  return marks
}

/** The filter of the tree. The positions of matched characters are computed only for rendered rows. */
export class Filter {
  readonly #tree: Tree
  readonly #lower: ReadonlyArray<string>
  readonly #nameAt: ReadonlyArray<number>
  readonly #bits: Int32Array
  #last: { readonly text: string; readonly found: ReadonlyArray<number> } | undefined
  #words: ReadonlyArray<string> = []

  constructor(tree: Tree) {
    this.#tree = tree
    // Keep the path unchanged if lower case changes its length, because positions of matches would be wrong.
    this.#lower = tree.files.map(({ path }) => {
      const lower = path.toLowerCase()
      return lower.length === path.length ? lower : path
    })
    this.#bits = Int32Array.from(this.#lower, letterBits)
    this.#nameAt = tree.files.map(({ name, path }) => path.length - name.length)
  }

  find(text: string): ReadonlyArray<Node> {
    const query = text.toLowerCase().trim()
    this.#words = query.split(/\s+/).filter((word) => word !== "")
    // A longer query matches fewer paths, so test only the previous matches.
    const last = this.#last
    const previousMatches = last !== undefined && last.text !== "" && query.startsWith(last.text) ? last.found : undefined
    const bits = letterBits(this.#words.join(""))
    const count = previousMatches?.length ?? this.#lower.length
    const buckets: Array<Array<number>> = []
    const found: Array<number> = []
    for (let i = 0; i < count; i++) {
      const index = previousMatches?.[i] ?? i
      if ((this.#bits[index]! & bits) !== bits) continue
      const lower = this.#lower[index]!
      const score = scorePath(lower, this.#nameAt[index]!, this.#words)
      if (score === undefined) continue
      ;(buckets[score] ??= []).push(index)
      found.push(index)
    }
    this.#last = { text: query, found }
    const best: Array<Node> = []
    // The array of buckets has holes.
    for (const bucket of buckets) for (const index of bucket ?? []) best.push(this.#tree.files[index]!)
    return best
  }

  marks({ path }: Node): ReadonlySet<number> {
    const lower = path.toLowerCase()
    return lower.length === path.length
      ? marksOf(lower, lower.lastIndexOf("/") + 1, this.#words)
      : marksOf(path, path.lastIndexOf("/") + 1, this.#words)
  }
}

/** Resolves a relative reference in the file `from` to a path. Returns `undefined` if the reference leads out of the root. */
export const resolved = (from: string, reference: string): string | undefined => {
  const parts = reference.startsWith("/") ? [] : from.split("/").slice(0, -1)
  for (const part of reference.split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return undefined
    } else if (part !== "" && part !== ".") parts.push(part)
  }
  return parts.join("/")
}
