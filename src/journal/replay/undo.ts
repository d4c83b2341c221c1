/**
 * Undoes changes. Compares the recorded trees at the target position and at the end. Examines only the paths that differ or were
 * changed in between. Reverts all differences in one transaction. Modification times alone are set before the transaction.
 */
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { type Mismatch, runTransaction } from "../../history/transaction.ts"
import { withTreeLock } from "../../history/transaction/treeLock.ts"
import { isPermitted, recoverTransactions, withExclusiveLock } from "../../history/replace.ts"
import {
  blobHasher,
  type Change,
  differences as treeDifferences,
  type DirectoryNode,
  emptyDirectory,
  graft,
  type Node as TreeNode,
  sortByPath
} from "../../history/tree.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import { BringingBack } from "../../port/Rules.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Entry, Scrivener } from "../model.ts"
import * as Beginning from "./contents.ts"
import { bytesAt, content, type ContentError, digest, notRecorded, type Source } from "./contents.ts"
import { applyCompleted, difference, differences, stateAt } from "./drift.ts"
import { load } from "./load.ts"
import { normalizePath } from "./paths.ts"
import type { Drift, State } from "./values.ts"
import { type Attributes, attributesOf, type Directory, type Node, type World } from "./world.ts"

// The two trees of an undo: the current tree and the target tree, both reduced to their differences. An entry that is older
// than the journal is read at its current path, or from the journal.

type Bytes = Stream.Stream<Uint8Array, ContentError>

interface UndoContext {
  readonly port: Backend
  readonly source: Source
  readonly beginning: World["beginning"]
  readonly targetWorld: World
  readonly now: World
  /** The current paths of moved or changed entries that are older than the journal, by their original paths. */
  readonly currentPaths: ReadonlyMap<FsPath.FsPath, FsPath.FsPath>
  readonly isSelectedOrAbove: (path: FsPath.FsPath) => boolean
  /** The contents of the target tree, by path. */
  readonly contents: Map<FsPath.FsPath, Bytes>
}

const currentPathsIn = (world: World): ReadonlyMap<FsPath.FsPath, FsPath.FsPath> => {
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

const specialFileFault = (path: FsPath.FsPath): Fault => ({
  _tag: "IoError",
  path,
  detail: "the entry is not a file, a directory or a link, so it cannot be restored"
})

const unreadableLinkFault = (path: FsPath.FsPath): Fault => ({
  _tag: "IoError",
  path,
  code: "ENOTSUP",
  detail: "the entry is a link, and this filesystem cannot read links, so the link cannot be restored"
})

/**
 * Returns the actual tree at a path. With `targetPath`, also adds the contents of the tree's files to
 * `context.contents`, below `targetPath`.
 */
const treeAt = Effect.fnUntraced(function* (
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
      if (port.links === undefined) return yield* Effect.fail(unreadableLinkFault(path))
      return { kind: "symlink", target: yield* Effect.mapError(port.links.read(path), (fault) => located(fault, path)) }
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

/** Removes the mode from a node, because the mode was set after the target position. */
const withoutMode = (node: TreeNode | undefined): TreeNode | undefined =>
  node === undefined || node.kind === "symlink" ? node : { ...node, mode: undefined }

/**
 * Returns the current path of an entry that is older than the journal. The entry may have been moved alone or with a
 * directory. Returns `undefined` if a change has removed or replaced the entry.
 */
const currentPathOf = ({ now, currentPaths }: UndoContext, origin: FsPath.FsPath): FsPath.FsPath | undefined => {
  for (let above = origin; ; above = FsPath.parent(above)) {
    const currentPath = currentPaths.get(above)
    if (currentPath !== undefined) {
      const names = FsPath.segments(FsPath.relative(above, origin))
      let node = now.get(currentPath)
      for (const name of names) {
        // A recorded change has put another entry at this name.
        if (node.kind === "directory" && node.entries.has(now.key(name))) return undefined
        node = now.child(node, name)
      }
      return FsPath.below(currentPath, FsPath.relative(above, origin))
    }
    if (above === FsPath.root) return undefined
  }
}

const unknownError = ({ source }: UndoContext, path: FsPath.FsPath) =>
  notRecorded(source.operation, path, "the journal does not contain the previous state of the path")

const noNames = new Set<string>()

/** Returns the recorded names in a directory that is older than the journal. */
const namesOf = ({ now, currentPaths }: UndoContext, origin: FsPath.FsPath): ReadonlySet<string> => {
  const names = new Set(now.beginning.namesIn(origin))
  for (const path of currentPaths.keys())
    if (path !== FsPath.root && FsPath.parent(path) === origin) names.add(FsPath.name(path))
  return names
}

/** Returns the tree at a path before the first journal entry. Omits the excluded children. */
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
  const { size } = yield* digest(context.source, targetPath, file)
  context.contents.set(targetPath, bytes)
  return yield* fileOf(size, bytes, knownAttributes(file.attributes))
})

const targetTreeAt = Effect.fnUntraced(function* (
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

interface Options {
  readonly to: number
  readonly paths?: ReadonlyArray<string> | undefined
  readonly dryRun?: boolean | undefined
}

/** The two trees at one path. `undefined` means that there is no entry. */
interface TreePair {
  readonly before: TreeNode | undefined
  readonly after: TreeNode | undefined
}

interface Finding extends UndoContext {
  readonly touched: ReadonlySet<FsPath.FsPath>
  readonly isSelected: (path: FsPath.FsPath) => boolean
  readonly conflicts: Array<Drift>
  /** The modification times to restore. The contents of these entries do not change. */
  readonly times: Array<TimeChange>
}

interface TimeChange {
  readonly path: FsPath.FsPath
  readonly previousTime: DateTime.Utc | undefined
  readonly restoredTime: DateTime.Utc
}

const originOf = (node: Node): FsPath.FsPath | undefined =>
  node.kind === "origin" ? node.path : node.kind === "directory" ? node.origin : undefined

const entriesOf = (node: Node): Directory["entries"] => (node.kind === "directory" ? node.entries : new Map())

const hasDifferentMode = (former: Attributes | undefined, now: Attributes | undefined): boolean =>
  former !== now && former?.mode !== now?.mode && former?.mode.value !== now?.mode.value

/** Returns the modification time to restore. Returns `undefined` if the time has not changed or the former time is unknown. */
const timeToRestore = (former: Attributes | undefined, now: Attributes | undefined): DateTime.Utc | undefined => {
  const { value } = former?.modified ?? {}
  return former?.modified === now?.modified || value?.epochMilliseconds === now?.modified.value?.epochMilliseconds
    ? undefined
    : value
}

const hasEqualAttributes = (former: Attributes | undefined, now: Attributes | undefined): boolean =>
  !hasDifferentMode(former, now) && timeToRestore(former, now) === undefined

/** Tests whether both nodes are the same directory. At least one node must be known to be a directory. */
const isSameDirectory = (a: Node, b: Node): boolean =>
  (a.kind === "directory" || a.kind === "origin") &&
  (b.kind === "directory" || b.kind === "origin") &&
  (a.kind === "directory" || b.kind === "directory") &&
  originOf(a) === originOf(b)

const isEqual = (beginning: World["beginning"], a: Node, b: Node): boolean => {
  if (a === b) return true
  if (a.kind !== b.kind || !hasEqualAttributes(attributesOf(beginning, a), attributesOf(beginning, b))) return false
  if (a.kind === "origin" && b.kind === "origin") return a.path === b.path
  if (a.kind === "symlink" && b.kind === "symlink") return a.target === b.target
  if (a.kind === "file" && b.kind === "file") {
    return a.parts.length === b.parts.length && a.parts.every((part, i) => part === b.parts[i])
  }
  return a.kind === "nothing"
}

const entryNames = (...nodes: ReadonlyArray<Node>): ReadonlyMap<string, string> => {
  const out = new Map<string, string>()
  for (const node of nodes) for (const [key, { name }] of entriesOf(node)) if (!out.has(key)) out.set(key, name)
  return out
}

/** Adds a conflict for each unrecorded entry in a directory that the undo would remove. */
const addUnrecordedConflicts = Effect.fnUntraced(function* (
  finding: Finding,
  top: FsPath.FsPath,
  node: Node
): Effect.fn.Return<void, ContentError> {
  const { conflicts, now, port } = finding
  const pending: Array<readonly [path: FsPath.FsPath, node: Node]> = [[top, node]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [path, node] = next
    if (node.kind !== "directory" || (yield* port.stat(path))?.kind !== "directory") continue
    for (const child of yield* Effect.mapError(port.list(path), (fault) => located(fault, path))) {
      if (TemporaryNames.isInProgress(child.name)) continue
      const below = FsPath.join(path, keyOf(child))
      const known = now.child(node, keyOf(child))
      if (known.kind !== "nothing") pending.push([below, known])
      else if (!conflicts.some((other) => other.path === below)) {
        conflicts.push({ path: below, expected: { kind: "nothing" }, actual: yield* stateAt(port, below) })
      }
    }
  }
})

const addConflicts = (finding: Finding, path: FsPath.FsPath, node: Node): Effect.Effect<void, ContentError> =>
  Effect.map(differences(finding, path, node), (found) => void finding.conflicts.push(...found))

const pairOf = Effect.fnUntraced(function* (
  finding: Finding,
  path: FsPath.FsPath,
  former: Node,
  now: Node
): Effect.fn.Return<TreePair | undefined, ContentError> {
  if (finding.beginning.hidden.has(path) || !finding.isSelectedOrAbove(path)) return undefined
  if (isSameDirectory(former, now)) return yield* directoryPair(finding, path, former, now)
  const { beginning } = finding.now
  if (isEqual(beginning, former, now)) {
    if (finding.touched.has(path)) yield* addConflicts(finding, path, now)
    return undefined
  }
  if (former.kind === "origin" && now.kind === "origin" && former.path === now.path) {
    // Only the attributes differ, so do not read the entries of a directory.
    const stat = yield* Effect.mapError(finding.port.stat(path), (fault) => located(fault, path))
    if (stat?.kind === "directory") return yield* directoryPair(finding, path, former, now)
  }
  yield* addConflicts(finding, path, now)
  yield* addUnrecordedConflicts(finding, path, now)
  // Skip the trees after a conflict, because the undo will fail.
  if (finding.conflicts.length > 0) return undefined
  const before = yield* treeAt(finding, path)
  const after = yield* targetTreeAt(finding, path, former)
  const attributes = attributesOf(beginning, now)
  if (before !== undefined && after?.kind === before.kind && after.kind !== "symlink") {
    if (after.mode === undefined && attributes?.mode.value !== undefined) {
      return yield* Effect.fail(notRecorded("undo", path, "the previous permission bits were not recorded"))
    }
    if (after.kind === "file" && before.kind === "file" && after.id === before.id) {
      yield* planTime(finding, path, after.modifiedAt)
    }
  }
  return { before, after }
})

const planTime = Effect.fnUntraced(function* (
  { isSelected, port, times }: Finding,
  path: FsPath.FsPath,
  restoredTime: DateTime.Utc | undefined
): Effect.fn.Return<void, ContentError> {
  if (restoredTime === undefined || port.attributes === undefined || !isSelected(path)) return
  const previousTime = (yield* Effect.mapError(port.stat(path), (fault) => located(fault, path)))?.modifiedAt
  if (previousTime?.epochMilliseconds !== restoredTime.epochMilliseconds) times.push({ path, previousTime, restoredTime })
})

const directoryPair = Effect.fnUntraced(function* (
  finding: Finding,
  path: FsPath.FsPath,
  former: Node,
  now: Node
): Effect.fn.Return<TreePair | undefined, ContentError> {
  const before = new Map<string, TreeNode>()
  const after = new Map<string, TreeNode>()
  for (const name of entryNames(now, former).values()) {
    const below = FsPath.join(path, name)
    const treePair = yield* Effect.suspend(() =>
      pairOf(finding, below, finding.targetWorld.child(former, name), finding.now.child(now, name))
    )
    if (treePair?.before !== undefined) before.set(name, treePair.before)
    if (treePair?.after !== undefined) after.set(name, treePair.after)
  }
  const { beginning } = finding.now
  const [past, present] = [attributesOf(beginning, former), attributesOf(beginning, now)]
  const hasOtherMode = hasDifferentMode(past, present)
  // Restore the time only if nothing inside the directory changes, because each change gives the directory a new time.
  const time = before.size === 0 && after.size === 0 ? timeToRestore(past, present) : undefined
  if (before.size === 0 && after.size === 0 && !hasOtherMode && time === undefined) return undefined
  const stat = yield* Effect.mapError(finding.port.stat(path), (fault) => located(fault, path))
  if (stat?.kind !== "directory") {
    finding.conflicts.push({ path, expected: { kind: "directory" }, actual: yield* stateAt(finding.port, path) })
    return undefined
  }
  const mode = past?.mode.value
  const restoresMode = hasOtherMode && mode !== undefined && stat.mode !== undefined
  if (hasOtherMode && mode === undefined && stat.mode !== undefined && finding.isSelected(path)) {
    return yield* Effect.fail(notRecorded("undo", path, "the previous permission bits were not recorded"))
  }
  const drift = hasOtherMode ? yield* difference(finding, path, now) : undefined
  if (drift !== undefined) {
    finding.conflicts.push(drift)
    return undefined
  }
  yield* planTime(finding, path, time)
  return {
    before: { kind: "directory", entries: before, ...(restoresMode ? { mode: stat.mode } : {}) },
    after: { kind: "directory", entries: after, ...(restoresMode ? { mode } : {}) }
  }
})

const versionOf = (state: State): string | null => (state.kind === "file" ? state.version : null)

const conflictFault = ({ actual, expected, path }: Drift): Fault => ({
  _tag: "Conflict",
  path,
  expected: versionOf(expected),
  ...(actual.kind === "file" || actual.kind === "nothing" ? { actual: versionOf(actual) } : {})
})

const concurrentChangeCodes = new Set<unknown>(["ECHANGED", "EEXIST", "ENOTEMPTY"])

/** Fails with a Conflict if a concurrent change has caused the error. Otherwise fails with the error. */
const asConflict = <E>(error: E | Fault | Mismatch): Effect.Effect<never, E | Fault> => {
  const fault = error as Fault | Mismatch
  const isConflict = fault._tag === "Mismatch" || (fault._tag === "IoError" && concurrentChangeCodes.has(fault["code"]))
  return Effect.fail(isConflict ? { _tag: "Conflict", path: fault.path, expected: null } : (error as E | Fault))
}

const pathSelection = (paths: ReadonlyArray<FsPath.FsPath> | undefined, port: Backend) => {
  const fold = (path: FsPath.FsPath): FsPath.FsPath => (port.info.caseSensitive ? path : FsPath.fold(path))
  const foldedPaths = paths?.map(fold)
  const isSelected = (path: FsPath.FsPath): boolean =>
    foldedPaths === undefined || foldedPaths.some((wanted) => FsPath.isWithin(wanted, fold(path)))
  const isSelectedOrAbove = (path: FsPath.FsPath): boolean =>
    isSelected(path) || foldedPaths!.some((wanted) => FsPath.isWithin(fold(path), wanted))
  return { isSelected, isSelectedOrAbove }
}

const withTimes = (
  changes: ReadonlyArray<Change>,
  times: ReadonlyArray<TimeChange>,
  caseSensitive: boolean
): ReadonlyArray<Change> => {
  const known = new Set(changes.map(({ path }) => path))
  const others = times.filter(({ path }) => !known.has(path)).map(({ path }): Change => ({ _tag: "Modified", path }))
  return others.length === 0 ? changes : sortByPath([...changes, ...others], caseSensitive)
}

const setTime = (port: Backend, path: FsPath.FsPath, modifiedAt: DateTime.Utc): Effect.Effect<void, Fault> =>
  Effect.mapError(port.attributes!.set(path, { modifiedAt }), (fault) => located(fault, path))

/** Sets the modification times and then runs the effect. If a step fails, restores the previous times. */
const setTimesBefore = <E>(
  port: Backend,
  times: ReadonlyArray<TimeChange>,
  effect: Effect.Effect<void, E>
): Effect.Effect<void, E | Fault> => {
  const done: Array<TimeChange> = []
  const set = Effect.forEach(
    times,
    (time) => Effect.tap(setTime(port, time.path, time.restoredTime), () => Effect.sync(() => void done.push(time))),
    { discard: true }
  )
  const restoreTimes = Effect.suspend(() =>
    Effect.forEach(
      done,
      ({ path, previousTime }) => (previousTime === undefined ? Effect.void : Effect.ignore(setTime(port, path, previousTime))),
      {
        discard: true
      }
    )
  )
  return times.length === 0
    ? effect
    : Effect.uninterruptibleMask((restore) => Effect.onError(Effect.andThen(set, restore(effect)), () => restoreTimes))
}

const performUndo = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  port: Backend,
  { dryRun, paths, to }: Options
): Effect.fn.Return<ReadonlyArray<Change>, ContentError> {
  if (dryRun !== true) yield* recoverTransactions(port)
  const { caseSensitive } = port.info
  const loaded = yield* load(journal, { caseSensitive, position: to, includesLaterEntries: true })
  const source = Beginning.beginningSource("undo", journal.contents, loaded.now.beginning)
  const now = yield* applyCompleted({ beginning: loaded.now.beginning, port, source }, loaded.now, loaded.open)
  const wanted = paths?.map(normalizePath)
  const finding: Finding = {
    port,
    source: Beginning.beginningSource("undo", journal.contents, now.beginning),
    beginning: now.beginning,
    targetWorld: loaded.targetWorld,
    now,
    currentPaths: currentPathsIn(now),
    ...pathSelection(wanted, port),
    contents: new Map(),
    touched: loaded.touched,
    conflicts: [],
    times: []
  }
  const treePair = yield* directoryPair(finding, FsPath.root, finding.targetWorld.rootDirectory, now.rootDirectory)
  const [first] = finding.conflicts.sort((a, b) => FsPath.compare(a.path, b.path))
  if (first !== undefined) return yield* Effect.fail(conflictFault(first))
  const before = (treePair?.before ?? emptyDirectory) as DirectoryNode
  const targetTree = (treePair?.after ?? emptyDirectory) as DirectoryNode
  const after = wanted === undefined ? targetTree : graft(before, targetTree, wanted, caseSensitive)
  const changes = withTimes(treeDifferences(before, after, caseSensitive), finding.times, caseSensitive)
  if (dryRun === true || changes.length === 0) return changes
  const content = (path: FsPath.FsPath) => Effect.succeed(finding.contents.get(path)!)
  yield* Effect.provideService(
    setTimesBefore(
      port,
      finding.times,
      Effect.catch(runTransaction<Exclude<ContentError, Fault>>(port, { before, after, content }), asConflict)
    ),
    BringingBack,
    true
  )
  return changes
})

const readOnly: Fault = { _tag: "AccessDenied", path: FsPath.root, why: "readOnly" }

const invalidPositionFault: Fault = {
  _tag: "InvalidArgument",
  argument: "to",
  path: FsPath.root,
  detail: "the option `to` must be a position, or 0 to undo all changes"
}

export const undo = (
  journal: Scrivener<Entry>,
  { port }: Algebra,
  options: Options
): Effect.Effect<ReadonlyArray<Change>, ContentError> =>
  Effect.suspend((): Effect.Effect<ReadonlyArray<Change>, ContentError> => {
    if (!Number.isSafeInteger(options.to) || options.to < 0) return Effect.fail(invalidPositionFault)
    if (options.dryRun === true) return withExclusiveLock(port, performUndo(journal, port, options))
    if (!isPermitted(port)) return Effect.fail(readOnly)
    return withExclusiveLock(port, withTreeLock(port, performUndo(journal, port, options)))
  })
