/**
 * What a journal knows of a tree: what it has put there, what it has taken away, and for all else only where it stood in the beginning,
 * under which it is known wherever it is moved. What comes to light of the beginning later, because a change tells what it took away,
 * is noted apart, and holds for every position before.
 */
import type * as DateTime from "effect/DateTime"
import * as FsPath from "../../model/FsPath.ts"
import type { Content, FileEdit } from "../FileSystemEntry.ts"
import { Hidden } from "./paths.ts"

/**
 * Contents are made of what entries hold, of what stood somewhere in the beginning, and of edits of these. What is appended to has its parts
 * as one, so that a thousand small appends make a thousand small lists.
 */
export type Part =
  | Content
  | { readonly all: ReadonlyArray<Part> }
  | { readonly origin: FsPath.FsPath }
  | { readonly edits: FileEdit["edits"]; readonly of: ReadonlyArray<Part>; readonly version: string | undefined }

/**
 * The value of an attribute between two changes of it. Copies of a world share it, so that a value which comes to light later holds for
 * the earlier positions too.
 */
export interface Cell<A> {
  value?: A | undefined
}

export interface Attributes {
  /** Permission bits. */
  readonly mode: Cell<number>
  /** Time of modification; each write begins a new one. */
  readonly modified: Cell<DateTime.Utc>
}

export const newAttributes = (mode: Cell<number> = {}): Attributes => ({ mode, modified: {} })

export interface File {
  readonly kind: "file"
  readonly parts: ReadonlyArray<Part>
  readonly attributes: Attributes
}

/** What stood at a path in the beginning, whatever it was. */
export interface Origin {
  readonly kind: "origin"
  readonly path: FsPath.FsPath
  /** Left out where nobody has set any: they are those of the beginning. */
  readonly attributes?: Attributes | undefined
}

export interface Directory {
  readonly kind: "directory"
  /** By the name as it is compared; of all else in it, the origin knows. */
  readonly entries: Map<string, { readonly name: string; readonly node: Node }>
  /** Where it stood in the beginning; left out for one of which everything is known. */
  readonly origin?: FsPath.FsPath | undefined
  /** Left out where nobody has set any: they are those of the origin. */
  readonly attributes?: Attributes | undefined
  /** It has been made or moved itself, and not only something in it. */
  readonly isTouched: boolean
}

export interface Link {
  readonly kind: "symlink"
  readonly target: string
}

/** There is something, but nobody has said what. */
export interface Unknown {
  readonly kind: "unknown"
}

export type Node = File | Origin | Directory | Link | Unknown | { readonly kind: "nothing" }

export const nothing: Node = { kind: "nothing" }
export const unknown: Node = { kind: "unknown" }

/** What has come to light of the beginning. */
export type Known =
  | { readonly kind: "nothing" | "other" }
  | { readonly kind: "file"; readonly content: Content | undefined }
  /** Everything in it is known too. */
  | { readonly kind: "directory" }
  | { readonly kind: "symlink"; readonly target: string }

export class Beginning {
  /** The temporary names that the journal has told of, of all positions. */
  readonly hidden: Hidden
  readonly known = new Map<FsPath.FsPath, Known>()
  readonly #attributes = new Map<FsPath.FsPath, Attributes>()
  readonly #names = new Map<FsPath.FsPath, Set<string>>()
  readonly #spellings = new Map<FsPath.FsPath, FsPath.FsPath>()

  constructor(hidden = new Hidden()) {
    this.hidden = hidden
  }

  /** One path for all that differ in case alone: the one that came first. */
  spelt(path: FsPath.FsPath): FsPath.FsPath {
    const folded = FsPath.fold(path)
    const known = this.#spellings.get(folded)
    if (known === undefined) this.#spellings.set(folded, path)
    return known ?? path
  }

  /** What is known first is what was there. */
  reveal(path: FsPath.FsPath, known: Known): void {
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

  /** Of what is known to have been in it, or to have not. */
  namesIn(path: FsPath.FsPath): Iterable<string> {
    return this.#names.get(path) ?? []
  }

  clone(): Beginning {
    const copy = new Beginning(this.hidden)
    for (const path of this.#spellings.values()) copy.spelt(path)
    for (const [path, known] of this.known) copy.reveal(path, known)
    for (const [path, attributes] of this.#attributes) copy.#attributes.set(path, attributes)
    return copy
  }
}

const maxLinks = 40

const childOf = (node: Node, name: string, key: string): Node => {
  if (node.kind === "origin") return { kind: "origin", path: FsPath.join(node.path, name) }
  if (node.kind !== "directory") return nothing
  const found = node.entries.get(key)
  if (found !== undefined) return found.node
  return node.origin === undefined ? nothing : { kind: "origin", path: FsPath.join(node.origin, name) }
}

/** As one of which parts are known. */
const entered = (node: Node, isTouched = false): Directory =>
  node.kind === "directory"
    ? node
    : node.kind === "origin"
      ? { kind: "directory", entries: new Map(), origin: node.path, attributes: node.attributes, isTouched }
      : { kind: "directory", entries: new Map(), attributes: newAttributes(), isTouched }

/** The attributes of what can have some. */
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
  top: Directory

  constructor(caseSensitive: boolean, beginning = new Beginning(), top = entered({ kind: "origin", path: FsPath.root })) {
    this.caseSensitive = caseSensitive
    this.beginning = beginning
    this.top = top
  }

  key(name: string): string {
    return this.caseSensitive ? name : FsPath.fold(name)
  }

  child(node: Node, name: string): Node {
    const child = childOf(node, name, this.key(name))
    return this.caseSensitive || child.kind !== "origin" ? child : { ...child, path: this.beginning.spelt(child.path) }
  }

  get(path: FsPath.FsPath): Node {
    let node: Node = this.top
    for (const name of FsPath.segments(path)) node = this.child(node, name)
    return node
  }

  /** What stands in the way of it gives way. Not for the root. */
  set(path: FsPath.FsPath, node: Node): void {
    const names = FsPath.segments(path)
    const last = names.length - 1
    let here = this.top
    for (const [i, name] of names.entries()) {
      const key = this.key(name)
      const found = here.entries.get(key)
      const known = found === undefined || found.node.kind === "nothing" ? name : found.name
      if (i === last) {
        here.entries.set(key, { name: known, node })
        return
      }
      const next = entered(this.child(here, name))
      here.entries.set(key, { name: known, node: next })
      here = next
    }
  }

  enter(path: FsPath.FsPath): Directory {
    return path === FsPath.root ? this.top : entered(this.get(path), true)
  }

  /** Where a path leads through the links that are known. */
  follow(path: FsPath.FsPath, through: "last" | "parents"): FsPath.FsPath {
    const todo = [...FsPath.segments(path)].reverse()
    const here: Array<string> = []
    let hops = 0
    for (let name = todo.pop(); name !== undefined; name = todo.pop()) {
      if (name === "" || name === ".") continue
      if (name === "..") {
        here.pop()
        continue
      }
      const node = this.get(FsPath.fromSegments([...here, name]))
      if (node.kind !== "symlink" || (todo.length === 0 && through === "parents")) here.push(name)
      else if (++hops > maxLinks) return path
      else todo.push(...node.target.split("/").reverse())
    }
    return FsPath.fromSegments(here)
  }

  clone(): World {
    return new World(this.caseSensitive, this.beginning.clone(), cloneNode(this.top) as Directory)
  }

  /** The tree as it is, which further changes leave; of the beginning it goes on to learn. */
  keep(): World {
    return new World(this.caseSensitive, this.beginning, cloneNode(this.top) as Directory)
  }
}
