/**
 * Undoes changes. Compares the known tree at the position with the current one. Looks only at paths that differ or were
 * changed in between, and reverts all differences in one transaction.
 */
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { exchange, type Mismatch } from "../../history/exchange.ts"
import { taking } from "../../history/exchange/turn.ts"
import { alone, isPermitted, recovering } from "../../history/replace.ts"
import {
  type Change,
  differences as treeDifferences,
  type DirectoryNode,
  empty,
  graft,
  inOrder,
  type Node as TreeNode
} from "../../history/tree.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import { BringingBack } from "../../port/Rules.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import { difference, differences, settle, stateAt } from "./actual.ts"
import * as Beginning from "./beginning.ts"
import { type ContentError, notRecorded } from "./contents.ts"
import { goalAt, placesIn, treeAt, type Undoing } from "./goal.ts"
import { load } from "./load.ts"
import { toPath } from "./paths.ts"
import type { Drift, State } from "./values.ts"
import { type Attributes, attributesOf, type Directory, type Node, type World } from "./world.ts"

export interface Options {
  readonly to: number
  readonly paths?: ReadonlyArray<string> | undefined
  readonly dryRun?: boolean | undefined
}

/** The two trees at one path; both are `undefined` if the path is not affected. */
interface Sides {
  readonly before: TreeNode | undefined
  readonly after: TreeNode | undefined
}

interface Finding extends Undoing {
  readonly touched: ReadonlySet<FsPath.FsPath>
  readonly isWithin: (path: FsPath.FsPath) => boolean
  readonly conflicts: Array<Drift>
  /** The modification times to set on entries whose content stays. */
  readonly times: Array<Time>
}

interface Time {
  readonly path: FsPath.FsPath
  readonly was: DateTime.Utc | undefined
  readonly becomes: DateTime.Utc
}

const originOf = (node: Node): FsPath.FsPath | undefined =>
  node.kind === "origin" ? node.path : node.kind === "directory" ? node.origin : undefined

const entriesOf = (node: Node): Directory["entries"] => (node.kind === "directory" ? node.entries : new Map())

const isOtherMode = (then: Attributes | undefined, now: Attributes | undefined): boolean =>
  then !== now && then?.mode !== now?.mode && then?.mode.value !== now?.mode.value

/** Returns the time to restore, if any. An entry that was written since then gets a new time in any case. */
const otherTime = (then: Attributes | undefined, now: Attributes | undefined): DateTime.Utc | undefined => {
  const { value } = then?.modified ?? {}
  return then?.modified === now?.modified || value?.epochMilliseconds === now?.modified.value?.epochMilliseconds
    ? undefined
    : value
}

const haveEqualAttributes = (then: Attributes | undefined, now: Attributes | undefined): boolean =>
  !isOtherMode(then, now) && otherTime(then, now) === undefined

/** Tests whether both nodes are the same directory. Only one of the worlds may know that the node is a directory. */
const isOneDirectory = (a: Node, b: Node): boolean =>
  (a.kind === "directory" || a.kind === "origin") &&
  (b.kind === "directory" || b.kind === "origin") &&
  (a.kind === "directory" || b.kind === "directory") &&
  originOf(a) === originOf(b)

const isEqual = (beginning: World["beginning"], a: Node, b: Node): boolean => {
  if (a === b) return true
  if (a.kind !== b.kind || !haveEqualAttributes(attributesOf(beginning, a), attributesOf(beginning, b))) return false
  if (a.kind === "origin" && b.kind === "origin") return a.path === b.path
  if (a.kind === "symlink" && b.kind === "symlink") return a.target === b.target
  if (a.kind === "file" && b.kind === "file") {
    return a.parts.length === b.parts.length && a.parts.every((part, i) => part === b.parts[i])
  }
  return a.kind === "nothing"
}

const names = (...nodes: ReadonlyArray<Node>): ReadonlyMap<string, string> => {
  const out = new Map<string, string>()
  for (const node of nodes) for (const [key, { name }] of entriesOf(node)) if (!out.has(key)) out.set(key, name)
  return out
}

/** Adds a conflict for each unrecorded entry in a directory that the undo would remove. */
const strangers = Effect.fnUntraced(function* (
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

const check = (finding: Finding, path: FsPath.FsPath, node: Node): Effect.Effect<void, ContentError> =>
  Effect.map(differences(finding, path, node), (found) => void finding.conflicts.push(...found))

const sidesOf = Effect.fnUntraced(function* (
  finding: Finding,
  path: FsPath.FsPath,
  then: Node,
  now: Node
): Effect.fn.Return<Sides | undefined, ContentError> {
  if (finding.beginning.hidden.has(path) || !finding.isMeant(path)) return undefined
  if (isOneDirectory(then, now)) return yield* directorySides(finding, path, then, now)
  const { beginning } = finding.now
  if (isEqual(beginning, then, now)) {
    if (finding.touched.has(path)) yield* check(finding, path, now)
    return undefined
  }
  if (then.kind === "origin" && now.kind === "origin" && then.path === now.path) {
    // Only the attributes differ, so a directory's contents need not be read.
    const stat = yield* Effect.mapError(finding.port.stat(path), (fault) => located(fault, path))
    if (stat?.kind === "directory") return yield* directorySides(finding, path, then, now)
  }
  yield* check(finding, path, now)
  yield* strangers(finding, path, now)
  // After a conflict the undo fails, so the trees are not needed.
  if (finding.conflicts.length > 0) return undefined
  const before = yield* treeAt(finding, path)
  const after = yield* goalAt(finding, path, then)
  const attributes = attributesOf(beginning, now)
  if (before !== undefined && after?.kind === before.kind && after.kind !== "symlink") {
    if (after.mode === undefined && attributes?.mode.value !== undefined) {
      return yield* Effect.fail(notRecorded("undo", path, "the permission bits that it had before were not recorded"))
    }
    if (after.kind === "file" && before.kind === "file" && after.id === before.id) {
      yield* retime(finding, path, after.modifiedAt)
    }
  }
  return { before, after }
})

const retime = Effect.fnUntraced(function* (
  { isWithin, port, times }: Finding,
  path: FsPath.FsPath,
  becomes: DateTime.Utc | undefined
): Effect.fn.Return<void, ContentError> {
  if (becomes === undefined || port.attributes === undefined || !isWithin(path)) return
  const was = (yield* Effect.mapError(port.stat(path), (fault) => located(fault, path)))?.modifiedAt
  if (was?.epochMilliseconds !== becomes.epochMilliseconds) times.push({ path, was, becomes })
})

const directorySides = Effect.fnUntraced(function* (
  finding: Finding,
  path: FsPath.FsPath,
  then: Node,
  now: Node
): Effect.fn.Return<Sides | undefined, ContentError> {
  const before = new Map<string, TreeNode>()
  const after = new Map<string, TreeNode>()
  for (const name of names(now, then).values()) {
    const below = FsPath.join(path, name)
    const sides = yield* Effect.suspend(() =>
      sidesOf(finding, below, finding.past.child(then, name), finding.now.child(now, name))
    )
    if (sides?.before !== undefined) before.set(name, sides.before)
    if (sides?.after !== undefined) after.set(name, sides.after)
  }
  const { beginning } = finding.now
  const [past, present] = [attributesOf(beginning, then), attributesOf(beginning, now)]
  const hasOtherMode = isOtherMode(past, present)
  // A change inside the directory gives the directory a new time in any case.
  const time = before.size === 0 && after.size === 0 ? otherTime(past, present) : undefined
  if (before.size === 0 && after.size === 0 && !hasOtherMode && time === undefined) return undefined
  const stat = yield* Effect.mapError(finding.port.stat(path), (fault) => located(fault, path))
  if (stat?.kind !== "directory") {
    finding.conflicts.push({ path, expected: { kind: "directory" }, actual: yield* stateAt(finding.port, path) })
    return undefined
  }
  const mode = past?.mode.value
  const modes = hasOtherMode && mode !== undefined && stat.mode !== undefined
  if (hasOtherMode && mode === undefined && stat.mode !== undefined && finding.isWithin(path)) {
    return yield* Effect.fail(notRecorded("undo", path, "the permission bits that it had before were not recorded"))
  }
  const drift = hasOtherMode ? yield* difference(finding, path, now) : undefined
  if (drift !== undefined) {
    finding.conflicts.push(drift)
    return undefined
  }
  yield* retime(finding, path, time)
  return {
    before: { kind: "directory", entries: before, ...(modes ? { mode: stat.mode } : {}) },
    after: { kind: "directory", entries: after, ...(modes ? { mode } : {}) }
  }
})

const versionOf = (state: State): string | null => (state.kind === "file" ? state.version : null)

const conflict = ({ actual, expected, path }: Drift): Fault => ({
  _tag: "Conflict",
  path,
  expected: versionOf(expected),
  ...(actual.kind === "file" || actual.kind === "nothing" ? { actual: versionOf(actual) } : {})
})

const changedMeanwhile = new Set<unknown>(["ECHANGED", "EEXIST", "ENOTEMPTY"])

/** Turns a failure that is due to a concurrent change into a Conflict. */
const asConflict = <E>(error: E | Fault | Mismatch): Effect.Effect<never, E | Fault> => {
  const fault = error as Fault | Mismatch
  const isConflict = fault._tag === "Mismatch" || (fault._tag === "IoError" && changedMeanwhile.has(fault["code"]))
  return Effect.fail(isConflict ? { _tag: "Conflict", path: fault.path, expected: null } : (error as E | Fault))
}

const among = (paths: ReadonlyArray<FsPath.FsPath> | undefined, port: Backend) => {
  const fold = (path: FsPath.FsPath): FsPath.FsPath => (port.info.caseSensitive ? path : FsPath.fold(path))
  const meant = paths?.map(fold)
  const isWithin = (path: FsPath.FsPath): boolean =>
    meant === undefined || meant.some((wanted) => FsPath.isWithin(wanted, fold(path)))
  const isMeant = (path: FsPath.FsPath): boolean =>
    isWithin(path) || meant!.some((wanted) => FsPath.isWithin(fold(path), wanted))
  return { isWithin, isMeant }
}

const withTimes = (
  changes: ReadonlyArray<Change>,
  times: ReadonlyArray<Time>,
  caseSensitive: boolean
): ReadonlyArray<Change> => {
  const known = new Set(changes.map(({ path }) => path))
  const others = times.filter(({ path }) => !known.has(path)).map(({ path }): Change => ({ _tag: "Modified", path }))
  return others.length === 0 ? changes : inOrder([...changes, ...others], caseSensitive)
}

const setTime = (port: Backend, path: FsPath.FsPath, modifiedAt: DateTime.Utc): Effect.Effect<void, Fault> =>
  Effect.mapError(port.attributes!.set(path, { modifiedAt }), (fault) => located(fault, path))

/** Sets the times before the effect. Restores them if one cannot be set, or if the effect fails. */
const retiming = <E>(
  port: Backend,
  times: ReadonlyArray<Time>,
  effect: Effect.Effect<void, E>
): Effect.Effect<void, E | Fault> => {
  const done: Array<Time> = []
  const set = Effect.forEach(
    times,
    (time) => Effect.tap(setTime(port, time.path, time.becomes), () => Effect.sync(() => void done.push(time))),
    { discard: true }
  )
  const back = Effect.suspend(() =>
    Effect.forEach(done, ({ path, was }) => (was === undefined ? Effect.void : Effect.ignore(setTime(port, path, was))), {
      discard: true
    })
  )
  return times.length === 0
    ? effect
    : Effect.uninterruptibleMask((restore) => Effect.onError(Effect.andThen(set, restore(effect)), () => back))
}

const undoing = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  port: Backend,
  { dryRun, paths, to }: Options
): Effect.fn.Return<ReadonlyArray<Change>, ContentError> {
  if (dryRun !== true) yield* recovering(port)
  const { caseSensitive } = port.info
  const loaded = yield* load(journal, { caseSensitive, position: to, isFurther: true })
  const source = Beginning.source("undo", journal.contents, loaded.now.beginning)
  const now = yield* settle({ beginning: loaded.now.beginning, port, source }, loaded.now, loaded.open)
  const wanted = paths?.map(toPath)
  const finding: Finding = {
    port,
    source: Beginning.source("undo", journal.contents, now.beginning),
    beginning: now.beginning,
    past: loaded.past,
    now,
    places: placesIn(now),
    ...among(wanted, port),
    contents: new Map(),
    touched: loaded.touched,
    conflicts: [],
    times: []
  }
  const sides = yield* directorySides(finding, FsPath.root, finding.past.top, now.top)
  const [first] = finding.conflicts.sort((a, b) => FsPath.compare(a.path, b.path))
  if (first !== undefined) return yield* Effect.fail(conflict(first))
  const before = (sides?.before ?? empty) as DirectoryNode
  const whole = (sides?.after ?? empty) as DirectoryNode
  const after = wanted === undefined ? whole : graft(before, whole, wanted, caseSensitive)
  const changes = withTimes(treeDifferences(before, after, caseSensitive), finding.times, caseSensitive)
  if (dryRun === true || changes.length === 0) return changes
  const content = (path: FsPath.FsPath) => Effect.succeed(finding.contents.get(path)!)
  yield* Effect.provideService(
    retiming(
      port,
      finding.times,
      Effect.catch(exchange<Exclude<ContentError, Fault>>(port, { before, after, content }), asConflict)
    ),
    BringingBack,
    true
  )
  return changes
})

const readOnly: Fault = { _tag: "AccessDenied", path: FsPath.root, why: "readOnly" }

const noPosition: Fault = {
  _tag: "InvalidArgument",
  argument: "to",
  path: FsPath.root,
  detail: "it must be a position, or 0 for the beginning"
}

export const undo = (
  journal: Scrivener<Entry>,
  { port }: Algebra,
  options: Options
): Effect.Effect<ReadonlyArray<Change>, ContentError> =>
  Effect.suspend((): Effect.Effect<ReadonlyArray<Change>, ContentError> => {
    if (!Number.isSafeInteger(options.to) || options.to < 0) return Effect.fail(noPosition)
    if (options.dryRun === true) return alone(port, undoing(journal, port, options))
    if (!isPermitted(port)) return Effect.fail(readOnly)
    return alone(port, taking(port, undoing(journal, port, options)))
  })
