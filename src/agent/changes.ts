/**
 * Changes several files, all or none, even if a change fails or is interrupted. If a process is killed while it changes files
 * of the machine, the next process completes or discards the transaction by its record.
 */
import * as Effect from "effect/Effect"
import { withClaim } from "../engine/directories.ts"
import { remove } from "../engine/remove.ts"
import { placeFault, resolve, resolveLink } from "../engine/resolve.ts"
import * as Version from "../engine/version.ts"
import * as Write from "../engine/write.ts"
import type { Algebra } from "../filesystem/Filesystem.ts"
import * as Caller from "../filesystem/operations/call.ts"
import { mismatchToFault, runTransaction } from "../history/transaction.ts"
import { withTreeLock } from "../history/transaction/treeLock.ts"
import { recoverTransactions, withExclusiveLock } from "../history/replace.ts"
import { blobId, type DirectoryNode, type FileNode, type Node } from "../history/tree.ts"
import type { FileStat } from "../model/Entry.ts"
import { notAFile } from "../model/Fault.ts"
import { type Fault, type FsError, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits } from "../model/Limits.ts"
import type { Backend } from "../port/Backend.ts"
import { TakingBack } from "../port/Rules.ts"

interface PathChange {
  readonly path: FsPath.FsPath
  readonly before: string | null
  readonly after: Uint8Array | null
  readonly from?: FsPath.FsPath | undefined
}

interface ResolvedChange {
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

interface ChangeTrees {
  readonly before: DirectoryNode
  readonly after: DirectoryNode
  readonly places: ReadonlyArray<ResolvedChange>
}

const invalid = (detail: string): Fault => ({ _tag: "InvalidArgument", argument: "changes", detail })
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

/** Resolves the path of a change. Follows a link at the path for a write, but not for a removal. */
const resolvePath = Effect.fnUntraced(function* (
  port: Backend,
  { after, path }: PathChange
): Effect.fn.Return<FsPath.FsPath, Fault> {
  const found = yield* after === null ? resolveLink(port, path) : resolve(port, path)
  // A file that blocks the path may be removed by the same transaction.
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
    return yield* Effect.fail(invalid(`${both}: one file would be changed twice; combine both changes`))
  }
  if (pathNode === rootNode || (pathNode.stat !== undefined && pathNode.stat.kind !== "file"))
    return yield* Effect.fail(notAFile)
  pathNode.pathChange = pathChange
})

const permissions = (stat: FileStat | undefined): { readonly mode?: number } =>
  stat?.mode === undefined ? {} : { mode: stat.mode & 0o777 }

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
 * Resolves the path of every change. Fails with InvalidArgument if two changes affect the same file or contradict each other.
 * Fails with NotAFile or NotADirectory for entries of the wrong kind, and with the errors of link resolution.
 */
const resolveChanges = Effect.fnUntraced(function* (
  port: Backend,
  pathChanges: ReadonlyArray<PathChange>
): Effect.fn.Return<ChangeTrees, Fault> {
  const stat = yield* port.stat(FsPath.root)
  if (stat?.kind !== "directory") return yield* Effect.fail(located({ _tag: "NotFound" }, FsPath.root))
  const rootNode: PathNode = { at: FsPath.root, stat, below: new Map() }
  for (const pathChange of pathChanges)
    yield* Effect.mapError(addToTree(port, rootNode, pathChange), (fault) => located(fault, pathChange.path))
  const places = collectChanges(rootNode)
  if ("_tag" in places) return yield* Effect.fail(places)
  const stats = new Map(places.map(({ pathChange, stat }) => [pathChange.path, stat]))
  const modeOf = ({ from }: PathChange) => (from === undefined ? {} : permissions(stats.get(from)))
  return { places, before: nodeBefore(rootNode) as DirectoryNode, after: nodeAfter(modeOf)(rootNode) as DirectoryNode }
})

export interface FileChange {
  readonly path: FsPath.FsPath
  /** The version that the file must have, or `null` if the file must not exist. */
  readonly before: string | null
  /** The new content, or `null` to remove the file. */
  readonly after: Uint8Array | null
  /** The old path of a file that moves. The old file is removed, and the new file keeps the permissions. */
  readonly from?: { readonly path: FsPath.FsPath; readonly version: string } | undefined
}

export interface ChangedFile {
  readonly path: FsPath.FsPath
  readonly version: string | null
}

interface Options {
  /** The name of the operation in errors. @default "change" */
  readonly operation?: string | undefined
}

const pathChangesOf = ({ after, before, from, path }: FileChange): ReadonlyArray<PathChange> =>
  from === undefined
    ? [{ path, before, after }]
    : [
        { path: from.path, before: from.version, after: null },
        { path, before, after, from: from.path }
      ]

const changedFileOf = ({ after, path }: FileChange): ChangedFile => ({
  path,
  version: after === null ? null : Version.ofBytes(after)
})

const permissionFault = ({ isPermitted: may }: Caller.Caller, pathChanges: ReadonlyArray<PathChange>): Fault | undefined => {
  for (const { after, path } of pathChanges) {
    const action = after === null ? "delete" : "write"
    if (!may(action) || !may(action, path)) return located(Caller.readOnly, path)
  }
  return undefined
}

const applySingleChange = Effect.fnUntraced(function* (
  port: Backend,
  { after, before, path }: PathChange
): Effect.fn.Return<void, Fault> {
  if (after === null) return yield* Effect.asVoid(remove(port, path, { recursive: false, missing: "fail", ifMatch: before }))
  const limits = yield* Limits
  const plan = { mode: "overwrite", createParents: true, ifMatch: before, version: false, limits } as const
  yield* Write.bytes(port, path, after, plan)
})

/** Runs an effect with a claim on every file. All processes claim files in the same order, which prevents a deadlock. */
const withClaims = <A, E, R>(
  port: Backend,
  places: ReadonlyArray<ResolvedChange>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => {
  const claims = new Map(places.map(({ at }) => [FsPath.fold(at.normalize()), at]))
  return [...claims]
    .sort(([a], [b]) => FsPath.compare(b, a))
    .reduce<Effect.Effect<A, E | Fault, R>>((inner, [, at]) => withClaim(port, at, inner), effect)
}

const isConcurrentChange = ({ _tag, code }: Fault & { readonly code?: unknown }): boolean =>
  _tag === "NotFound" ||
  _tag === "NotADirectory" ||
  _tag === "AlreadyExists" ||
  (_tag === "IoError" && (code === "ECHANGED" || code === "EEXIST"))

const withCallerPath = (places: ReadonlyArray<ResolvedChange>, fault: Fault): Fault => {
  const { path: at } = fault as { readonly path?: FsPath.FsPath }
  if (at === undefined) return fault
  const exact = places.find((place) => place.at === at)
  const place = exact ?? places.find((place) => FsPath.isWithin(at, place.at))
  if (place === undefined) return fault
  const { before, path } = place.pathChange
  if (isConcurrentChange(fault)) return { _tag: "Conflict", path, expected: before }
  return exact === undefined ? fault : { ...fault, path }
}

const replaceTrees = (port: Backend, { after, before, places }: ChangeTrees): Effect.Effect<void, Fault> => {
  const contents = new Map(places.map(({ at, pathChange }) => [at, pathChange.after]))
  const content = (path: FsPath.FsPath) => Effect.succeed(contents.get(path)!)
  const replaced = Effect.mapError(runTransaction<never>(port, { before, after, content }), mismatchToFault)
  // The transaction moves old files aside, as an overwrite does. Without permission to delete, the transaction removes no file,
  // because removals were refused before.
  return port.rules?.permits?.("delete") === false ? Effect.provideService(replaced, TakingBack, true) : replaced
}

/**
 * Returns a fault if a rule protects one of the files to remove. Checks the resolved paths, because the paths of the caller may
 * lead through links.
 */
const protectedFileFault = (port: Backend, places: ReadonlyArray<ResolvedChange>): Fault | undefined => {
  for (const { at, pathChange } of places) {
    const fault = pathChange.after === null ? port.rules?.keeps?.(at) : undefined
    if (fault !== undefined) return located(fault, pathChange.path)
  }
  return undefined
}

const applyAll = Effect.fnUntraced(function* (
  port: Backend,
  pathChanges: ReadonlyArray<PathChange>
): Effect.fn.Return<void, Fault> {
  yield* recoverTransactions(port)
  const trees = yield* resolveChanges(port, pathChanges)
  const { places } = trees
  const kept = protectedFileFault(port, places)
  if (kept !== undefined) return yield* Effect.fail(kept)
  const checkPreconditions = Effect.forEach(
    places,
    ({ at, pathChange }) =>
      Effect.mapError(Write.requirePrecondition(port, at, pathChange.before), (fault) => located(fault, at)),
    { discard: true }
  )
  yield* Effect.mapError(withClaims(port, places, Effect.andThen(checkPreconditions, replaceTrees(port, trees))), (fault) =>
    withCallerPath(places, fault)
  )
})

/**
 * Makes all changes or none. Links in a path are followed as by a write if the file is written, and as by a delete if the file
 * is removed. Missing directories are created, and no directory is removed. The limits on the size of a write are not
 * checked here, so the caller must check them.
 *
 * Fails with Conflict if a file does not have the version `before`, and with InvalidArgument if two changes affect one file. Also
 * fails with NotAFile, NotADirectory, and the errors of a write or a delete. After a failure nothing has changed.
 */
export const applyChanges = (
  fs: Algebra,
  changes: ReadonlyArray<FileChange>,
  options: Options = {}
): Effect.Effect<ReadonlyArray<ChangedFile>, FsError> => {
  const { port } = fs
  const caller = Caller.make(port)
  const pathChanges = changes.flatMap(pathChangesOf)
  const [first] = pathChanges
  return caller.run(options.operation ?? "change", first?.path ?? FsPath.root, Caller.errorTags.edit, () => {
    const fault = permissionFault(caller, pathChanges)
    if (fault !== undefined) return Effect.fail(fault)
    if (first === undefined) return Effect.succeed([])
    const applied =
      pathChanges.length === 1
        ? applySingleChange(port, first)
        : withExclusiveLock(port, withTreeLock(port, applyAll(port, pathChanges)))
    return Effect.as(applied, changes.map(changedFileOf))
  })
}

/**
 * Completes or discards the transactions that killed processes left unfinished, so that no tool sees half of a change. Runs
 * before the first call of a session. A failure is logged, and the next change of several files tries again.
 */
export const recoverChanges = ({ port }: Algebra): Effect.Effect<void> =>
  Effect.catch(withExclusiveLock(port, recoverTransactions(port)), (fault) =>
    Effect.logWarning(
      "fs-algebra: the unfinished change of a killed process could not be completed or undone; the next change of several files tries again",
      fault
    )
  )
