/**
 * The tree that results from the recorded changes. A file that is older than the journal is an `Origin`: only its
 * original path is known, even after moves. Entries of the journal may contain facts about the beginning, which is the
 * tree before the first entry. These facts are stored separately, and are valid for every position.
 */
import type * as DateTime from "effect/DateTime"
import * as FsPath from "../../model/FsPath.ts"
import type { Content, FileEdit } from "../FileSystemEntry.ts"
import { HiddenNames } from "./paths.ts"

/**
 * A part of a content: recorded bytes, the content of a path in the beginning, or an edit of other parts. An append keeps the
 * earlier parts as one nested list, so that many small appends use little memory.
 */
export type Part =
  | Content
  | { readonly all: ReadonlyArray<Part> }
  | { readonly origin: FsPath.FsPath }
  | { readonly edits: FileEdit["edits"]; readonly base: ReadonlyArray<Part>; readonly version: string | undefined }

/**
 * The value of an attribute between two changes. Copies of a tree share the cell. So if a later entry contains the value, the
 * value is known at earlier positions too.
 */
export interface Cell<A> {
  value?: A | undefined
}

export interface Attributes {
  readonly mode: Cell<number>
  /** The modification time. Each write creates a new cell. */
  readonly modified: Cell<DateTime.Utc>
}

export const newAttributes = (mode: Cell<number> = {}): Attributes => ({ mode, modified: {} })

export interface File {
  readonly kind: "file"
  readonly parts: ReadonlyArray<Part>
  readonly attributes: Attributes
}

/** An entry of the beginning, of which only the original path is known. The entry may have any kind, or may be missing. */
export interface Origin {
  readonly kind: "origin"
  readonly path: FsPath.FsPath
  /** The attributes. Absent if no change has set attributes since the beginning. */
  readonly attributes?: Attributes | undefined
}

export interface Directory {
  readonly kind: "directory"
  /** The known entries by their folded name. All other entries are the entries of `origin`, if it is set. */
  readonly entries: Map<string, { readonly name: string; readonly node: Node }>
  /** The path of the directory in the beginning. Absent if all entries of the directory are known. */
  readonly origin?: FsPath.FsPath | undefined
  /** The attributes. Absent if no change has set attributes; then the attributes of `origin` are valid. */
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

  /** Returns the spelling in which a path was first seen. Paths that differ only in case are the same path. */
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

  /** Returns the names in a directory for which a fact is known. The fact may be that no entry had the name. */
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

const cloneNode = (node: Node): Node =>
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

  /** Sets the node at a path. Replaces each parent that is not a directory with a directory. The path must not be the root. */
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
   * Resolves the recorded links in a path. Returns `undefined` for an absolute target, because the journal does not contain
   * the absolute path of the root.
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
