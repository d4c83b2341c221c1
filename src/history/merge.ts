/**
 * A three-way merge of trees. It only reads: it returns the new tree for `ours`, and the caller applies it as one
 * change.
 */
import * as Effect from "effect/Effect"
import { fold, type FsPath, join, root, segments } from "../model/FsPath.ts"
import { type Conflict, conflict } from "./merge/conflict.ts"
import { runInSlices } from "../runtime/steps.ts"
import { mergeText, type Side } from "./merge/text.ts"
import { type FileMerge, inPathOrder, mergeTrees } from "./merge/trees.ts"
import { findNode, blobId, type Change, differences, type DirectoryNode, type FileNode, type Node } from "./tree.ts"

export interface Source<E> {
  readonly tree: DirectoryNode
  readonly read: (path: FsPath, file: FileNode) => Effect.Effect<Uint8Array, E>
}

export interface TreeMergeOutcome<E> {
  readonly after: DirectoryNode
  readonly content: (path: FsPath, file: FileNode) => Effect.Effect<Uint8Array, E>
  readonly changes: ReadonlyArray<Change>
  readonly conflicts: ReadonlyArray<Conflict>
}

const MiB = 1024 * 1024

export interface Options<E> {
  readonly base: Source<E>
  readonly ours: Source<E>
  readonly theirs: Source<E>
  readonly caseSensitive: boolean
  /**
   * The resolution of conflicts: take one side's version, or change nothing at all.
   *
   * @default "fail"
   */
  readonly conflicts?: "ours" | "theirs" | "fail" | undefined
  /**
   * The size in bytes up to which a file is merged by lines.
   *
   * @default 32 MiB
   */
  readonly maxBytes?: number | undefined
}

const findSpelling = (tree: DirectoryNode, path: FsPath, caseSensitive: boolean): FsPath | undefined => {
  if (caseSensitive || findNode(tree, path) !== undefined) return path
  let node: Node | undefined = tree
  let out = root
  for (const segment of segments(path)) {
    if (node?.kind !== "directory") return undefined
    const { entries }: DirectoryNode = node
    const name: string | undefined = entries.has(segment)
      ? segment
      : [...entries.keys()].find((name) => fold(name) === fold(segment))
    if (name === undefined) return undefined
    node = entries.get(name)
    out = join(out, name)
  }
  return out
}

/** Reads a file that a source has at this path, in any spelling. Returns `undefined` if the source lacks the file. */
const readFileOf = <E>({ read, tree }: Source<E>, path: FsPath, file: FileNode, caseSensitive: boolean) => {
  const known = findSpelling(tree, path, caseSensitive)
  const node = known && findNode(tree, known)
  return node?.kind === "file" && node.id === file.id ? read(known!, node) : undefined
}

const missingFile = (path: FsPath) => Effect.die(new Error(`${JSON.stringify(path)} is no file of this merge`))

const replaceFiles = (
  top: DirectoryNode,
  files: ReadonlyArray<readonly [names: ReadonlyArray<string>, file: FileNode]>,
  depth = 0
) => {
  const below = new Map<string, Array<(typeof files)[number]>>()
  const entries = new Map(top.entries)
  for (const replaced of files) {
    const [names, file] = replaced
    const name = names[depth]!
    if (depth === names.length - 1) entries.set(name, file)
    else if (!below.get(name)?.push(replaced)) below.set(name, [replaced])
  }
  for (const [name, inside] of below) {
    const node = entries.get(name)
    if (node?.kind === "directory") entries.set(name, replaceFiles(node, inside, depth + 1))
  }
  const out: DirectoryNode = { kind: "directory", ...(top.mode === undefined ? undefined : { mode: top.mode }), entries }
  return out
}

interface MergedFile {
  readonly path: FsPath
  readonly bytes?: Uint8Array
  readonly conflict?: Conflict
}

const mergeFile = Effect.fnUntraced(function* <E>(
  options: Options<E>,
  file: FileMerge,
  prefer: Side
): Effect.fn.Return<MergedFile, E> {
  const { base, caseSensitive, maxBytes = 32 * MiB, ours, theirs } = options
  const { path } = file
  const sizes = [file.base?.sizeBytes ?? 0, file.ours.sizeBytes, file.theirs.sizeBytes]
  if (Math.max(...sizes) > maxBytes) return { path, conflict: conflict(path, "size", file) }
  const read = (source: Source<E>, node: FileNode | undefined) =>
    node === undefined ? Effect.succeed(new Uint8Array()) : (readFileOf(source, path, node, caseSensitive) ?? missingFile(path))
  const before = yield* read(base, file.base)
  const [mine, other] = [yield* read(ours, file.ours), yield* read(theirs, file.theirs)]
  const text = yield* runInSlices(() => mergeText(before, mine, other, prefer))
  if (text._tag === "Binary") return { path, conflict: conflict(path, "binary", file) }
  if (text._tag === "TooLarge") return { path, conflict: conflict(path, "size", file) }
  if (text._tag === "Merged") return { path, bytes: text.bytes }
  return { path, bytes: text.bytes, conflict: conflict(path, "content", file, { hunks: text.hunks }) }
})

/** Merges the changes from `base` to `theirs` into `ours`. Fails only if a source fails. */
export const merge = Effect.fnUntraced(function* <E>(options: Options<E>): Effect.fn.Return<TreeMergeOutcome<E>, E> {
  const { base, caseSensitive, conflicts: policy = "fail", ours, theirs } = options
  const prefer = policy === "theirs" ? "theirs" : "ours"
  const trees = mergeTrees({ base: base.tree, ours: ours.tree, theirs: theirs.tree, caseSensitive, prefer })
  const conflicts = [...trees.conflicts]
  const files: Array<readonly [names: ReadonlyArray<string>, file: FileNode]> = []
  const texts = new Map<FsPath, Uint8Array>()
  for (const file of trees.toMerge) {
    const { bytes, conflict, path } = yield* mergeFile(options, file, prefer)
    if (conflict !== undefined) conflicts.push(conflict)
    const there = findNode(trees.merged, path)
    if (bytes === undefined || there?.kind !== "file") continue
    const id = blobId(bytes)
    if (id === there.id) continue
    files.push([segments(path), { ...there, sizeBytes: bytes.length, id }])
    texts.set(path, bytes)
  }
  if (policy === "fail" && conflicts.length > 0) {
    return { after: ours.tree, content: ours.read, changes: [], conflicts: inPathOrder(conflicts) }
  }
  const after = files.length === 0 ? trees.merged : replaceFiles(trees.merged, files)
  const content = (path: FsPath, file: FileNode): Effect.Effect<Uint8Array, E> => {
    const known = findNode(after, path)
    if (known?.kind !== "file" || known.id !== file.id) return missingFile(path)
    const text = texts.get(path)
    if (text !== undefined) return Effect.succeed(text)
    return readFileOf(ours, path, file, caseSensitive) ?? readFileOf(theirs, path, file, caseSensitive) ?? missingFile(path)
  }
  return { after, content, changes: differences(ours.tree, after, caseSensitive), conflicts: inPathOrder(conflicts) }
})
