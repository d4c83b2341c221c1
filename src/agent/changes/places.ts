/** Resolves the paths of changes to two trees of the affected entries, before and after, as a transaction needs them. */
import * as Effect from "effect/Effect"
import { placeFault, resolve, resolveLink } from "../../engine/resolve.ts"
import * as Version from "../../engine/version.ts"
import { blobId, type DirectoryNode, type FileNode, type Node } from "../../history/tree.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Backend } from "../../port/Backend.ts"

export interface PathChange {
  /** The path as the caller wrote it. */
  readonly path: FsPath.FsPath
  readonly before: string | null
  readonly after: Uint8Array | null
  /** The file whose permissions a new file gets. */
  readonly from?: FsPath.FsPath | undefined
}

export interface ResolvedChange {
  readonly pathChange: PathChange
  readonly at: FsPath.FsPath
  readonly stat: FileStat | undefined
}

interface PathNode {
  readonly at: FsPath.FsPath
  readonly stat: FileStat | undefined
  readonly below: Map<string, PathNode>
  pathChange?: PathChange
}

export interface ChangeTrees {
  readonly before: DirectoryNode
  readonly after: DirectoryNode
  /** The places, in path order. */
  readonly places: ReadonlyArray<ResolvedChange>
}

const invalid = (detail: string): Fault => ({ _tag: "InvalidArgument", argument: "changes", detail })
const notAFile: Fault = { _tag: "NotAFile" }
const quoted = (path: string): string => JSON.stringify(path)

const childNode = Effect.fnUntraced(function* (
  port: Backend,
  parentNode: PathNode,
  segment: string
): Effect.fn.Return<PathNode, Fault> {
  const { caseSensitive } = port.info
  const key = caseSensitive ? segment : FsPath.fold(segment)
  const known = parentNode.below.get(key)
  if (known !== undefined) return known
  const isParentDirectory = parentNode.stat?.kind === "directory"
  const at = FsPath.join(parentNode.at, segment)
  const pathNode: PathNode = { at, stat: isParentDirectory ? yield* port.stat(at) : undefined, below: new Map() }
  parentNode.below.set(key, pathNode)
  return pathNode
})

/** Resolves the path of an end. A write follows a link at the path; a removal removes the link itself. */
const resolvePath = Effect.fnUntraced(function* (
  port: Backend,
  { after, path }: PathChange
): Effect.fn.Return<FsPath.FsPath, Fault> {
  const found = yield* after === null ? resolveLink(port, path) : resolve(port, path)
  // A file that blocks the path may itself be removed by these changes.
  const fault = found.isBlocked ? undefined : placeFault(found)
  if (fault !== undefined) return yield* Effect.fail(fault)
  const isNew = found.stat === undefined && found.path !== path
  const limitFault = isNew ? FsPath.checkLimits(found.path, yield* Limits) : undefined
  return limitFault === undefined ? found.path : yield* Effect.fail(limitFault)
})

const addToTree = Effect.fnUntraced(function* (
  port: Backend,
  rootNode: PathNode,
  pathChange: PathChange
): Effect.fn.Return<void, Fault> {
  let pathNode = rootNode
  for (const segment of FsPath.segments(yield* resolvePath(port, pathChange)))
    pathNode = yield* childNode(port, pathNode, segment)
  if (pathNode.pathChange !== undefined) {
    const both =
      pathNode.pathChange.path === pathChange.path
        ? quoted(pathChange.path)
        : `${quoted(pathNode.pathChange.path)} and ${quoted(pathChange.path)}`
    return yield* Effect.fail(invalid(`${both}: one file is changed twice; combine both changes`))
  }
  if (pathNode === rootNode || (pathNode.stat !== undefined && pathNode.stat.kind !== "file"))
    return yield* Effect.fail(notAFile)
  pathNode.pathChange = pathChange
})

const permissions = (stat: FileStat | undefined): { readonly mode?: number } =>
  stat?.mode === undefined ? {} : { mode: stat.mode & 0o777 }

/** Describes the current file. Its id equals that of the new content only if the content stays the same. */
const fileBefore = (stat: FileStat, { after, before }: PathChange): FileNode => ({
  kind: "file",
  ...permissions(stat),
  sizeBytes: stat.sizeBytes,
  id: after !== null && Version.ofBytes(after) === before ? blobId(after) : (before ?? "")
})

const fileAfter = (bytes: Uint8Array, mode: { readonly mode?: number }): FileNode => ({
  kind: "file",
  ...mode,
  sizeBytes: bytes.length,
  id: blobId(bytes)
})

const entriesOf = (pathNode: PathNode, nodeOf: (pathNode: PathNode) => Node | undefined): Map<string, Node> => {
  const entries = new Map<string, Node>()
  for (const child of pathNode.below.values()) {
    const node = nodeOf(child)
    if (node !== undefined) entries.set(FsPath.name(child.at), node)
  }
  return entries
}

/** Describes the current tree. Directories have no modes here, because their modes do not change. */
const nodeBefore = (pathNode: PathNode): Node | undefined => {
  const { pathChange, stat } = pathNode
  if (stat?.kind === "directory") return { kind: "directory", entries: entriesOf(pathNode, nodeBefore) }
  return stat === undefined || pathChange === undefined ? undefined : fileBefore(stat, pathChange)
}

const nodeAfter =
  (modeOf: (pathChange: PathChange) => { readonly mode?: number }) =>
  (pathNode: PathNode): Node | undefined => {
    const { pathChange, stat } = pathNode
    const bytes = pathChange?.after ?? null
    if (bytes !== null) return fileAfter(bytes, stat === undefined ? modeOf(pathChange!) : permissions(stat))
    const entries = entriesOf(pathNode, nodeAfter(modeOf))
    return stat?.kind === "directory" || entries.size > 0 ? { kind: "directory", entries } : undefined
  }

const misplacedFault = (pathNode: PathNode): Fault | undefined => {
  if (pathNode.below.size === 0 || pathNode.stat?.kind === "directory") return undefined
  const [below] = pathNode.below.values()
  if (pathNode.pathChange !== undefined && pathNode.pathChange.after !== null) {
    return invalid(`${quoted(pathNode.pathChange.path)} cannot be a file and have ${quoted(FsPath.name(below!.at))} below it`)
  }
  return pathNode.stat === undefined || pathNode.pathChange !== undefined ? undefined : { _tag: "NotADirectory" }
}

const collectChanges = (rootNode: PathNode): ReadonlyArray<ResolvedChange> | Fault => {
  const places: Array<ResolvedChange> = []
  const pending = [rootNode]
  for (let pathNode = pending.pop(); pathNode !== undefined; pathNode = pending.pop()) {
    const fault = misplacedFault(pathNode)
    if (fault !== undefined) return located(fault, pathNode.at)
    if (pathNode.pathChange !== undefined)
      places.push({ pathChange: pathNode.pathChange, at: pathNode.at, stat: pathNode.stat })
    pending.push(...pathNode.below.values())
  }
  return places.sort((a, b) => FsPath.compare(a.at, b.at))
}

/**
 * Resolves every end. Fails with InvalidArgument if two ends are the same file or exclude each other, and with NotAFile or
 * NotADirectory for entries of another kind. Also fails with the errors of links. Faults have the caller's path.
 */
export const resolveChanges = Effect.fnUntraced(function* (
  port: Backend,
  ends: ReadonlyArray<PathChange>
): Effect.fn.Return<ChangeTrees, Fault> {
  const stat = yield* port.stat(FsPath.root)
  // The root directory of a backend can be moved away at any time.
  if (stat?.kind !== "directory") return yield* Effect.fail(located({ _tag: "NotFound" }, FsPath.root))
  const rootNode: PathNode = { at: FsPath.root, stat, below: new Map() }
  for (const pathChange of ends)
    yield* Effect.mapError(addToTree(port, rootNode, pathChange), (fault) => located(fault, pathChange.path))
  const places = collectChanges(rootNode)
  if ("_tag" in places) return yield* Effect.fail(places)
  const stats = new Map(places.map(({ pathChange, stat }) => [pathChange.path, stat]))
  const modeOf = ({ from }: PathChange) => (from === undefined ? {} : permissions(stats.get(from)))
  return { places, before: nodeBefore(rootNode) as DirectoryNode, after: nodeAfter(modeOf)(rootNode) as DirectoryNode }
})
