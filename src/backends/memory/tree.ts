/**
 * A filesystem in memory as a tree of nodes.
 *
 * A capture keeps the root and gives the tree a new `owner`. Nodes of an old owner are copied before their first
 * change.
 *
 * All functions are synchronous, so no change is ever visible in part. A function that fails returns a fault instead of
 * throwing, which is cheaper.
 */
import { alreadyExists, directoryNotEmpty, diskFull, notADirectory, notAFile, notFound } from "../../model/Fault.ts"
import { intoItself, isRoot, linkMode } from "../faults.ts"
import type * as DateTime from "effect/DateTime"
import type { WatchEvent } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath, isWithin, join, name, root } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import { inWalkOrder } from "../../port/explorer.ts"
import { Buffer } from "../../runtime/buffer.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import * as Content from "./content.ts"
import * as Children from "./hashTrie.ts"

interface NodeFields {
  readonly key: string
  readonly hash: number
  readonly name: string
  readonly owner: object
  readonly createdAt: DateTime.Utc
  modifiedAt: DateTime.Utc
  mode: number
}

export interface File extends NodeFields {
  readonly kind: "file"
  content: Content.Content
}

export interface Directory extends NodeFields {
  readonly kind: "directory"
  children: Children.Children<Node>
  size: number
  /** The children in walk order, or `undefined` if no walk has sorted them since the last change of a child. */
  ordered: ReadonlyArray<ListedNode> | undefined
}

interface Link extends NodeFields {
  readonly kind: "symlink"
  readonly target: string
  readonly sizeBytes: number
}

export type Node = File | Directory | Link

export interface Captured {
  readonly root: Directory
}

export interface Listener {
  readonly isActive: () => boolean
  readonly emit: (tag: WatchEvent["_tag"], path: FsPath) => void
}

interface Removed {
  readonly deleted: number
  readonly directories: number
}

export interface MemoryTree {
  /** Returns the node at a path. Returns `undefined` if the path does not exist, or if a file or symlink is above it. */
  readonly get: (path: FsPath) => Node | undefined
  readonly write: (
    path: FsPath,
    content: Content.Content,
    mode: "create" | "replace" | "append",
    now: DateTime.Utc
  ) => File | Fault
  readonly makeDirectory: (path: FsPath, now: DateTime.Utc) => Fault | undefined
  readonly makeLink: (path: FsPath, target: string, now: DateTime.Utc) => Fault | undefined
  readonly remove: (path: FsPath, now: DateTime.Utc) => Fault | undefined
  readonly removeTree: (path: FsPath, now: DateTime.Utc) => Removed | Fault
  readonly rename: (from: FsPath, to: FsPath, replace: boolean, now: DateTime.Utc) => Fault | undefined
  readonly setAttributes: (
    path: FsPath,
    attributes: { readonly mode?: number | undefined; readonly modifiedAt?: DateTime.Utc | undefined }
  ) => Fault | undefined
  /** Captures the tree. Takes microseconds for a tree of any size. */
  readonly capture: () => Captured
  /** Restores a captured tree. Takes microseconds, unless a listener must receive every difference. */
  readonly restore: (captured: Captured) => void
  /**
   * Makes each path and everything below it equal to a capture. Removes entries that the capture lacks.
   *
   * Missing directories above a path are created with the attributes of the captured directories. If another kind of
   * entry is above the path, a directory replaces it.
   */
  readonly restorePaths: (captured: Captured, paths: ReadonlyArray<FsPath>, now: DateTime.Utc) => void
}

export const isFault = <A extends object>(result: A | Fault): result is Fault => "_tag" in result

const permissions = 0o7777

export const sizeOf = (node: Node): number =>
  node.kind === "file" ? node.content.length : node.kind === "symlink" ? node.sizeBytes : 0

export const noChildren: Pick<Directory, "children" | "size" | "ordered"> = {
  children: Children.empty,
  size: 0,
  ordered: undefined
}

/**
 * An entry in the form that walks use. The entry reads its size from the node at each access, so all walks can share the entry
 * until its directory changes.
 */
export class ListedNode implements Child {
  readonly name: string
  readonly kind: Node["kind"]
  readonly addressable = true
  readonly #node: Node

  constructor(node: Node) {
    this.name = node.name
    this.kind = node.kind
    this.#node = node
  }

  get sizeBytes(): number {
    return sizeOf(this.#node)
  }

  /** The content of the file, which stays current until the `ordered` of the directory changes. */
  get content(): Content.Content | undefined {
    return this.#node.kind === "file" ? this.#node.content : undefined
  }
}

/** Returns the children in walk order. Sorts the children only at the first call after a change of the directory. */
export const inOrder = (self: Directory, caseSensitive: boolean): ReadonlyArray<ListedNode> => {
  if (self.ordered === undefined) {
    const children: Array<ListedNode> = []
    Children.forEach(self.children, (node) => children.push(new ListedNode(node)))
    self.ordered = inWalkOrder(children, caseSensitive)
  }
  return self.ordered
}

const childrenOf = (node: Node | undefined): Children.Children<Node> =>
  node?.kind === "directory" ? node.children : Children.empty

export const forEachDifference = (
  before: Directory,
  after: Directory,
  visit: (path: FsPath, before: Node | undefined, after: Node | undefined) => void
): void => {
  const pending: Array<readonly [path: FsPath, before: Node | undefined, after: Node | undefined]> = [[root, before, after]]
  while (pending.length > 0) {
    const [path, before, after] = pending.pop()!
    visit(path, before, after)
    Children.forEachDifference<Node>(childrenOf(before), childrenOf(after), (before, after) => {
      // Names that differ only in case count as different names here, although they may have the same key.
      const isSame = before?.name === after?.name
      if (before !== undefined) pending.push([join(path, before.name), before, isSame ? after : undefined])
      if (after !== undefined && !isSame) pending.push([join(path, after.name), undefined, after])
    })
  }
}

const emitDifferences = (before: Directory, after: Directory, emit: Listener["emit"]): void => {
  const removed: Array<FsPath> = []
  const present: Array<readonly [tag: "Created" | "Updated", path: FsPath]> = []
  forEachDifference(before, after, (path, before, after) => {
    const isSameKind = before?.kind === after?.kind
    if (before !== undefined && !isSameKind) removed.push(path)
    if (after === undefined) return
    if (!isSameKind) present.push(["Created", path])
    else if (after.kind !== "directory" || before?.mode !== after.mode) present.push(["Updated", path])
  })
  for (let i = removed.length - 1; i >= 0; i--) emit("Removed", removed[i]!)
  for (const [tag, path] of present) emit(tag, path)
}

export const find = (top: Directory, key: FsPath): Node | undefined => {
  if (key === root) return top
  let at: Node | undefined = top
  for (let start = 0; start <= key.length;) {
    if (at?.kind !== "directory") return undefined
    const slash = key.indexOf("/", start)
    const end = slash === -1 ? key.length : slash
    at = Children.get<Node>(at.children, key, start, end)
    start = end + 1
  }
  return at
}

export const make = (options: {
  readonly now: DateTime.Utc
  readonly caseInsensitive: boolean
  readonly listener: Listener
}): MemoryTree => {
  const { caseInsensitive: folds, listener } = options
  let owner: object = {}
  let top: Directory = {
    kind: "directory",
    key: "",
    hash: 0,
    name: "",
    owner,
    createdAt: options.now,
    modifiedAt: options.now,
    mode: 0o755,
    ...noChildren
  }

  const keyOf = <Text extends string>(text: Text): Text => (folds ? fold(text) : text)

  const emit = (tag: WatchEvent["_tag"], path: FsPath): void => {
    if (listener.isActive()) listener.emit(tag, path)
  }

  /**
   * A cache of the directory that was found last, and of the prefix of the paths in this directory. The next access is
   * usually in the same directory.
   *
   * The cache cannot become stale, because every change first looks up the directory of its entry. Only a restore does
   * not, and resets the cache.
   */
  let lastDirectory = top
  let lastPrefix = ""

  const cacheDirectory = (key: string, slash: number, directory: Directory): Directory => {
    lastPrefix = key.slice(0, slash + 1)
    return (lastDirectory = directory)
  }

  const setTop = (directory: Directory): Directory => {
    lastPrefix = ""
    return (top = lastDirectory = directory)
  }

  const findParent = (key: string, slash: number): Directory | undefined => {
    const isNear = key.startsWith(lastPrefix)
    let at = isNear ? lastDirectory : top
    for (let start = isNear ? lastPrefix.length : 0; start <= slash;) {
      const end = key.indexOf("/", start)
      const next = Children.get(at.children, key, start, end)
      if (next?.kind !== "directory") return undefined
      at = next
      start = end + 1
    }
    return cacheDirectory(key, slash, at)
  }

  const get = (path: FsPath): Node | undefined => {
    if (path === root) return top
    const key = keyOf(path)
    const slash = key.lastIndexOf("/")
    const holder = findParent(key, slash)
    return holder && Children.get(holder.children, key, slash + 1, key.length)
  }

  const ownTop = (): Directory => (top.owner === owner ? top : setTop({ ...top, owner }))

  /**
   * Returns the parent directory of a path in a form that may be changed. Copies directories of other owners. All
   * directories above a directory of the current owner also belong to this owner.
   */
  const ownedParentOf = (path: FsPath): Directory | Fault => {
    const key = keyOf(path)
    const slash = key.lastIndexOf("/")
    const isNear = lastDirectory.owner === owner && key.startsWith(lastPrefix)
    let at = isNear ? lastDirectory : ownTop()
    for (let start = isNear ? lastPrefix.length : 0; start <= slash;) {
      const end = key.indexOf("/", start)
      const next = Children.get(at.children, key, start, end)
      if (next === undefined) return notFound
      if (next.kind !== "directory") return notADirectory
      at = own(at, next)
      start = end + 1
    }
    return cacheDirectory(key, slash, at)
  }

  const own = <N extends Node>(holder: Directory, node: N): N =>
    node.owner === owner ? node : putNode(holder, { ...node, owner })

  const putNode = <N extends Node>(holder: Directory, node: N): N => {
    holder.children = Children.set<Node>(holder.children, node, owner)
    holder.ordered = undefined
    return node
  }

  const childOf = (holder: Directory, path: FsPath): Node | undefined => {
    const key = keyOf(path)
    return Children.get(holder.children, key, key.lastIndexOf("/") + 1, key.length)
  }

  const named = (path: FsPath): Pick<NodeFields, "name" | "key" | "hash" | "owner"> => {
    const own = name(path)
    const key = keyOf(own)
    return { name: own, key, hash: Children.hashOf(key, 0, key.length), owner }
  }

  const insert = <N extends Node>(holder: Directory, node: N, now: DateTime.Utc): N => {
    holder.size++
    holder.modifiedAt = now
    return putNode(holder, node)
  }

  const detach = (holder: Directory, node: Node, now: DateTime.Utc): void => {
    holder.size--
    holder.modifiedAt = now
    holder.ordered = undefined
    holder.children = holder.size === 0 ? Children.empty : Children.remove<Node>(holder.children, node, owner)
  }

  const parentForNew = (path: FsPath): Directory | Fault => {
    if (path === root) return alreadyExists
    const holder = ownedParentOf(path)
    return isFault(holder) || childOf(holder, path) === undefined ? holder : alreadyExists
  }

  const findEntry = (path: FsPath): { readonly holder: Directory; readonly node: Node } | undefined => {
    const holder = ownedParentOf(path)
    const node = isFault(holder) ? undefined : childOf(holder, path)
    return node && { holder: holder as Directory, node }
  }

  const write: MemoryTree["write"] = (path, content, mode, now) => {
    if (path === root) return mode === "create" ? alreadyExists : notAFile
    const holder = ownedParentOf(path)
    if (isFault(holder)) return holder
    const found = childOf(holder, path)
    if (found === undefined) {
      const file: File = { kind: "file", ...named(path), createdAt: now, modifiedAt: now, mode: 0o644, content }
      insert(holder, file, now)
      emit("Created", path)
      return file
    }
    if (mode === "create") return alreadyExists
    if (found.kind !== "file") return notAFile
    const next = mode === "replace" ? content : Content.append(found.content, Content.view(content))
    if (next === undefined) return diskFull
    const file = own(holder, found)
    file.content = next
    file.modifiedAt = now
    emit("Updated", path)
    return file
  }

  const makeDirectory: MemoryTree["makeDirectory"] = (path, now) => {
    const holder = parentForNew(path)
    if (isFault(holder)) return holder
    const times = { createdAt: now, modifiedAt: now }
    insert(holder, { kind: "directory", ...named(path), ...times, mode: 0o755, ...noChildren }, now)
    emit("Created", path)
    return undefined
  }

  const makeLink: MemoryTree["makeLink"] = (path, target, now) => {
    const holder = parentForNew(path)
    if (isFault(holder)) return holder
    const times = { createdAt: now, modifiedAt: now }
    const sizeBytes = Buffer.byteLength(target)
    insert(holder, { kind: "symlink", ...named(path), ...times, mode: 0o777, target, sizeBytes }, now)
    emit("Created", path)
    return undefined
  }

  const remove: MemoryTree["remove"] = (path, now) => {
    if (path === root) return isRoot
    const found = findEntry(path)
    if (found === undefined) return notFound
    if (found.node.kind === "directory" && found.node.size > 0) return directoryNotEmpty
    detach(found.holder, found.node, now)
    emit("Removed", path)
    return undefined
  }

  const removeTree: MemoryTree["removeTree"] = (path, now) => {
    if (path === root) return isRoot
    const found = findEntry(path)
    if (found === undefined) return notFound
    detach(found.holder, found.node, now)
    let deleted = 0
    let directories = 0
    const removedPaths: Array<FsPath> = []
    const listening = listener.isActive()
    const pending: Array<readonly [path: FsPath, node: Node]> = [[path, found.node]]
    while (pending.length > 0) {
      const [at, node] = pending.pop()!
      if (listening) removedPaths.push(at)
      if (node.kind === "directory") {
        directories++
        Children.forEach(node.children, (child) => pending.push([listening ? join(at, child.name) : at, child]))
      } else if (!TemporaryNames.isOwnName(node.name)) deleted++
    }
    for (let i = removedPaths.length - 1; i >= 0; i--) listener.emit("Removed", removedPaths[i]!)
    return { deleted, directories }
  }

  const rename: MemoryTree["rename"] = (from, to, replace, now) => {
    if (from === root || to === root) return isRoot
    const source = findEntry(from)
    if (source === undefined) return notFound
    const { node } = source
    const [fromKey, toKey] = [keyOf(from), keyOf(to)]
    if (fromKey !== toKey && node.kind === "directory" && isWithin(fromKey, toKey)) return intoItself
    const holder = ownedParentOf(to)
    if (isFault(holder)) return holder
    const target = childOf(holder, to)
    // An entry may be renamed to its own name in another case. In the same case, the name already exists.
    if (target === node && name(to) === node.name) return replace ? undefined : alreadyExists
    if (target !== undefined && target !== node) {
      if (!replace) return alreadyExists
      if (node.kind === "directory" && target.kind !== "directory") return notADirectory
      if (node.kind !== "directory" && target.kind === "directory") return notAFile
      if (target.kind === "directory" && target.size > 0) return directoryNotEmpty
      detach(holder, target, now)
    }
    detach(source.holder, node, now)
    // The new entry keeps the case of the replaced name, as in a write.
    const replaced = target !== undefined && target !== node ? { name: target.name } : undefined
    insert(holder, { ...node, ...named(to), ...replaced }, now)
    emit("Removed", from)
    emit("Created", to)
    return undefined
  }

  const ownedNodeAt = (path: FsPath): Node | undefined => {
    if (path === root) return ownTop()
    const found = findEntry(path)
    return found && own(found.holder, found.node)
  }

  const setAttributes: MemoryTree["setAttributes"] = (path, { mode, modifiedAt }) => {
    const node = ownedNodeAt(path)
    if (node === undefined) return notFound
    if (node.kind === "symlink" && mode !== undefined) return linkMode
    if (mode !== undefined) node.mode = mode & permissions
    if (modifiedAt !== undefined) node.modifiedAt = modifiedAt
    emit("Updated", path)
    return undefined
  }

  const capture: MemoryTree["capture"] = () => {
    owner = {}
    return { root: top }
  }

  const restore: MemoryTree["restore"] = (captured) => {
    const before = top
    const after = setTop(captured.root)
    if (listener.isActive()) emitDifferences(before, after, listener.emit)
  }

  const restorePath = ({ root: from }: Captured, path: FsPath, now: DateTime.Utc): void => {
    const key = keyOf(path)
    const source = find(from, key)
    if (get(path) === source) return
    let at = ownTop()
    const slash = key.lastIndexOf("/")
    for (let start = 0; start <= slash;) {
      const end = key.indexOf("/", start)
      const existing = Children.get(at.children, key, start, end)
      if (existing?.kind === "directory") at = own(at, existing)
      else {
        if (existing !== undefined) detach(at, existing, now)
        const capturedDirectory = find(from, key.slice(0, end) as FsPath) as Directory
        at = insert(at, { ...capturedDirectory, owner, ...noChildren }, now)
      }
      start = end + 1
    }
    const existing = childOf(at, path)
    if (existing !== undefined) detach(at, existing, now)
    if (source !== undefined) insert(at, source, now)
  }

  const restorePaths: MemoryTree["restorePaths"] = (captured, paths, now) => {
    if (paths.includes(root)) return restore(captured)
    const before = listener.isActive() ? capture().root : undefined
    for (const path of paths) {
      restorePath(captured, path, now)
      // Forget the cached directory, which may have been removed.
      setTop(top)
    }
    if (before !== undefined) emitDifferences(before, top, listener.emit)
  }

  return {
    get,
    write,
    makeDirectory,
    makeLink,
    remove,
    removeTree,
    rename,
    setAttributes,
    capture,
    restore,
    restorePaths
  }
}
