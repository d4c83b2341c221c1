/** A three-way merge of trees. The merge returns the new tree for `ours`, and the caller applies the tree as one change. */
import * as Effect from "effect/Effect"
import { below, compare, fold, type FsPath, join, root, segments } from "../model/FsPath.ts"
import { runInSlices } from "../runtime/steps.ts"
import { type Conflict, conflict, mergeText, type Side, type Versions } from "./mergeText.ts"
import {
  blobId,
  type Change,
  differences,
  type DirectoryNode,
  emptyDirectory,
  type FileNode,
  findNode,
  forEachDifference,
  isSameNode,
  type LinkNode,
  type Node
} from "./tree.ts"

// `mergeTrees` reads no file. If only one side changed an entry, the result shares the node of that side. The content, mode,
// target and spelling of an entry are merged separately.

/**
 * A file that both sides changed or added. Until the contents are merged, the merged tree has the content of the preferred
 * side.
 */
interface FileMerge {
  readonly path: FsPath
  readonly base: FileNode | undefined
  readonly ours: FileNode
  readonly theirs: FileNode
}

interface TreeMerge {
  readonly merged: DirectoryNode
  readonly toMerge: ReadonlyArray<FileMerge>
  readonly conflicts: ReadonlyArray<Conflict>
}

interface MergeState {
  readonly caseSensitive: boolean
  readonly prefer: Side
  readonly toMerge: Array<FileMerge>
  readonly conflicts: Array<Conflict>
}

type Maybe<A> = A | undefined

const isDirectory = (node: Maybe<Node>): node is DirectoryNode => node?.kind === "directory"
const isFile = (node: Maybe<Node>): node is FileNode => node?.kind === "file"
const isLink = (node: Maybe<Node>): node is LinkNode => node?.kind === "symlink"

const isKnownEqual = (a: Maybe<DirectoryNode>, b: DirectoryNode): boolean =>
  a !== undefined && (a.entries === b.entries || (a.id !== undefined && a.id === b.id))

const isEqual = (a: Maybe<Node>, b: Maybe<Node>): boolean => {
  if (a === b) return true
  if (a === undefined || b === undefined || !isSameNode(a, b)) return false
  if (!isDirectory(a) || !isDirectory(b) || isKnownEqual(a, b)) return true
  if (a.entries.size !== b.entries.size) return false
  for (const [name, node] of a.entries) if (!isEqual(node, b.entries.get(name))) return false
  return true
}

/**
 * Returns the entries that one side changed or added in a directory. Omits removed entries, because they do not conflict with a
 * removal of the directory.
 */
const changedPaths = (path: FsPath, base: DirectoryNode, side: DirectoryNode): ReadonlyArray<FsPath> => {
  const out: Array<FsPath> = []
  forEachDifference(base, side, (at, _, after) => {
    if (after !== undefined) out.push(below(path, at))
  })
  return out.sort(compare)
}

const preferredNode = ({ prefer }: MergeState, { ours, theirs }: Versions): Maybe<Node> => (prefer === "ours" ? ours : theirs)

const mergeKinds = (state: MergeState, path: FsPath, versions: Versions): Maybe<Node> => {
  const { base, ours, theirs } = versions
  if (isEqual(base, ours)) return theirs
  if (ours === theirs || isEqual(base, theirs)) return ours
  const kept = isDirectory(ours) ? ours : isDirectory(theirs) ? theirs : undefined
  const paths = isDirectory(base) && kept !== undefined ? changedPaths(path, base, kept) : undefined
  if (paths?.length === 0) return kept === ours ? theirs : ours
  const reason = base !== undefined && (ours === undefined || theirs === undefined) ? "deleted" : "kind"
  state.conflicts.push(conflict(path, reason, versions, paths === undefined ? undefined : { paths }))
  return preferredNode(state, versions)
}

type WithMode = FileNode | DirectoryNode

const mergeMode = (state: MergeState, path: FsPath, base: Maybe<WithMode>, ours: WithMode, theirs: WithMode): Maybe<number> => {
  if (ours.mode === undefined) return theirs.mode
  if (theirs.mode === undefined || ours.mode === theirs.mode || base?.mode === theirs.mode) return ours.mode
  if (base?.mode === ours.mode) return theirs.mode
  state.conflicts.push(conflict(path, "mode", { base, ours, theirs }))
  return state.prefer === "ours" ? ours.mode : theirs.mode
}

const withMode = (mode: Maybe<number>) => (mode === undefined ? undefined : { mode })

const mergeFiles = (state: MergeState, path: FsPath, base: Maybe<FileNode>, ours: FileNode, theirs: FileNode): FileNode => {
  const mode = mergeMode(state, path, base, ours, theirs)
  const isOurs = ours.id === theirs.id || base?.id === theirs.id
  if (!isOurs && base?.id !== ours.id) state.toMerge.push({ path, base, ours, theirs })
  const from = isOurs || (base?.id !== ours.id && state.prefer === "ours") ? ours : theirs
  return from.mode === mode ? from : { kind: "file", ...withMode(mode), sizeBytes: from.sizeBytes, id: from.id }
}

const mergeLinks = (state: MergeState, path: FsPath, base: Maybe<LinkNode>, ours: LinkNode, theirs: LinkNode): LinkNode => {
  if (ours.target === theirs.target || base?.target === theirs.target) return ours
  if (base?.target === ours.target) return theirs
  state.conflicts.push(conflict(path, "link", { base, ours, theirs }))
  return state.prefer === "ours" ? ours : theirs
}

const mergeDirectories = (
  state: MergeState,
  path: FsPath,
  base: Maybe<DirectoryNode>,
  ours: DirectoryNode,
  theirs: DirectoryNode
): DirectoryNode => {
  const mode = mergeMode(state, path, base, ours, theirs)
  const entries =
    isKnownEqual(ours, theirs) || isKnownEqual(base, theirs)
      ? ours.entries
      : isKnownEqual(base, ours)
        ? theirs.entries
        : mergeEntries(state, path, base ?? emptyDirectory, ours, theirs)
  for (const side of [ours, theirs]) if (side.entries === entries && side.mode === mode) return side
  return { kind: "directory", ...withMode(mode), entries }
}

const mergeNodes = (state: MergeState, path: FsPath, versions: Versions): Maybe<Node> => {
  const { base, ours, theirs } = versions
  if (isDirectory(ours) && isDirectory(theirs)) {
    return mergeDirectories(state, path, isDirectory(base) ? base : undefined, ours, theirs)
  }
  if (isFile(ours) && isFile(theirs)) return mergeFiles(state, path, isFile(base) ? base : undefined, ours, theirs)
  if (isLink(ours) && isLink(theirs)) return mergeLinks(state, path, isLink(base) ? base : undefined, ours, theirs)
  return mergeKinds(state, path, versions)
}

interface NameTriple {
  readonly base?: string
  readonly ours?: string
  readonly theirs?: string
}

const sides = ["ours", "theirs", "base"] as const

/** Returns the case-folded names that two entries of one tree share. The merge compares the exact spellings of these entries. */
const ambiguousNames = (trees: ReadonlyArray<DirectoryNode>): ReadonlySet<string> => {
  const out = new Set<string>()
  for (const { entries } of trees) {
    const seen = new Set<string>()
    for (const name of entries.keys()) {
      const key = fold(name)
      if (seen.has(key)) out.add(key)
      seen.add(key)
    }
  }
  return out
}

const matchNames = (caseSensitive: boolean, trees: Record<(typeof sides)[number], DirectoryNode>): Iterable<NameTriple> => {
  const exact = caseSensitive ? undefined : ambiguousNames([trees.ours, trees.theirs, trees.base])
  const out = new Map<string, { -readonly [Key in keyof NameTriple]: NameTriple[Key] }>()
  for (const side of sides) {
    for (const name of trees[side].entries.keys()) {
      const folded = exact === undefined ? name : fold(name)
      const key = exact?.has(folded) ? `/${name}` : folded
      const triple = out.get(key)
      if (triple === undefined) out.set(key, { [side]: name })
      else triple[side] = name
    }
  }
  return out.values()
}

const mergeSpelling = ({ base, ours, theirs }: NameTriple): Maybe<string> => {
  if (ours === undefined || theirs === undefined) return ours ?? theirs ?? base
  return ours === theirs || base === theirs ? ours : base === ours ? theirs : undefined
}

const isRemovedAndRenamed = ({ base, ours, theirs }: NameTriple): boolean =>
  base !== undefined && (ours === undefined) !== (theirs === undefined) && (ours ?? theirs) !== base

const mergeEntries = (
  state: MergeState,
  path: FsPath,
  base: DirectoryNode,
  ours: DirectoryNode,
  theirs: DirectoryNode
): ReadonlyMap<string, Node> => {
  const out = new Map<string, Node>()
  const get = (from: DirectoryNode, name: Maybe<string>) => (name === undefined ? undefined : from.entries.get(name))
  for (const triple of matchNames(state.caseSensitive, { base, ours, theirs })) {
    const versions = { base: get(base, triple.base), ours: get(ours, triple.ours), theirs: get(theirs, triple.theirs) }
    const name = mergeSpelling(triple)
    const at = join(path, name ?? triple.ours!)
    if (name !== undefined && !isRemovedAndRenamed(triple)) {
      const node = mergeNodes(state, at, versions)
      if (node !== undefined) out.set(name, node)
      continue
    }
    state.conflicts.push(
      name === undefined
        ? conflict(at, "name", versions, { names: [triple.ours!, triple.theirs!] })
        : conflict(at, "deleted", versions)
    )
    const node = preferredNode(state, versions)
    if (node !== undefined) out.set(triple[state.prefer]!, node)
  }
  for (const side of [ours, theirs]) if (isSameEntries(out, side.entries)) return side.entries
  return out
}

const isSameEntries = (a: ReadonlyMap<string, Node>, b: ReadonlyMap<string, Node>): boolean => {
  if (a.size !== b.size) return false
  for (const [name, node] of a) if (b.get(name) !== node) return false
  return true
}

/** Keeps one of the entries whose names differ only in case: an entry of `ours`, or else the first. Reports conflicts. */
const dropCollisions = (state: MergeState, path: FsPath, merged: DirectoryNode, ours: Maybe<Node>): DirectoryNode => {
  if (merged === ours) return merged
  const own: ReadonlyMap<string, Node> = isDirectory(ours) ? ours.entries : emptyDirectory.entries
  const names = [...merged.entries.keys()].sort((a, b) => Number(own.has(b)) - Number(own.has(a)) || compare(a, b))
  const kept = new Map<string, string>()
  for (const name of names) {
    const first = kept.get(fold(name))
    if (first === undefined) kept.set(fold(name), name)
    else {
      const versions = { base: undefined, ours: merged.entries.get(first), theirs: merged.entries.get(name) }
      state.conflicts.push(conflict(join(path, name), "name", versions, { names: [first, name] }))
    }
  }
  const entries = new Map<string, Node>()
  for (const [name, node] of merged.entries) {
    if (kept.get(fold(name)) !== name) continue
    entries.set(name, isDirectory(node) ? dropCollisions(state, join(path, name), node, own.get(name)) : node)
  }
  return isSameEntries(entries, merged.entries) ? merged : { kind: "directory", ...withMode(merged.mode), entries }
}

/**
 * Merges the changes from `base` to `theirs` into `ours`. For each conflict, takes the version of the side `prefer`, by default
 * "ours".
 */
export const mergeTrees = (options: {
  readonly base: DirectoryNode
  readonly ours: DirectoryNode
  readonly theirs: DirectoryNode
  readonly caseSensitive: boolean
  readonly prefer?: Side | undefined
}): TreeMerge => {
  const { base, caseSensitive, ours, prefer = "ours", theirs } = options
  const state: MergeState = { caseSensitive, prefer, toMerge: [], conflicts: [] }
  const mergedRoot = mergeDirectories(state, root, base, ours, theirs)
  const merged = caseSensitive ? mergedRoot : dropCollisions(state, root, mergedRoot, ours)
  return { merged, toMerge: state.toMerge, conflicts: inPathOrder(state.conflicts) }
}

const inPathOrder = (conflicts: ReadonlyArray<Conflict>): ReadonlyArray<Conflict> =>
  conflicts.toSorted((a, b) => compare(a.path, b.path))

export interface Source<E> {
  readonly tree: DirectoryNode
  readonly read: (path: FsPath, file: FileNode) => Effect.Effect<Uint8Array, E>
}

interface TreeMergeOutcome<E> {
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
   * The side whose version is taken for each conflict. `fail` changes nothing if there is a conflict.
   *
   * @default "fail"
   */
  readonly conflicts?: "ours" | "theirs" | "fail" | undefined
  /**
   * The largest size, in bytes, of a file that is merged by lines.
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

/** Reads a file of a source at a path, whose case may differ. Returns `undefined` if the source has no such file there. */
const readFileOf = <E>({ read, tree }: Source<E>, path: FsPath, file: FileNode, caseSensitive: boolean) => {
  const known = findSpelling(tree, path, caseSensitive)
  const node = known && findNode(tree, known)
  return node?.kind === "file" && node.id === file.id ? read(known!, node) : undefined
}

const missingFile = (path: FsPath) => Effect.die(new Error(`${JSON.stringify(path)} is not a file in the merged tree`))

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
