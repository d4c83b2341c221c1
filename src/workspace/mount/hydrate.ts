/**
 * Copies the planned files, all or none. The files are staged and checked under hidden names, and then published in one
 * transaction. If the process is killed, the next process recovers the transaction from its record.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import { placeFault, resolve } from "../../engine/resolve.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { type Mismatch, runTransaction } from "../../history/transaction.ts"
import { withTreeLock } from "../../history/transaction/treeLock.ts"
import { recoverTransactions, withExclusiveLock } from "../../history/replace.ts"
import { idOf } from "../../history/scan.ts"
import type { DirectoryNode, FileNode, Node } from "../../history/tree.ts"
import type { FileStat } from "../../model/Entry.ts"
import { alreadyExists, notADirectory, notAFile } from "../../model/Fault.ts"
import { type Fault, type FsError, located, promote } from "../../model/FsError.ts"
import * as FsPathModule from "../../model/FsPath.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import { isBytes } from "../../model/realms.ts"
import type { Backend } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { type HostMount, MountError, type Options, type Preview, type Request } from "./model.ts"
import { pathOf, plan, type PlannedMount, previewOf } from "./plan.ts"
import { mountErrorOf, type Source, type SourceFile } from "./survey.ts"

// Reads each file twice: once to compute its git id, and once to copy it. A write between the two reads is therefore detected.
// Large files are streamed.

interface FileOrigin {
  readonly request: Request
  readonly source: Source
  readonly file: SourceFile
  readonly isWholeSource: boolean
}

/** The largest size, in bytes, of a file that is not streamed. */
const maxBufferedBytes = 256 * 1024
const chunkBytes = 64 * 1024

const nameOf = ({ file, isWholeSource }: FileOrigin): FsPath => (isWholeSource ? ("." as FsPath) : file.path)

const unreadableError = (origin: FileOrigin, fault: Fault): MountError => mountErrorOf(origin.request, nameOf(origin), fault)

const changed = ({ file, isWholeSource, request: { hostPath } }: FileOrigin): MountError => {
  const detail = "was changed while it was copied"
  return isWholeSource
    ? new MountError({ hostPath, reason: "changed", detail: `the source ${detail}` })
    : new MountError({ hostPath, reason: "changed", path: file.path, detail: `${JSON.stringify(file.path)} ${detail}` })
}

const idOfContent = (origin: FileOrigin): Effect.Effect<string, MountError> => {
  const { file, source } = origin
  return Effect.flatMap(
    Effect.mapError(idOf(source.root.port, file.at), (fault) => unreadableError(origin, fault)),
    (found) => (found?.sizeBytes === file.sizeBytes ? Effect.succeed(found.id) : Effect.fail(changed(origin)))
  )
}

/** Returns the current content of a file. The transaction compares the content's git id with the id from the first read. */
const contentOf = (origin: FileOrigin): Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, MountError>, MountError> => {
  const { file, source } = origin
  const { port } = source.root
  const opened = Effect.mapError(port.open(file.at), (fault) => unreadableError(origin, fault))
  if (file.sizeBytes > maxBufferedBytes) {
    const bytes = Stream.unwrap(Effect.map(opened, (handle) => Read.chunks(handle, 0, handle.stat.sizeBytes, chunkBytes)))
    return Effect.succeed(
      Stream.mapError(bytes, (error) => (error instanceof MountError ? error : unreadableError(origin, error)))
    )
  }
  return Effect.catch(
    Effect.map(Read.wholeAt(port, file.at, maxBufferedBytes), ({ bytes }) => bytes),
    (fault) => Effect.fail(fault._tag === "LimitExceeded" ? changed(origin) : unreadableError(origin, fault))
  )
}

// Builds two trees of the affected paths, before and after the copy, as a transaction needs them. Files are added one by one.
// Adding a file fails for the same reasons as a write. A later file replaces an earlier one.

interface TargetFile {
  readonly path: FsPathModule.FsPath
  readonly mode: number | undefined
  readonly sizeBytes: number
  /** The index of the mount that contains the file. Files of one mount must not replace each other. */
  readonly mountIndex: number
}

interface PathNode<A extends TargetFile> {
  readonly at: FsPathModule.FsPath
  readonly stat: FileStat | undefined
  readonly below: Map<string, PathNode<A>>
  linkTarget?: PathNode<A>
  file?: A
}

interface CopyTrees<A extends TargetFile> {
  /** The files by their real path. Files that a later file has replaced are omitted. */
  readonly files: ReadonlyMap<FsPathModule.FsPath, A>
  readonly before: DirectoryNode
  /** Returns the tree after the copy. `idOf` returns the git id of a file's content. */
  readonly after: (idOf: (file: A) => string) => DirectoryNode
}

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

  readonly #walk: (path: FsPathModule.FsPath) => Effect.Effect<PathNode<A>, Fault> = Effect.fnUntraced(
    { self: this },
    function* (path: FsPathModule.FsPath): Effect.fn.Return<PathNode<A>, Fault> {
      let pathNode = this.#top
      for (const segment of FsPathModule.segments(path)) {
        const next = yield* this.#below(pathNode, segment)
        pathNode = next.stat?.kind === "symlink" ? (next.linkTarget ??= yield* this.#followLink(next.at)) : next
      }
      return pathNode
    }
  )

  /** Follows a link. The path of the result leads through no link. */
  readonly #followLink = Effect.fnUntraced({ self: this }, function* (at: FsPathModule.FsPath): Effect.fn.Return<
    PathNode<A>,
    Fault
  > {
    const found = yield* resolve(this.#port, at)
    const fault =
      placeFault(found) ?? (found.stat === undefined ? FsPathModule.checkLimits(found.path, yield* Limits) : undefined)
    // If the backend cannot follow links, the copy fails at the link.
    return fault !== undefined || found.path === at ? yield* Effect.fail(fault ?? notAFile) : yield* this.#walk(found.path)
  })

  readonly #below = Effect.fnUntraced({ self: this }, function* (above: PathNode<A>, segment: string): Effect.fn.Return<
    PathNode<A>,
    Fault
  > {
    const key = this.#port.info.caseSensitive ? segment : FsPathModule.fold(segment)
    const known = above.below.get(key)
    if (known !== undefined) return known
    const isNew = above.stat === undefined
    if (above.file !== undefined || (!isNew && above.stat.kind !== "directory")) return yield* Effect.fail(notADirectory)
    const at = FsPathModule.join(above.at, segment)
    const pathNode: PathNode<A> = { at, stat: isNew ? undefined : yield* this.#port.stat(at), below: new Map() }
    above.below.set(key, pathNode)
    return pathNode
  })
}

/** Returns the node of an existing file. The only requirement is that its id differs from the id of the new content. */
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
    if (node !== undefined) entries.set(FsPathModule.name(child.at), node)
  }
  return entries
}

/** Returns the node before the copy. A directory gets no mode, so that the transaction does not change its mode. */
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

const collectFiles = <A extends TargetFile>(rootNode: PathNode<A>): ReadonlyMap<FsPathModule.FsPath, A> => {
  const files = new Map<FsPathModule.FsPath, A>()
  const pending = [rootNode]
  for (let pathNode = pending.pop(); pathNode !== undefined; pathNode = pending.pop()) {
    if (pathNode.file !== undefined) files.set(pathNode.at, pathNode.file)
    pending.push(...pathNode.below.values())
  }
  return files
}

/**
 * Adds all files to the trees. Fails like a write with NotAFile, NotADirectory or a fault of a link. Fails with AlreadyExists
 * if two files of one mount have the same target. Each fault has the path of the file.
 */
const buildTrees = Effect.fnUntraced(function* <A extends TargetFile>(
  port: Backend,
  files: ReadonlyArray<A>
): Effect.fn.Return<CopyTrees<A>, Fault> {
  const rootNode: PathNode<A> = { at: FsPathModule.root, stat: yield* port.stat(FsPathModule.root), below: new Map() }
  const builder = new TreeBuilder(port, rootNode)
  for (const file of files) yield* Effect.mapError(builder.addFile(file), (fault) => located(fault, file.path))
  return {
    files: collectFiles(rootNode),
    before: nodeBefore(rootNode) as DirectoryNode,
    after: (idOf) => nodeAfter(idOf)(rootNode) as DirectoryNode
  }
})

const operation = "hydrate"

/** An error while a source file is read, as opposed to a fault of the target filesystem. */
class SourceFailure {
  readonly error: MountError

  constructor(error: MountError) {
    this.error = error
  }
}

type Problem = Fault | Mismatch | SourceFailure | MountError

interface PlannedFile extends TargetFile {
  readonly origin: FileOrigin
}

const readOnly: Fault = { _tag: "AccessDenied", why: "readOnly" }

const makePathCheck = Effect.fnUntraced(function* (port: Backend) {
  const { policy, permits } = port.rules ?? {}
  const limits = yield* Limits
  return (path: FsPathModule.FsPath): Fault | undefined => {
    const parsed = FsPathModule.parse(path, policy)
    if (typeof parsed !== "string") return parsed
    return FsPathModule.checkLimits(path, limits) ?? (permits === undefined || permits("write", path) ? undefined : readOnly)
  }
})

const filesOf = (planned: ReadonlyArray<PlannedMount>): ReadonlyArray<PlannedFile> =>
  planned.flatMap((mount, mountIndex) =>
    mount.files.map((file): PlannedFile => {
      const { isFile, request, source } = mount
      const { mode, sizeBytes } = file
      return {
        path: pathOf(mount, file.path),
        mode,
        sizeBytes,
        mountIndex,
        origin: { request, source, file, isWholeSource: isFile }
      }
    })
  )

const contentsOf = (filesByPath: CopyTrees<PlannedFile>["files"]) => (at: FsPathModule.FsPath) => {
  const { origin } = filesByPath.get(at)!
  const asSourceFailure = (error: MountError) => new SourceFailure(error)
  return Effect.map(Effect.mapError(contentOf(origin), asSourceFailure), (content) =>
    isBytes(content) ? content : Stream.mapError(content, asSourceFailure)
  )
}

const withCallerPath =
  (filesByPath: CopyTrees<PlannedFile>["files"]) =>
  (problem: Fault | Mismatch | SourceFailure): Problem => {
    if (problem instanceof SourceFailure) return problem
    const plannedFile = filesByPath.get(problem["path"] as FsPathModule.FsPath)
    if (plannedFile === undefined) return problem
    return problem._tag === "Mismatch" ? changed(plannedFile.origin) : { ...problem, path: plannedFile.path }
  }

const copyStaged = Effect.fnUntraced(function* (
  port: Backend,
  plannedFiles: ReadonlyArray<PlannedFile>,
  ids: ReadonlyMap<FileOrigin, string>
): Effect.fn.Return<void, Problem> {
  yield* recoverTransactions(port)
  const { after, before, files: filesByPath } = yield* buildTrees(port, plannedFiles)
  const transaction = { before, after: after(({ origin }) => ids.get(origin)!), content: contentsOf(filesByPath) }
  const exchanged = Effect.mapError(runTransaction<SourceFailure>(port, transaction), withCallerPath(filesByPath))
  // A transaction moves replaced files to a staging directory. The move is not a deletion, so write permission is enough.
  yield* port.rules?.permits?.("delete") === false ? Effect.provideService(exchanged, TakingBack, true) : exchanged
})

const copy = Effect.fnUntraced(function* (
  port: Backend,
  planned: ReadonlyArray<PlannedMount>
): Effect.fn.Return<void, Problem> {
  const faultOfPath = yield* makePathCheck(port)
  const plannedFiles = filesOf(planned)
  for (const { path } of plannedFiles) {
    const fault = faultOfPath(path)
    if (fault !== undefined) return yield* Effect.fail(located(fault, path))
  }
  if (plannedFiles.length === 0) return
  const ids = new Map<FileOrigin, string>()
  const lastOrigins = new Map(plannedFiles.map(({ origin, path }) => [path, origin]))
  for (const origin of lastOrigins.values()) ids.set(origin, yield* idOfContent(origin))
  yield* withExclusiveLock(port, withTreeLock(port, copyStaged(port, plannedFiles, ids)))
})

const errorOf = (problem: Problem): MountError | FsError => {
  if (problem instanceof MountError) return problem
  if (problem instanceof SourceFailure) return problem.error
  return promote(problem as Fault, operation, FsPathModule.root)
}

export const hydrate = (
  { port }: Algebra,
  mounts: ReadonlyArray<HostMount>,
  options: Options
): Effect.Effect<ReadonlyArray<Preview>, MountError | FsError> => {
  const mayWrite = !port.info.readOnly && port.rules?.permits?.("write") !== false
  const copyMounts = Effect.gen(function* () {
    if (!mayWrite) return yield* Effect.fail(readOnly)
    const planned = yield* plan(mounts, options)
    yield* copy(port, planned)
    return planned.map(previewOf)
  })
  const reported = Effect.mapError(Effect.scoped(copyMounts), errorOf)
  return port.calls === undefined ? reported : port.calls.effect({ operation, path: FsPathModule.root }, reported)
}
