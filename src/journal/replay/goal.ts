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

export interface Undoing {
  readonly port: Backend
  readonly source: Source
  readonly beginning: World["beginning"]
  readonly past: World
  readonly now: World
  /** The current places of entries of the beginning, for entries that were moved or changed, by their original path. */
  readonly places: ReadonlyMap<FsPath.FsPath, FsPath.FsPath>
  /** Tests whether the path is selected, or leads to a selected one. */
  readonly isMeant: (path: FsPath.FsPath) => boolean
  /** The contents of the target tree, by path. */
  readonly contents: Map<FsPath.FsPath, Bytes>
}

export const placesIn = (world: World): ReadonlyMap<FsPath.FsPath, FsPath.FsPath> => {
  const places = new Map<FsPath.FsPath, FsPath.FsPath>()
  const pending: Array<readonly [path: FsPath.FsPath, node: Node]> = [[FsPath.root, world.top]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [path, node] = next
    if (node.kind === "origin") places.set(node.path, path)
    if (node.kind !== "directory") continue
    if (node.origin !== undefined) places.set(node.origin, path)
    for (const { name, node: child } of node.entries.values()) pending.push([FsPath.join(path, name), child])
  }
  return places
}

const told = (attributes: Attributes | undefined) => ({
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

const special = (path: FsPath.FsPath): Fault => ({
  _tag: "IoError",
  path,
  detail: "it is neither file, directory nor link, and could not be brought back"
})

/** Returns the actual tree at a path. With a target path, also records the file contents under that path of the target tree. */
export const treeAt = Effect.fnUntraced(function* (
  undoing: Undoing,
  path: FsPath.FsPath,
  as?: FsPath.FsPath
): Effect.fn.Return<TreeNode | undefined, ContentError> {
  const { port } = undoing
  const stat: FileStat | undefined = yield* Effect.mapError(port.stat(path), (fault) => located(fault, path))
  switch (stat?.kind) {
    case undefined:
      return undefined
    case "other":
      return yield* Effect.fail(special(path))
    case "symlink":
      return { kind: "symlink", target: yield* Effect.mapError(port.links!.read(path), (fault) => located(fault, path)) }
    case "file": {
      const bytes = bytesAt(port, path)
      if (as !== undefined) undoing.contents.set(as, bytes)
      return yield* fileOf(stat.sizeBytes, bytes, stat.mode === undefined ? {} : { mode: stat.mode })
    }
    case "directory": {
      const entries = new Map<string, TreeNode>()
      for (const child of yield* Effect.mapError(port.list(path), (fault) => located(fault, path))) {
        if (TemporaryNames.isInProgress(child.name)) continue
        const name = keyOf(child)
        const below = as === undefined ? undefined : FsPath.join(as, name)
        const node = yield* Effect.suspend(() => treeAt(undoing, FsPath.join(path, name), below))
        if (node !== undefined) entries.set(name, node)
      }
      return { kind: "directory", entries, ...(stat.mode === undefined ? {} : { mode: stat.mode }) }
    }
  }
})

const withAttributes = (node: TreeNode | undefined, attributes: Attributes | undefined): TreeNode | undefined =>
  node === undefined || node.kind === "symlink" ? node : { ...node, ...told(attributes) }

/** Removes the mode, which was set after the target position. */
const withoutMode = (node: TreeNode | undefined): TreeNode | undefined =>
  node === undefined || node.kind === "symlink" ? node : { ...node, mode: undefined }

/** Returns the current path of an entry of the beginning, which may have moved alone or with a directory. */
const placeOf = ({ now, places }: Undoing, origin: FsPath.FsPath): FsPath.FsPath | undefined => {
  for (let above = origin; ; above = FsPath.parent(above)) {
    const place = places.get(above)
    if (place !== undefined) {
      const names = FsPath.segments(FsPath.relative(above, origin))
      let node = now.get(place)
      for (const name of names) {
        // The name belongs to another entry now.
        if (node.kind === "directory" && node.entries.has(now.key(name))) return undefined
        node = now.child(node, name)
      }
      return FsPath.below(place, FsPath.relative(above, origin))
    }
    if (above === FsPath.root) return undefined
  }
}

const unknown = ({ source }: Undoing, path: FsPath.FsPath) =>
  notRecorded(source.operation, path, "what was there before was not recorded")

const nobody = new Set<string>()

/** Returns the names that a directory had in the beginning, and about which the journal knows something. */
const namesOf = ({ now, places }: Undoing, origin: FsPath.FsPath): ReadonlySet<string> => {
  const names = new Set(now.beginning.namesIn(origin))
  for (const path of places.keys()) if (path !== FsPath.root && FsPath.parent(path) === origin) names.add(FsPath.name(path))
  return names
}

/** Returns the tree that a path had in the beginning, without the excluded children. */
const originTree = Effect.fnUntraced(function* (
  undoing: Undoing,
  origin: FsPath.FsPath,
  as: FsPath.FsPath,
  except: Pick<Directory["entries"], "has"> = nobody
): Effect.fn.Return<TreeNode | undefined, ContentError> {
  const { now } = undoing
  const { beginning } = now
  const known = beginning.known.get(origin)
  const attributes = beginning.attributesAt(origin)
  switch (known?.kind) {
    case "nothing":
      return undefined
    case "symlink":
      return known
    case "other":
      return yield* Effect.fail(special(origin))
    case "file":
      return yield* putFile(undoing, as, { kind: "file", parts: [{ origin }], attributes })
  }
  const place = placeOf(undoing, origin)
  const node = place === undefined ? undefined : now.get(place)
  if (known === undefined && node === undefined) return yield* Effect.fail(unknown(undoing, as))
  if (node?.kind === "origin" && except === nobody) {
    const tree = yield* treeAt(undoing, place!, as)
    const isSet = node.attributes !== undefined && node.attributes.mode !== attributes.mode
    return withAttributes(isSet ? withoutMode(tree) : tree, attributes)
  }
  const entries = new Map<string, TreeNode>()
  const isOut = (name: string): boolean => except.has(now.key(name)) || TemporaryNames.isInProgress(name)
  const add = (name: string, tree: TreeNode | undefined): void => {
    if (tree !== undefined) entries.set(name, tree)
  }
  const names = new Set(namesOf(undoing, origin))
  if (node !== undefined && place !== undefined) {
    const changed: Directory["entries"] = node.kind === "directory" ? node.entries : new Map()
    for (const { name } of changed.values()) names.add(name)
    for (const child of yield* Effect.mapError(undoing.port.list(place), (fault) => located(fault, place))) {
      const name = keyOf(child)
      if (isOut(name) || changed.has(now.key(name))) continue
      add(name, yield* treeAt(undoing, FsPath.join(place, name), FsPath.join(as, name)))
    }
  }
  for (const name of names) {
    if (entries.has(name) || isOut(name)) continue
    add(name, yield* Effect.suspend(() => originTree(undoing, FsPath.join(origin, name), FsPath.join(as, name))))
  }
  return withAttributes({ kind: "directory", entries }, attributes)
})

const putFile = Effect.fnUntraced(function* (
  undoing: Undoing,
  as: FsPath.FsPath,
  file: Extract<Node, { readonly kind: "file" }>
): Effect.fn.Return<TreeNode, ContentError> {
  const bytes = content(undoing.source, as, file)
  const { sizeBytes } = yield* digest(undoing.source, as, file)
  undoing.contents.set(as, bytes)
  return yield* fileOf(sizeBytes, bytes, told(file.attributes))
})

export const goalAt = Effect.fnUntraced(function* (
  undoing: Undoing,
  as: FsPath.FsPath,
  node: Node
): Effect.fn.Return<TreeNode | undefined, ContentError> {
  switch (node.kind) {
    case "nothing":
      return undefined
    case "unknown":
      return yield* Effect.fail(unknown(undoing, as))
    case "symlink":
      return node
    case "file":
      return yield* putFile(undoing, as, node)
    case "origin":
      return withAttributes(yield* Effect.suspend(() => originTree(undoing, node.path, as)), node.attributes)
    case "directory":
      return yield* goalDirectory(undoing, as, node)
  }
})

const goalDirectory = Effect.fnUntraced(function* (
  undoing: Undoing,
  as: FsPath.FsPath,
  node: Directory
): Effect.fn.Return<TreeNode, ContentError> {
  const whole = node.origin === undefined ? undefined : yield* originTree(undoing, node.origin, as, node.entries)
  const entries = new Map(whole?.kind === "directory" ? whole.entries : [])
  for (const { name, node: child } of node.entries.values()) {
    const below = FsPath.join(as, name)
    if (undoing.beginning.hidden.has(below)) continue
    const tree = yield* Effect.suspend(() => goalAt(undoing, below, child))
    if (tree !== undefined) entries.set(name, tree)
  }
  const attributes = attributesOf(undoing.now.beginning, node)
  const mode = attributes?.mode.value ?? (whole?.kind === "directory" ? whole.mode : undefined)
  return { kind: "directory", entries, ...(mode === undefined ? {} : { mode }) }
})
