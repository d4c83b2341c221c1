/**
 * Builds two trees of the affected paths, before and after, as a transaction needs them. Files are placed one by one, as
 * writes would be: the last one wins, and the same entries are obstacles.
 */
import * as Effect from "effect/Effect"
import { placeFault, resolve } from "../../engine/resolve.ts"
import type { DirectoryNode, FileNode, Node } from "../../history/tree.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Backend } from "../../port/Backend.ts"

export interface TargetFile {
  readonly path: FsPath.FsPath
  /** The POSIX permission bits, if they are known. */
  readonly mode: number | undefined
  readonly sizeBytes: number
  /** The mount of the file. Files of one mount may not replace each other. */
  readonly mountIndex: number
}

interface PathNode<A extends TargetFile> {
  readonly at: FsPath.FsPath
  readonly stat: FileStat | undefined
  readonly below: Map<string, PathNode<A>>
  /** The target, for a link. */
  linkTarget?: PathNode<A>
  file?: A
}

export interface CopyTrees<A extends TargetFile> {
  /** The files by their real path, without files that later ones have replaced. */
  readonly files: ReadonlyMap<FsPath.FsPath, A>
  readonly before: DirectoryNode
  /** Returns the tree after the copy. `idOf` returns the id of git's blob for a file. */
  readonly after: (idOf: (file: A) => string) => DirectoryNode
}

const notAFile: Fault = { _tag: "NotAFile" }
const notADirectory: Fault = { _tag: "NotADirectory" }
const alreadyExists: Fault = { _tag: "AlreadyExists" }

class TreeBuilder<A extends TargetFile> {
  readonly #port: Backend
  readonly #top: PathNode<A>

  constructor(port: Backend, rootNode: PathNode<A>) {
    this.#port = port
    this.#top = rootNode
  }

  readonly addFile = Effect.fnUntraced({ self: this }, function* (file: A): Effect.fn.Return<void, Fault> {
    const pathNode = yield* this.#walk(file.path)
    const { stat } = pathNode
    if (pathNode === this.#top || pathNode.below.size > 0 || (stat !== undefined && stat.kind !== "file")) {
      return yield* Effect.fail(notAFile)
    }
    if (pathNode.file?.mountIndex === file.mountIndex) return yield* Effect.fail(alreadyExists)
    pathNode.file = file
  })

  readonly #walk: (path: FsPath.FsPath) => Effect.Effect<PathNode<A>, Fault> = Effect.fnUntraced(
    { self: this },
    function* (path: FsPath.FsPath): Effect.fn.Return<PathNode<A>, Fault> {
      let pathNode = this.#top
      for (const segment of FsPath.segments(path)) {
        const next = yield* this.#below(pathNode, segment)
        pathNode = next.stat?.kind === "symlink" ? (next.linkTarget ??= yield* this.#followLink(next.at)) : next
      }
      return pathNode
    }
  )

  /** Resolves a link. The result has no link on its path. */
  readonly #followLink = Effect.fnUntraced({ self: this }, function* (at: FsPath.FsPath): Effect.fn.Return<PathNode<A>, Fault> {
    const found = yield* resolve(this.#port, at)
    const fault = placeFault(found) ?? (found.stat === undefined ? FsPath.checkLimits(found.path, yield* Limits) : undefined)
    // A backend without links to follow treats a link as an entry of its own.
    return fault !== undefined || found.path === at ? yield* Effect.fail(fault ?? notAFile) : yield* this.#walk(found.path)
  })

  readonly #below = Effect.fnUntraced({ self: this }, function* (above: PathNode<A>, segment: string): Effect.fn.Return<
    PathNode<A>,
    Fault
  > {
    const key = this.#port.info.caseSensitive ? segment : FsPath.fold(segment)
    const known = above.below.get(key)
    if (known !== undefined) return known
    const isNew = above.stat === undefined
    if (above.file !== undefined || (!isNew && above.stat.kind !== "directory")) return yield* Effect.fail(notADirectory)
    const at = FsPath.join(above.at, segment)
    const pathNode: PathNode<A> = { at, stat: isNew ? undefined : yield* this.#port.stat(at), below: new Map() }
    above.below.set(key, pathNode)
    return pathNode
  })
}

/** Returns the node of an existing file. Its id only needs to differ from the id of the new content. */
const fileBefore = ({ mode, sizeBytes }: FileStat): FileNode => ({
  kind: "file",
  ...(mode !== undefined && { mode: mode & 0o777 }),
  sizeBytes,
  id: ""
})

const entriesOf = <A extends TargetFile>(
  pathNode: PathNode<A>,
  nodeOf: (pathNode: PathNode<A>) => Node | undefined
): Map<string, Node> => {
  const entries = new Map<string, Node>()
  for (const child of pathNode.below.values()) {
    const node = nodeOf(child)
    if (node !== undefined) entries.set(FsPath.name(child.at), node)
  }
  return entries
}

/** Returns the node before the copy. Directories have no mode, so that their modes stay unchanged. */
const nodeBefore = <A extends TargetFile>(pathNode: PathNode<A>): Node | undefined => {
  const { file, stat } = pathNode
  if (stat?.kind === "directory") return { kind: "directory", entries: entriesOf(pathNode, nodeBefore<A>) }
  return stat === undefined || file === undefined ? undefined : fileBefore(stat)
}

const nodeAfter = <A extends TargetFile>(idOf: (file: A) => string) => {
  const nodeOf = (pathNode: PathNode<A>): Node | undefined => {
    const { file, stat } = pathNode
    if (file !== undefined) {
      const mode = file.mode ?? (stat?.mode === undefined ? undefined : stat.mode & 0o777)
      return { kind: "file", ...(mode !== undefined && { mode }), sizeBytes: file.sizeBytes, id: idOf(file) }
    }
    const entries = entriesOf(pathNode, nodeOf)
    return stat?.kind === "directory" || entries.size > 0 ? { kind: "directory", entries } : undefined
  }
  return nodeOf
}

const collectFiles = <A extends TargetFile>(rootNode: PathNode<A>): ReadonlyMap<FsPath.FsPath, A> => {
  const files = new Map<FsPath.FsPath, A>()
  const pending = [rootNode]
  for (let pathNode = pending.pop(); pathNode !== undefined; pathNode = pending.pop()) {
    if (pathNode.file !== undefined) files.set(pathNode.at, pathNode.file)
    pending.push(...pathNode.below.values())
  }
  return files
}

/**
 * Places all files. Fails as a write would, with NotAFile, NotADirectory and the faults of links. Fails with AlreadyExists for two files of
 * one group at one place. Each fault has the path of the file.
 */
export const buildTrees = Effect.fnUntraced(function* <A extends TargetFile>(
  port: Backend,
  files: ReadonlyArray<A>
): Effect.fn.Return<CopyTrees<A>, Fault> {
  const rootNode: PathNode<A> = { at: FsPath.root, stat: yield* port.stat(FsPath.root), below: new Map() }
  const builder = new TreeBuilder(port, rootNode)
  for (const file of files) yield* Effect.mapError(builder.addFile(file), (fault) => located(fault, file.path))
  return {
    files: collectFiles(rootNode),
    before: nodeBefore(rootNode) as DirectoryNode,
    after: (idOf) => nodeAfter(idOf)(rootNode) as DirectoryNode
  }
})
