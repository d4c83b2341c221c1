/**
 * The two trees of an undo: the current one and the target, both reduced to their differences. An entry of the beginning is read from the
 * place to which it was moved, or from the contents in the journal.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as DateTime from "effect/DateTime"
import * as Read from "../../engine/read.ts"
import { blobHasher, type Node as TreeNode } from "../../history/tree.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { content, type ContentError, digest, notRecorded, type Source } from "./contents.ts"
import { type Attributes, attributesOf, type Directory, type Node, type World } from "./world.ts"

const chunkSize = 65_536

export type Bytes = Stream.Stream<Uint8Array, ContentError>

export interface UndoContext {
  readonly port: Backend
  readonly source: Source
  readonly beginning: World["beginning"]
  readonly targetWorld: World
  readonly now: World
  /** The current places of entries of the beginning, for entries that were moved or changed, by their original path. */
  readonly currentPaths: ReadonlyMap<FsPath.FsPath, FsPath.FsPath>
  /** Tests whether the path is selected, or leads to a selected one. */
  readonly isSelectedOrAbove: (path: FsPath.FsPath) => boolean
  /** The contents of the target tree, by path. */
  readonly contents: Map<FsPath.FsPath, Bytes>
}

export const currentPathsIn = (world: World): ReadonlyMap<FsPath.FsPath, FsPath.FsPath> => {
  const currentPaths = new Map<FsPath.FsPath, FsPath.FsPath>()
  const pending: Array<readonly [path: FsPath.FsPath, node: Node]> = [[FsPath.root, world.rootDirectory]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [path, node] = next
    if (node.kind === "origin") currentPaths.set(node.path, path)
    if (node.kind !== "directory") continue
    if (node.origin !== undefined) currentPaths.set(node.origin, path)
    for (const { name, node: child } of node.entries.values()) pending.push([FsPath.join(path, name), child])
  }
  return currentPaths
}

const knownAttributes = (attributes: Attributes | undefined) => ({
  ...(attributes?.mode.value === undefined ? {} : { mode: attributes.mode.value }),
  ...(attributes?.modified.value === undefined ? {} : { modifiedAt: attributes.modified.value })
})

const fileOf = (
  sizeBytes: number,
  bytes: Bytes,
  attributes: { readonly mode?: number | undefined; readonly modifiedAt?: DateTime.Utc }
): Effect.Effect<TreeNode, ContentError> =>
  Effect.suspend(() => {
    const hash = blobHasher(sizeBytes)
    return Effect.map(
      Stream.runForEachArray(bytes, (chunks) => Effect.sync(() => chunks.forEach((chunk) => hash.update(chunk)))),
      (): TreeNode => ({ kind: "file", sizeBytes, id: hash.digest("hex"), ...attributes })
    )
  })

const bytesAt = (port: Backend, path: FsPath.FsPath): Bytes =>
  Stream.unwrap(Effect.map(port.open(path), (handle) => Read.chunks(handle, 0, Number.POSITIVE_INFINITY, chunkSize)))

const specialFileFault = (path: FsPath.FsPath): Fault => ({
  _tag: "IoError",
  path,
  detail: "it is neither file, directory nor link, and could not be brought back"
})

/** Returns the actual tree at a path. With a target path, also records the file contents under that path of the target tree. */
export const treeAt = Effect.fnUntraced(function* (
  context: UndoContext,
  path: FsPath.FsPath,
  targetPath?: FsPath.FsPath
): Effect.fn.Return<TreeNode | undefined, ContentError> {
  const { port } = context
  const stat: FileStat | undefined = yield* Effect.mapError(port.stat(path), (fault) => located(fault, path))
  switch (stat?.kind) {
    case undefined:
      return undefined
    case "other":
      return yield* Effect.fail(specialFileFault(path))
    case "symlink":
      return { kind: "symlink", target: yield* Effect.mapError(port.links!.read(path), (fault) => located(fault, path)) }
    case "file": {
      const bytes = bytesAt(port, path)
      if (targetPath !== undefined) context.contents.set(targetPath, bytes)
      return yield* fileOf(stat.sizeBytes, bytes, stat.mode === undefined ? {} : { mode: stat.mode })
    }
    case "directory": {
      const entries = new Map<string, TreeNode>()
      for (const child of yield* Effect.mapError(port.list(path), (fault) => located(fault, path))) {
        if (TemporaryNames.isInProgress(child.name)) continue
        const name = keyOf(child)
        const below = targetPath === undefined ? undefined : FsPath.join(targetPath, name)
        const node = yield* Effect.suspend(() => treeAt(context, FsPath.join(path, name), below))
        if (node !== undefined) entries.set(name, node)
      }
      return { kind: "directory", entries, ...(stat.mode === undefined ? {} : { mode: stat.mode }) }
    }
  }
})

const withAttributes = (node: TreeNode | undefined, attributes: Attributes | undefined): TreeNode | undefined =>
  node === undefined || node.kind === "symlink" ? node : { ...node, ...knownAttributes(attributes) }

/** Removes the mode, which was set after the target position. */
const withoutMode = (node: TreeNode | undefined): TreeNode | undefined =>
  node === undefined || node.kind === "symlink" ? node : { ...node, mode: undefined }

/** Returns the current path of an entry of the beginning, which may have moved alone or with a directory. */
const currentPathOf = ({ now, currentPaths }: UndoContext, origin: FsPath.FsPath): FsPath.FsPath | undefined => {
  for (let above = origin; ; above = FsPath.parent(above)) {
    const currentPath = currentPaths.get(above)
    if (currentPath !== undefined) {
      const names = FsPath.segments(FsPath.relative(above, origin))
      let node = now.get(currentPath)
      for (const name of names) {
        // The name belongs to another entry now.
        if (node.kind === "directory" && node.entries.has(now.key(name))) return undefined
        node = now.child(node, name)
      }
      return FsPath.below(currentPath, FsPath.relative(above, origin))
    }
    if (above === FsPath.root) return undefined
  }
}

const unknownError = ({ source }: UndoContext, path: FsPath.FsPath) =>
  notRecorded(source.operation, path, "what was there before was not recorded")

const noNames = new Set<string>()

/** Returns the names that a directory had in the beginning, and about which the journal knows something. */
const namesOf = ({ now, currentPaths }: UndoContext, origin: FsPath.FsPath): ReadonlySet<string> => {
  const names = new Set(now.beginning.namesIn(origin))
  for (const path of currentPaths.keys())
    if (path !== FsPath.root && FsPath.parent(path) === origin) names.add(FsPath.name(path))
  return names
}

/** Returns the tree that a path had in the beginning, without the excluded children. */
const originTree = Effect.fnUntraced(function* (
  context: UndoContext,
  origin: FsPath.FsPath,
  targetPath: FsPath.FsPath,
  excludedNames: Pick<Directory["entries"], "has"> = noNames
): Effect.fn.Return<TreeNode | undefined, ContentError> {
  const { now } = context
  const { beginning } = now
  const known = beginning.known.get(origin)
  const attributes = beginning.attributesAt(origin)
  switch (known?.kind) {
    case "nothing":
      return undefined
    case "symlink":
      return known
    case "other":
      return yield* Effect.fail(specialFileFault(origin))
    case "file":
      return yield* addFile(context, targetPath, { kind: "file", parts: [{ origin }], attributes })
  }
  const currentPath = currentPathOf(context, origin)
  const node = currentPath === undefined ? undefined : now.get(currentPath)
  if (known === undefined && node === undefined) return yield* Effect.fail(unknownError(context, targetPath))
  if (node?.kind === "origin" && excludedNames === noNames) {
    const tree = yield* treeAt(context, currentPath!, targetPath)
    const isModeChanged = node.attributes !== undefined && node.attributes.mode !== attributes.mode
    return withAttributes(isModeChanged ? withoutMode(tree) : tree, attributes)
  }
  const entries = new Map<string, TreeNode>()
  const isExcluded = (name: string): boolean => excludedNames.has(now.key(name)) || TemporaryNames.isInProgress(name)
  const add = (name: string, tree: TreeNode | undefined): void => {
    if (tree !== undefined) entries.set(name, tree)
  }
  const names = new Set(namesOf(context, origin))
  if (node !== undefined && currentPath !== undefined) {
    const changed: Directory["entries"] = node.kind === "directory" ? node.entries : new Map()
    for (const { name } of changed.values()) names.add(name)
    for (const child of yield* Effect.mapError(context.port.list(currentPath), (fault) => located(fault, currentPath))) {
      const name = keyOf(child)
      if (isExcluded(name) || changed.has(now.key(name))) continue
      add(name, yield* treeAt(context, FsPath.join(currentPath, name), FsPath.join(targetPath, name)))
    }
  }
  for (const name of names) {
    if (entries.has(name) || isExcluded(name)) continue
    add(name, yield* Effect.suspend(() => originTree(context, FsPath.join(origin, name), FsPath.join(targetPath, name))))
  }
  return withAttributes({ kind: "directory", entries }, attributes)
})

const addFile = Effect.fnUntraced(function* (
  context: UndoContext,
  targetPath: FsPath.FsPath,
  file: Extract<Node, { readonly kind: "file" }>
): Effect.fn.Return<TreeNode, ContentError> {
  const bytes = content(context.source, targetPath, file)
  const { sizeBytes } = yield* digest(context.source, targetPath, file)
  context.contents.set(targetPath, bytes)
  return yield* fileOf(sizeBytes, bytes, knownAttributes(file.attributes))
})

export const targetTreeAt = Effect.fnUntraced(function* (
  context: UndoContext,
  targetPath: FsPath.FsPath,
  node: Node
): Effect.fn.Return<TreeNode | undefined, ContentError> {
  switch (node.kind) {
    case "nothing":
      return undefined
    case "unknown":
      return yield* Effect.fail(unknownError(context, targetPath))
    case "symlink":
      return node
    case "file":
      return yield* addFile(context, targetPath, node)
    case "origin":
      return withAttributes(yield* Effect.suspend(() => originTree(context, node.path, targetPath)), node.attributes)
    case "directory":
      return yield* targetDirectory(context, targetPath, node)
  }
})

const targetDirectory = Effect.fnUntraced(function* (
  context: UndoContext,
  targetPath: FsPath.FsPath,
  node: Directory
): Effect.fn.Return<TreeNode, ContentError> {
  const originalTree = node.origin === undefined ? undefined : yield* originTree(context, node.origin, targetPath, node.entries)
  const entries = new Map(originalTree?.kind === "directory" ? originalTree.entries : [])
  for (const { name, node: child } of node.entries.values()) {
    const below = FsPath.join(targetPath, name)
    if (context.beginning.hidden.has(below)) continue
    const tree = yield* Effect.suspend(() => targetTreeAt(context, below, child))
    if (tree !== undefined) entries.set(name, tree)
  }
  const attributes = attributesOf(context.now.beginning, node)
  const mode = attributes?.mode.value ?? (originalTree?.kind === "directory" ? originalTree.mode : undefined)
  return { kind: "directory", entries, ...(mode === undefined ? {} : { mode }) }
})
