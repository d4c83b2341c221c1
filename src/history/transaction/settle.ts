/**
 * Settles the transactions of killed processes in, below and above a root, when the root is opened and on request.
 *
 * A transaction is completed or discarded if the rules permit its changes, and if its staged files match the record. Otherwise
 * the transaction stays. Either outcome is reported.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { at as locate } from "../../engine/directories.ts"
import type { FileStat } from "../../model/Entry.ts"
import { unavailable } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf, mapPath } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import type { Recovery, TransactionOutcome } from "../../port/hostRoots.ts"
import { relative, sep } from "../../runtime/node.ts"
import { isInside } from "../../runtime/openRoots.ts"
import { pause } from "../../runtime/processLock.ts"
import * as Transactions from "../../runtime/transactions.ts"
import { isPermitted } from "../replace.ts"
import { isGone, setMode } from "./entries.ts"
import * as Staging from "./plan.ts"
import {
  hasEntryState,
  type ModeChange,
  type Move,
  probeName,
  type Region,
  slotOf,
  stagingDirectory,
  withOwnerBits
} from "./plan.ts"
import { decode, markDone, type RecordPart, removePart } from "./record.ts"
import { isStagedEntry } from "./stage.ts"
import { moveAside, openDirectories, putInPlace } from "./swap.ts"
import { withRootLocks } from "./treeLock.ts"

// Recovery discards the transaction of a killed process if its staging was incomplete. Otherwise recovery completes the
// transaction, even if the process was rolling back.
//
// An entry that changed after the staging stays, because another program changed the entry. Each staged
// entry is compared with the record first. If one entry differs, recovery changes nothing.

const modifiedMillis = (stat: FileStat | undefined): number => stat?.modifiedAt?.epochMilliseconds ?? 0

const statOf = (port: Backend, path: FsPath.FsPath): Effect.Effect<FileStat | undefined, Fault> =>
  Effect.catchIf(locate(path, port.stat(path)), isGone, () => Effect.succeed(undefined))

/** Tests whether anything in a directory has changed since the time `since`. Ignores times in the future. */
const hasChangedSince = Effect.fnUntraced(function* (port: Backend, top: FsPath.FsPath, since: number) {
  const now = yield* Clock.currentTimeMillis
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const stat = yield* locate(path, port.stat(path))
    const changed = modifiedMillis(stat)
    if (changed > since && changed <= now) return true
    if (stat?.kind !== "directory") continue
    for (const child of yield* locate(path, port.list(path))) pending.push(FsPath.join(path, keyOf(child)))
  }
  return false
})

interface UnfinishedTransaction {
  readonly port: Backend
  readonly part: RecordPart
  readonly token: string
  readonly isRollingBack: boolean
}

const setFinalMode = (port: Backend, { path, shuts }: Move, current: FileStat | undefined): Effect.Effect<void, Fault> =>
  shuts !== undefined && current?.kind === "directory" && current.mode === withOwnerBits(shuts)
    ? setMode(port, path, shuts)
    : Effect.void

const finishStep = Effect.fnUntraced(function* (self: UnfinishedTransaction, move: Move) {
  const { isRollingBack, part, port, token } = self
  const { keeps, next, path, was } = move
  const [staged, aside] = [slotOf(part.regions, token, move, "new"), slotOf(part.regions, token, move, "old")]
  const current = yield* statOf(port, path)
  const hasStaged = next !== undefined && (yield* port.stat(staged)) !== undefined
  if (next !== undefined && !hasStaged) return yield* setFinalMode(port, move, current)
  const isAside = was !== undefined && (yield* port.stat(aside)) !== undefined
  const isVacant = current === undefined && (was === undefined || (isAside && (!keeps || isRollingBack)))
  if (isVacant) return yield* hasStaged ? putInPlace(port, move, staged) : Effect.void
  if (was === undefined || current === undefined || (isAside && !keeps) || !hasEntryState(current, was)) return
  if (!keeps) {
    if (was.kind === "directory" && (yield* hasChangedSince(port, path, part.since ?? 0))) return
    yield* moveAside(port, move, aside)
  }
  if (hasStaged) yield* putInPlace(port, move, staged)
})

const finishMode = Effect.fnUntraced(function* (port: Backend, change: ModeChange) {
  const { becomes, kind, path, was } = change
  const current = yield* statOf(port, path)
  if (current?.kind === kind && (current.mode === was || current.mode === withOwnerBits(was)))
    yield* setMode(port, path, becomes)
})

const regionsOf = ({ regions }: RecordPart): ReadonlyArray<Region> =>
  regions.flatMap((region) => (region === undefined ? [] : [region]))

/**
 * Returns the reason why a transaction cannot be completed, or `undefined` if it can. Changes nothing.
 *
 * One reason is a missing directory. Another program may have renamed the directory for a moment, and the entry that is
 * staged for the directory may be the only copy.
 */
const findRefusal = Effect.fnUntraced(function* (self: UnfinishedTransaction): Effect.fn.Return<string | undefined, Fault> {
  const { part, port, token } = self
  for (const region of regionsOf(part)) {
    if (region.isFlat) continue
    const staging = stagingDirectory(region, token)
    const current = yield* locate(staging, port.stat(staging))
    if (current?.kind !== "directory") return `the staging directory ${JSON.stringify(staging)} no longer exists`
  }
  for (const move of part.steps) {
    if (move.next === undefined) continue
    const staged = slotOf(part.regions, token, move, "new")
    const current = yield* locate(staged, port.stat(staged))
    if (current !== undefined && !(yield* isStagedEntry(port, staged, move, current))) {
      return `the entry staged for ${JSON.stringify(move.path)} has changed`
    }
    const above = FsPath.parent(move.path)
    if (current !== undefined && (yield* statOf(port, above))?.kind !== "directory") {
      return `the directory ${JSON.stringify(above)} no longer exists; restore it to complete the change`
    }
  }
  return undefined
})

/**
 * Completes the part of a transaction that is in this port's root.
 *
 * Returns `undefined` on success. If the part cannot be completed, changes nothing and returns the reason.
 */
const completeTransaction = Effect.fnUntraced(
  function* (self: UnfinishedTransaction): Effect.fn.Return<string | undefined, Fault> {
    const { part, port } = self
    const refused = yield* findRefusal(self)
    if (refused !== undefined) return refused
    yield* openDirectories(port, {
      modes: yield* Effect.filter(part.modes, ({ path, was }) => Effect.map(statOf(port, path), (stat) => stat?.mode === was))
    })
    for (const step of part.steps) {
      yield* Effect.mapError(finishStep(self, step), (failed) => (failed._tag === "CrossDeviceRename" ? failed.fault : failed))
    }
    for (let i = part.modes.length - 1; i >= 0; i--) yield* finishMode(port, part.modes[i]!)
    return undefined
  },
  Effect.provideService(TakingBack, true)
)

const removeProbe = Effect.fnUntraced(function* (port: Backend, token: string, at: FsPath.FsPath) {
  for (let here = at; ; here = FsPath.parent(here)) {
    yield* Effect.catchIf(port.remove(FsPath.join(here, probeName(token))), isGone, () => Effect.void)
    if (here === FsPath.root) return
  }
})

const restoreMode = (port: Backend, { opens, path, was }: ModeChange): Effect.Effect<void, Fault> =>
  opens
    ? Effect.flatMap(statOf(port, path), (current) =>
        current?.kind === "directory" && current.mode === withOwnerBits(was) ? setMode(port, path, was) : Effect.void
      )
    : Effect.void

/**
 * Removes the staged entries and the probe directories of a transaction in this port's root. `isUnchanged` means that the
 * transaction published no entry.
 */
const removeStaged = (port: Backend, part: RecordPart, token: string, isUnchanged: boolean): Effect.Effect<void, Fault> =>
  Effect.provideService(
    Effect.gen(function* () {
      yield* Effect.forEach(part.probes, (at) => removeProbe(port, token, at), { discard: true })
      yield* Staging.remove(port, regionsOf(part), token)
      if (isUnchanged) yield* Effect.forEach(part.modes, (change) => restoreMode(port, change), { discard: true })
    }),
    TakingBack,
    true
  )

interface OpenedRoot {
  readonly root: Transactions.Root
  readonly port: Backend
  readonly open: (path: string) => Effect.Effect<Backend, Fault, Scope.Scope>
  readonly permits: (path: FsPath.FsPath) => boolean
  readonly report: Recovery["report"]
  readonly reported: Set<string>
}

/** The longest wait, in milliseconds, for a process that is publishing entries. */
const swapTimeoutMillis = 2_000

const isSwapping = ({ state }: Transactions.Entry): boolean => state === "forward" || state === "back"

const stillSwapping = ({ header }: Transactions.Entry, root: Transactions.Root): Fault =>
  unavailable(`process ${header.owner} is still changing files in ${JSON.stringify(root.path)}; try again`)

const toPath = (from: string, to: string): FsPath.FsPath => {
  const path = relative(from, to)
  return FsPath.fromSegments(path === "" ? [] : path.split(sep))
}

interface RelatedRoot {
  readonly index: number
  readonly relation: "same" | "inside" | "above"
}

/** Returns the roots of a record that share files with the opened root. Omits a root that is no longer at its path. */
const relatedRootsOf = (roots: ReadonlyArray<Transactions.Root>, opened: Transactions.Root): ReadonlyArray<RelatedRoot> =>
  roots.flatMap((root, index): ReadonlyArray<RelatedRoot> => {
    if (Transactions.isSame(root, opened)) return [{ index, relation: "same" }]
    const isBelow = isInside(opened.path, root.path)
    if (root.path === opened.path || !(isBelow || isInside(root.path, opened.path))) return []
    const there = Transactions.rootAt(root.path)
    return there !== undefined && Transactions.isSame(there, root) ? [{ index, relation: isBelow ? "inside" : "above" }] : []
  })

const pathsOf = ({ modes, steps }: RecordPart): ReadonlyArray<FsPath.FsPath> => [...steps, ...modes].map(({ path }) => path)

const touchesPath = (part: RecordPart, at: FsPath.FsPath): boolean =>
  [...pathsOf(part), ...part.probes, ...part.regions.flatMap((region) => (region === undefined ? [] : [region.path]))].some(
    (path) => FsPath.isWithin(at, path) || FsPath.isWithin(path, at)
  )

const outcomeFields = (
  entry: Transactions.Entry,
  index: number,
  part: RecordPart | undefined
): Omit<TransactionOutcome, "outcome"> => {
  const paths = part === undefined ? [] : pathsOf(part)
  return { root: entry.header.roots[index]!.path, owner: entry.header.owner, paths: paths.slice(0, 3), count: paths.length }
}

const notPermitted = "this filesystem does not permit the changes of the transaction"

const withCleanupAdvice = (detail: string, { file }: Transactions.Entry): string =>
  `${detail}; to give up the change, save the staged files that you need, and remove the record ${JSON.stringify(file)}`

const settlePart = Effect.fnUntraced(function* (
  entry: Transactions.Entry,
  port: Backend,
  part: RecordPart
): Effect.fn.Return<Pick<TransactionOutcome, "outcome" | "detail">, Fault> {
  const { header, state } = entry
  const hasBegun = isSwapping(entry)
  if (hasBegun) {
    const detail = yield* completeTransaction({ port, part, token: header.token, isRollingBack: state === "back" })
    if (detail !== undefined) return { outcome: "left", detail: withCleanupAdvice(detail, entry) }
    // Mark the record as done, because this process may be killed too. Do not mark a record of several roots, because the
    // other roots may not be settled yet.
    if (header.roots.length === 1) yield* markDone(entry)
  }
  yield* removeStaged(port, part, header.token, state === "preparing")
  if (hasBegun) return { outcome: "finished" }
  return state === "done"
    ? { outcome: "cleared", detail: "which was killed after it had completed the change" }
    : { outcome: "cleared" }
})

const settleRelatedRoot = Effect.fnUntraced(function* (
  self: OpenedRoot,
  entry: Transactions.Entry,
  parts: ReadonlyArray<RecordPart>,
  { index, relation }: RelatedRoot
): Effect.fn.Return<TransactionOutcome | undefined, Fault, Scope.Scope> {
  const root = entry.header.roots[index]!
  const part = parts[index]!
  const base = relation === "above" ? toPath(root.path, self.root.path) : toPath(self.root.path, root.path)
  if (relation === "above" && !touchesPath(part, base)) return undefined
  const common = outcomeFields(entry, index, part)
  const toOpenedPath = (path: FsPath.FsPath): FsPath.FsPath | undefined =>
    relation === "same"
      ? path
      : relation === "inside"
        ? FsPath.below(base, path)
        : FsPath.isWithin(base, path)
          ? FsPath.relative(base, path)
          : undefined
  const mayChange = (path: FsPath.FsPath): boolean => {
    const seen = toOpenedPath(path)
    return seen === undefined || self.permits(seen)
  }
  if (!isPermitted(self.port) || !pathsOf(part).every(mayChange)) return { ...common, outcome: "left", detail: notPermitted }
  const port =
    relation === "same"
      ? self.port
      : relation === "above"
        ? yield* self.open(root.path)
        : mapPath(
            self.port,
            (path) => FsPath.below(base, path),
            (path) => FsPath.relative(base, path)
          )
  return { ...common, ...(yield* settlePart(entry, port, part)) }
})

const unreadable = "the record of the transaction is invalid; the staged files were not removed"

/**
 * Settles the transaction of one record under the lock of its roots. Reads the record again, because another process may have
 * settled the transaction in the meantime.
 */
const settleEntry = Effect.fnUntraced(function* (self: OpenedRoot, id: string): Effect.fn.Return<void, Fault, Scope.Scope> {
  for (let left = 0; ;) {
    const entry = latestEntries((yield* Transactions.list()).entries).find((each) => each.id === id)
    if (entry === undefined || !isOfDeadProcess(entry)) return
    const relatedRoot = relatedRootsOf(entry.header.roots, self.root)[left]
    if (relatedRoot === undefined) return
    const body = yield* Transactions.bodyOf(entry)
    const parts = body === undefined ? undefined : decode(body, entry.header.roots.length)
    if (parts === undefined || !Transactions.isToken(entry.header.token)) {
      Transactions.markBroken(entry.file)
      return yield* report(self, entry, {
        ...outcomeFields(entry, relatedRoot.index, undefined),
        outcome: "left",
        detail: unreadable
      })
    }
    const settled = yield* settleRelatedRoot(self, entry, parts, relatedRoot)
    if (settled !== undefined) yield* report(self, entry, settled)
    if (settled === undefined || settled.outcome === "left") left++
    else {
      yield* removePart(entry, parts, relatedRoot.index)
      Transactions.unfinishedIds.delete(id)
    }
  }
})

const report = (self: OpenedRoot, { id, state }: Transactions.Entry, settled: TransactionOutcome): Effect.Effect<void> => {
  const key = JSON.stringify([id, state, settled.outcome, settled.detail])
  if (self.reported.has(key)) return Effect.void
  self.reported.add(key)
  return self.report(settled)
}

const isOfDeadProcess = (entry: Transactions.Entry): boolean => Transactions.isAlive(entry) === false

/** Returns one record for each id, without the records in the state `turn`. Any other state is later than `preparing`. */
const latestEntries = (entries: ReadonlyArray<Transactions.Entry>): ReadonlyArray<Transactions.Entry> => {
  const later = new Set(entries.flatMap(({ id, state }) => (state === "preparing" || state === "turn" ? [] : [id])))
  return entries.filter(({ id, state }) => state !== "turn" && (state !== "preparing" || !later.has(id)))
}

const listRelated = ({ root }: OpenedRoot): Effect.Effect<ReadonlyArray<Transactions.Entry>, Fault> =>
  Effect.map(Transactions.list(), ({ entries }) =>
    latestEntries(entries).filter(({ header }) => header.roots.some((one) => Transactions.isRelated(one, root)))
  )

const waitForSwaps = (self: OpenedRoot): Effect.Effect<void, Fault> => {
  const attempt = (waited: number): Effect.Effect<void, Fault> =>
    Effect.flatMap(listRelated(self), (entries) => {
      const swap = entries.find((entry) => isSwapping(entry) && Transactions.isAlive(entry) === true)
      if (swap === undefined) return Effect.void
      if (waited >= swapTimeoutMillis) return Effect.fail(stillSwapping(swap, self.root))
      return Effect.andThen(pause(10), attempt(waited + 10))
    })
  return attempt(0)
}

const settleOne = (self: OpenedRoot, entry: Transactions.Entry): Effect.Effect<void> =>
  Effect.scoped(Effect.suspend(() => withRootLocks([...entry.header.roots, self.root], settleEntry(self, entry.id)))).pipe(
    Effect.catch((fault) => {
      const detail =
        fault._tag === "AccessDenied" && fault["why"] === "busy"
          ? "another process is changing the directory"
          : faultText(fault)
      return report(self, entry, { ...outcomeFields(entry, 0, undefined), outcome: "left", detail })
    })
  )

const faultText = (fault: Fault): string => {
  const { detail, path } = fault
  return `${fault._tag}${typeof path === "string" ? ` ${JSON.stringify(path)}` : ""}${typeof detail === "string" ? `: ${detail}` : ""}`
}

/**
 * Settles all transactions that concern a root.
 *
 * Fails with Unavailable if a live process is publishing entries in the root and does not finish within two seconds.
 * Fails with the fault of the disk if the records cannot be listed. A failure to settle a transaction is reported.
 */
export const settle = Effect.fnUntraced(function* (self: OpenedRoot): Effect.fn.Return<void, Fault> {
  yield* waitForSwaps(self)
  for (const entry of yield* listRelated(self)) {
    if (isOfDeadProcess(entry)) yield* settleOne(self, entry)
    else if (Transactions.isAlive(entry) === undefined) {
      yield* report(self, entry, { ...outcomeFields(entry, 0, undefined), outcome: "left" })
    }
  }
})
