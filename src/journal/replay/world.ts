/**
 * The tree that a journal knows. Recorded changes add and remove nodes. All other nodes are known only by their original path,
 * even after moves. Later entries may reveal facts about the beginning. These facts are stored separately, and are valid for
 * every earlier position too.
 */
import type * as DateTime from "effect/DateTime"
import * as FsPath from "../../model/FsPath.ts"
import type { Content, FileEdit } from "../FileSystemEntry.ts"
import { HiddenNames } from "./paths.ts"

/**
 * A part of a content: the bytes of an entry, the content that a path had in the beginning, or an edit of other parts. An
 * append keeps the earlier parts as one nested list, so that many small appends use little memory.
 */
export type Part =
  | Content
  | { readonly all: ReadonlyArray<Part> }
  | { readonly origin: FsPath.FsPath }
  | { readonly edits: FileEdit["edits"]; readonly base: ReadonlyArray<Part>; readonly version: string | undefined }

/**
 * The value of an attribute between two changes. Copies of a world share the cell. So a value that is revealed later is valid
 * for earlier positions too.
 */
export interface Cell<A> {
  value?: A | undefined
}

export interface Attributes {
  readonly mode: Cell<number>
  /** The modification time. Each write starts a new cell. */
  readonly modified: Cell<DateTime.Utc>
}

export const newAttributes = (mode: Cell<number> = {}): Attributes => ({ mode, modified: {} })

export interface File {
  readonly kind: "file"
  readonly parts: ReadonlyArray<Part>
  readonly attributes: Attributes
}

/** An entry that the journal knows only by its original path. The entry may have any kind, or may be missing. */
export interface Origin {
  readonly kind: "origin"
  readonly path: FsPath.FsPath
  /** The attributes. Absent if no change has set them since the beginning. */
  readonly attributes?: Attributes | undefined
}

export interface Directory {
  readonly kind: "directory"
  /** The known entries by their folded name. For other names, `origin` decides. */
  readonly entries: Map<string, { readonly name: string; readonly node: Node }>
  /** The original path. Absent if all entries of the directory are known. */
  readonly origin?: FsPath.FsPath | undefined
  /** The attributes. Absent if no change has set them. The attributes of the origin are valid then. */
  readonly attributes?: Attributes | undefined
  /** True if the directory itself was created or moved, not only an entry in it. */
  readonly isTouched: boolean
}

export interface Link {
  readonly kind: "symlink"
  readonly target: string
}

export interface Unknown {
  readonly kind: "unknown"
}

export type Node = File | Origin | Directory | Link | Unknown | { readonly kind: "nothing" }

export const missingNode: Node = { kind: "nothing" }
export const unknownNode: Node = { kind: "unknown" }

export type BeginningFact =
  | { readonly kind: "nothing" | "other" }
  | { readonly kind: "file"; readonly content: Content | undefined }
  /** A directory whose entries are all known. */
  | { readonly kind: "directory" }
  | { readonly kind: "symlink"; readonly target: string }

export class Beginning {
  readonly hidden: HiddenNames
  readonly known = new Map<FsPath.FsPath, BeginningFact>()
  readonly #attributes = new Map<FsPath.FsPath, Attributes>()
  readonly #names = new Map<FsPath.FsPath, Set<string>>()
  readonly #spellings = new Map<FsPath.FsPath, FsPath.FsPath>()

  constructor(hidden = new HiddenNames()) {
    this.hidden = hidden
  }

  /** Returns the same spelling for all paths that differ only in case. It is the first spelling that was seen. */
  canonicalSpelling(path: FsPath.FsPath): FsPath.FsPath {
    const folded = FsPath.fold(path)
    const known = this.#spellings.get(folded)
    if (known === undefined) this.#spellings.set(folded, path)
    return known ?? path
  }

  /** Records the state of a path before the first entry of the journal. Ignores later facts about the same path. */
  reveal(path: FsPath.FsPath, known: BeginningFact): void {
    if (this.known.has(path)) return
    this.known.set(path, known)
    for (let at = path; at !== FsPath.root; at = FsPath.parent(at)) {
      const names = this.#names.get(FsPath.parent(at)) ?? new Set()
      names.add(FsPath.name(at))
      this.#names.set(FsPath.parent(at), names)
    }
  }

  attributesAt(path: FsPath.FsPath): Attributes {
    const known = this.#attributes.get(path)
    if (known !== undefined) return known
    const attributes = newAttributes()
    this.#attributes.set(path, attributes)
    return attributes
  }

  /** Returns the names in a directory for which a fact is known. The fact may be that the name did not exist. */
  namesIn(path: FsPath.FsPath): Iterable<string> {
    return this.#names.get(path) ?? []
  }

  clone(): Beginning {
    const copy = new Beginning(this.hidden)
    for (const path of this.#spellings.values()) copy.canonicalSpelling(path)
    for (const [path, known] of this.known) copy.reveal(path, known)
    for (const [path, attributes] of this.#attributes) copy.#attributes.set(path, attributes)
    return copy
  }
}

const maxLinks = 40

const childOf = (node: Node, name: string, key: string): Node => {
  if (node.kind === "origin") return { kind: "origin", path: FsPath.join(node.path, name) }
  if (node.kind !== "directory") return missingNode
  const found = node.entries.get(key)
  if (found !== undefined) return found.node
  return node.origin === undefined ? missingNode : { kind: "origin", path: FsPath.join(node.origin, name) }
}

const asDirectory = (node: Node, isTouched = false): Directory =>
  node.kind === "directory"
    ? node
    : node.kind === "origin"
      ? { kind: "directory", entries: new Map(), origin: node.path, attributes: node.attributes, isTouched }
      : { kind: "directory", entries: new Map(), attributes: newAttributes(), isTouched }

export const attributesOf = (beginning: Beginning, node: Node): Attributes | undefined => {
  switch (node.kind) {
    case "file":
      return node.attributes
    case "origin":
      return node.attributes ?? beginning.attributesAt(node.path)
    case "directory":
      return node.attributes ?? (node.origin === undefined ? undefined : beginning.attributesAt(node.origin))
    default:
      return undefined
  }
}

export const cloneNode = (node: Node): Node =>
  node.kind !== "directory"
    ? node
    : {
        ...node,
        entries: new Map([...node.entries].map(([key, { name, node }]) => [key, { name, node: cloneNode(node) }]))
      }

export class World {
  readonly caseSensitive: boolean
  readonly beginning: Beginning
  rootDirectory: Directory

  constructor(
    caseSensitive: boolean,
    beginning = new Beginning(),
    rootDirectory = asDirectory({ kind: "origin", path: FsPath.root })
  ) {
    this.caseSensitive = caseSensitive
    this.beginning = beginning
    this.rootDirectory = rootDirectory
  }

  key(name: string): string {
    return this.caseSensitive ? name : FsPath.fold(name)
  }

  child(node: Node, name: string): Node {
    const child = childOf(node, name, this.key(name))
    return this.caseSensitive || child.kind !== "origin"
      ? child
      : { ...child, path: this.beginning.canonicalSpelling(child.path) }
  }

  get(path: FsPath.FsPath): Node {
    let node: Node = this.rootDirectory
    for (const name of FsPath.segments(path)) node = this.child(node, name)
    return node
  }

  /** Sets the node at a path. A parent that is not a directory is replaced by one. The path must not be the root. */
  set(path: FsPath.FsPath, node: Node): void {
    const names = FsPath.segments(path)
    const last = names.length - 1
    let current = this.rootDirectory
    for (const [i, name] of names.entries()) {
      const key = this.key(name)
      const found = current.entries.get(key)
      const known = found === undefined || found.node.kind === "nothing" ? name : found.name
      if (i === last) {
        current.entries.set(key, { name: known, node })
        return
      }
      const next = asDirectory(this.child(current, name))
      current.entries.set(key, { name: known, node: next })
      current = next
    }
  }

  directoryAt(path: FsPath.FsPath): Directory {
    return path === FsPath.root ? this.rootDirectory : asDirectory(this.get(path), true)
  }

  /**
   * Resolves links. Returns `undefined` for an absolute target, because only the filesystem knows the absolute path of its
   * root.
   */
  resolveLinks(path: FsPath.FsPath, through: "last" | "parents"): FsPath.FsPath | undefined {
    const pendingNames = [...FsPath.segments(path)].reverse()
    const current: Array<string> = []
    let linkCount = 0
    for (let name = pendingNames.pop(); name !== undefined; name = pendingNames.pop()) {
      if (name === "" || name === ".") continue
      if (name === "..") {
        current.pop()
        continue
      }
      const node = this.get(FsPath.fromSegments([...current, name]))
      if (node.kind !== "symlink" || (pendingNames.length === 0 && through === "parents")) current.push(name)
      else if (++linkCount > maxLinks) return path
      else if (node.target.startsWith("/")) return undefined
      else pendingNames.push(...node.target.split("/").reverse())
    }
    return FsPath.fromSegments(current)
  }

  clone(): World {
    return new World(this.caseSensitive, this.beginning.clone(), cloneNode(this.rootDirectory) as Directory)
  }

  /** Returns a copy of the current tree that later changes do not affect. The copy shares the facts about the beginning. */
  copyTree(): World {
    return new World(this.caseSensitive, this.beginning, cloneNode(this.rootDirectory) as Directory)
  }
}
