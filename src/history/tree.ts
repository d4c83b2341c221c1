/**
 * Immutable trees that are captured, compared and restored.
 *
 * The content of a file is identified by its git id on every backend. So two trees can be compared without reading files.
 */
import type * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import { Buffer } from "../runtime/buffer.ts"
import { compare, fold, type FsPath, join, root, segments } from "../model/FsPath.ts"
import { hasherOf, idOf } from "./git/objects.ts"

export interface FileNode {
  readonly kind: "file"
  /** The POSIX permission bits. Absent if the backend has no permission bits. */
  readonly mode?: number | undefined
  readonly sizeBytes: number
  /**
   * The id that git gives to a blob with this content: 40 hexadecimal digits. Empty for a file of an archive whose content
   * is only checked when the file is staged.
   */
  readonly id: string
  /** The modification time that a restore gives to the file. Comparisons ignore the time. */
  readonly modifiedAt?: DateTime.Utc | undefined
}

export interface LinkNode {
  readonly kind: "symlink"
  readonly target: string
}

export interface DirectoryNode {
  readonly kind: "directory"
  readonly mode?: number | undefined
  readonly entries: ReadonlyMap<string, Node>
  /** The id of the directory, if it was computed. Directories with equal ids are equal with everything below them. */
  readonly id?: string | undefined
}

/** An entry of a tree. A tree cannot contain FIFOs, sockets or devices. */
export type Node = FileNode | LinkNode | DirectoryNode

/**
 * A difference between two trees at one path.
 *
 * @since 0.1.0
 */
export interface Change {
  readonly _tag: "Added" | "Modified" | "Removed"
  readonly path: FsPath
}
/** @since 0.1.0 */
export const Change: Schema.Codec<Change, { readonly _tag: Change["_tag"]; readonly path: string }> = Schema.Struct({
  _tag: Schema.Literals(["Added", "Modified", "Removed"]),
  // The path may contain the `Child.key` of a name that is not text, which the schema `FsPath` rejects.
  path: Schema.String as unknown as Schema.Codec<FsPath, string>
})

export const blobId = (bytes: Uint8Array): string => idOf("blob", bytes)

export const blobHasher = (size: number) => hasherOf("blob", size)

const sameMode = (a: { readonly mode?: number | undefined }, b: { readonly mode?: number | undefined }): boolean =>
  a.mode === undefined || b.mode === undefined || a.mode === b.mode

/** Tests whether two nodes are equal. An unknown mode equals every mode. The entries of directories are not compared. */
export const isSameNode = (a: Node, b: Node): boolean => {
  if (a.kind === "symlink") return b.kind === "symlink" && a.target === b.target
  if (b.kind === "symlink" || !sameMode(a, b)) return false
  if (a.kind === "directory") return b.kind === "directory"
  return b.kind === "file" && a.id === b.id && a.sizeBytes === b.sizeBytes
}

export const emptyDirectory: DirectoryNode = { kind: "directory", entries: new Map() }

/**
 * Calls `visit` for each difference, with the nodes of both sides. If a directory exists on one side only, each entry below it
 * is visited too.
 */
export const forEachDifference = (
  before: DirectoryNode,
  after: DirectoryNode,
  visit: (path: FsPath, before: Node | undefined, after: Node | undefined) => void
): void => {
  const pending: Array<readonly [path: FsPath, before: Node | undefined, after: Node | undefined]> = [[root, before, after]]
  while (pending.length > 0) {
    const [path, a, b] = pending.pop()!
    if (a === undefined || b === undefined || !isSameNode(a, b)) visit(path, a, b)
    const inside = a?.kind === "directory" ? a : emptyDirectory
    const other = b?.kind === "directory" ? b : emptyDirectory
    if (inside === other || (inside.id !== undefined && inside.id === other.id)) continue
    for (const [name, node] of inside.entries) pending.push([join(path, name), node, other.entries.get(name)])
    for (const [name, node] of other.entries) if (!inside.entries.has(name)) pending.push([join(path, name), undefined, node])
  }
}

/** Returns the differences in path order, one per path. An entry whose kind changed is `Modified`. */
export const differences = (before: DirectoryNode, after: DirectoryNode, caseSensitive: boolean): ReadonlyArray<Change> => {
  const out: Array<Change> = []
  forEachDifference(before, after, (path, a, b) =>
    out.push({ _tag: a === undefined ? "Added" : b === undefined ? "Removed" : "Modified", path })
  )
  return sortByPath(out, caseSensitive)
}

export const sortByPath = (changes: Array<Change>, caseSensitive: boolean): ReadonlyArray<Change> =>
  changes.sort(
    caseSensitive ? (a, b) => compare(a.path, b.path) : (a, b) => compare(fold(a.path), fold(b.path)) || compare(a.path, b.path)
  )

const nameIn = (entries: ReadonlyMap<string, Node>, segment: string, caseSensitive: boolean): string => {
  if (caseSensitive || entries.has(segment)) return segment
  const folded = fold(segment)
  for (const name of entries.keys()) if (fold(name) === folded) return name
  return segment
}

const withoutId = ({ entries, mode }: DirectoryNode): DirectoryNode => ({
  kind: "directory",
  entries,
  ...(mode === undefined ? undefined : { mode })
})

export const findNode = (top: DirectoryNode, path: FsPath, caseSensitive = true): Node | undefined => {
  let node: Node | undefined = top
  for (const segment of segments(path)) {
    if (node?.kind !== "directory") return undefined
    node = node.entries.get(nameIn(node.entries, segment, caseSensitive))
  }
  return node
}

/**
 * Returns a copy of the tree in which the node at a path is replaced or removed. Creates missing directories. The path must not
 * be the root.
 */
export const withNode = (top: DirectoryNode, path: FsPath, node: Node | undefined): DirectoryNode => {
  const setAt = (here: DirectoryNode, [name, ...rest]: ReadonlyArray<string>): DirectoryNode => {
    const there = here.entries.get(name!)
    const next = rest.length === 0 ? node : setAt(there?.kind === "directory" ? there : emptyDirectory, rest)
    const entries = new Map(here.entries)
    if (next === undefined) entries.delete(name!)
    else entries.set(name!, next)
    return { ...withoutId(here), entries }
  }
  return setAt(top, segments(path))
}

/**
 * Returns a copy of `top` in which the entry at the path `names` comes from `from`, with the spelling of `from`. The path must
 * exist in at least one of the trees.
 */
const graftAt = (
  top: DirectoryNode,
  names: ReadonlyArray<string>,
  from: Node | undefined,
  caseSensitive: boolean
): DirectoryNode => {
  const [segment, ...rest] = names as [string, ...Array<string>]
  const theirs = from?.kind === "directory" ? from.entries : emptyDirectory.entries
  const [name, source] = [nameIn(top.entries, segment, caseSensitive), nameIn(theirs, segment, caseSensitive)]
  const there = top.entries.get(name)
  const given = theirs.get(source)
  let next = given
  if (rest.length > 0) {
    const base = there?.kind === "directory" ? there : { ...withoutId(given as DirectoryNode), entries: new Map() }
    next = graftAt(base, rest, given, caseSensitive)
  }
  const entries = new Map(top.entries)
  entries.delete(name)
  if (next !== undefined) entries.set(given === undefined ? name : source, next)
  return { ...withoutId(top), entries }
}

/**
 * Returns a copy of `onto` in which each path, with everything below it, comes from `from`. A path that `from` does not
 * contain is removed.
 *
 * Missing parent directories are created with the attributes that they have in `from`. If a parent is not a directory, a
 * directory replaces it.
 */
export const graft = (
  onto: DirectoryNode,
  from: DirectoryNode,
  paths: ReadonlyArray<FsPath>,
  caseSensitive: boolean
): DirectoryNode => {
  let out = onto
  for (const path of paths) {
    if (path === root) return from
    const isNowhere = findNode(from, path, caseSensitive) === undefined && findNode(out, path, caseSensitive) === undefined
    if (!isNowhere) out = graftAt(out, segments(path), from, caseSensitive)
  }
  return out
}

export const countFiles = (top: DirectoryNode): { readonly files: number; readonly bytes: number } => {
  let files = 0
  let bytes = 0
  const pending: Array<DirectoryNode> = [top]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const node of next.entries.values()) {
      if (node.kind === "directory") pending.push(node)
      else {
        files++
        bytes += node.kind === "file" ? node.sizeBytes : Buffer.byteLength(node.target)
      }
    }
  }
  return { files, bytes }
}
