/**
 * Computes the steps of a transaction from the old and the new tree.
 *
 * Each step publishes at most one entry and removes at most one entry. An entry may be a whole subtree. A directory that both
 * trees contain is never moved, but its mode may change.
 */
import * as Effect from "effect/Effect"
import { at as locate } from "../../engine/directories.ts"
import type { FileStat } from "../../model/Entry.ts"
import { accessDenied, ioError } from "../../model/Fault.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, type Child, keyOf } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { type DirectoryNode, isSameNode, type Node } from "../tree.ts"
import { isGone, removeDirectory, removeWhole } from "./entries.ts"

// Staged and replaced entries are in hidden directories, one at the root and one on each other disk in the tree. So a rename
// can publish an entry.

/** A part of the tree in which entries can be renamed. */
export interface Region {
  readonly path: FsPath.FsPath
  /** True if renames work only inside `path` itself. If so, staged entries are directly in `path`. */
  readonly isFlat: boolean
}

type SlotSide = "new" | "old"

/** Creates the name of a transaction's staging directories. The name counts as in use until `TemporaryNames.forget`. */
export const makeToken = (): string => TemporaryNames.make("exchange")

export const stagingDirectory = (region: Region, token: string): FsPath.FsPath => FsPath.join(region.path, token)

const sideDirectory = (region: Region, token: string, side: SlotSide): FsPath.FsPath =>
  FsPath.join(stagingDirectory(region, token), side)

const slotPath = (region: Region, token: string, side: SlotSide, slot: number): FsPath.FsPath =>
  region.isFlat
    ? FsPath.join(region.path, TemporaryNames.derivePartName(token, `${side}${slot}`))
    : FsPath.join(sideDirectory(region, token, side), String(slot))

export const slotOf = (
  regions: ReadonlyArray<Region | undefined>,
  token: string,
  { region, slot }: Pick<Move, "region" | "slot">,
  side: SlotSide
): FsPath.FsPath => slotPath(regions[region]!, token, side, slot)

const slotNamePattern = /-((?:new|old)[0-9]+)-[0-9a-f]{32}\.tmp$/

const isSlotName = (token: string, name: string): boolean => {
  const part = slotNamePattern.exec(name)?.[1]
  return part !== undefined && TemporaryNames.derivePartName(token, part) === name
}

export const probeName = (token: string): string => TemporaryNames.derivePartName(token, "probe")

/** The state of an entry at the start of the transaction. Recovery detects later changes by other programs with this state. */
interface EntryState {
  readonly kind: Node["kind"]
  readonly sizeBytes: number
  /** The modification time in milliseconds since 1970. Absent if the backend has no times. */
  readonly modified?: number
}

export interface Move {
  readonly path: FsPath.FsPath
  readonly region: number
  readonly slot: number
  /** The kind of the new entry. Absent if the step only removes an entry. */
  readonly next?: Node["kind"]
  was?: EntryState
  /**
   * True if the old entry stays until the new entry replaces it. The staging directory then contains a copy of the old entry.
   */
  keeps: boolean
  /** The mode of an old directory that is not writable. The directory must be made writable before it can be moved. */
  opens?: number
  /**
   * The mode of a new directory that is not writable. The mode is set after the move, because the move needs a writable
   * directory.
   */
  shuts?: number
  /** The digest of the staged entry, as computed by `stage.ts`. Only records contain digests. */
  digest?: string
  /** True if the digest includes permission bits. */
  hasBits?: boolean
}

export interface Step extends Move {
  readonly before: Node | undefined
  readonly after: Node | undefined
  /** True if an earlier step removes an entry with another spelling of this name. Occurs only if the tree ignores case. */
  readonly replacesOtherSpelling: boolean
}

export interface ModeChange {
  readonly path: FsPath.FsPath
  readonly kind: "file" | "directory"
  readonly was: number
  readonly becomes: number
  /** True if the directory must be made writable before its entries can change. */
  readonly opens: boolean
}

export interface Plan {
  readonly regions: ReadonlyArray<Region>
  readonly steps: ReadonlyArray<Step>
  /** The mode changes. A directory comes before the entries below it. */
  readonly modes: ReadonlyArray<ModeChange>
}

/** The permission bits that the owner needs to change the entries of a directory. */
const ownerWriteExecuteBits = 0o300
/** The permission bit that the owner needs to move a directory to another parent. */
const ownerWriteBit = 0o200

export const isUnwritable = (mode: number | undefined): mode is number =>
  mode !== undefined && (mode & ownerWriteExecuteBits) !== ownerWriteExecuteBits
const isUnmovable = (mode: number | undefined): mode is number => mode !== undefined && (mode & ownerWriteBit) !== ownerWriteBit
export const withOwnerBits = (mode: number): number => mode | 0o700

const permissionBits = 0o777

export const modeOf = (node: Node | undefined): number | undefined =>
  node === undefined || node.kind === "symlink" || node.mode === undefined ? undefined : node.mode & permissionBits

interface LazyRegion extends Region {
  index: number | undefined
}

interface Frame {
  readonly path: FsPath.FsPath
  readonly before: DirectoryNode
  readonly after: DirectoryNode
  readonly region: LazyRegion
}

const haveSameContent = (a: Node, b: Node): boolean =>
  a.kind === "file" && b.kind === "file" && a.id === b.id && a.sizeBytes === b.sizeBytes

const haveEqualEntries = (a: DirectoryNode, b: DirectoryNode): boolean => a === b || (a.id !== undefined && a.id === b.id)

/**
 * Computes the plan. `crossDevice` contains the directories on other disks than their parents. A value of the map is the
 * `isFlat` of the region.
 */
export const make = (
  port: Backend,
  before: DirectoryNode,
  after: DirectoryNode,
  crossDevice: ReadonlyMap<FsPath.FsPath, boolean>
): Plan | Fault => {
  const hasModes = port.attributes !== undefined
  const isPinned = port.rules?.pinned ?? (() => false)
  const regions: Array<Region> = [{ path: FsPath.root, isFlat: false }]
  const steps: Array<Step> = []
  const modes: Array<ModeChange> = []

  const regionAt = (path: FsPath.FsPath, above: LazyRegion): LazyRegion => {
    const isFlat = crossDevice.get(path)
    return isFlat !== undefined || isPinned(path) ? { path, isFlat: isFlat === true, index: undefined } : above
  }
  const indexOf = (region: LazyRegion): number =>
    (region.index ??= regions.push({ path: region.path, isFlat: region.isFlat }) - 1)

  const move = (
    frame: Frame,
    name: string,
    before: Node | undefined,
    after: Node | undefined,
    replacesOtherSpelling = false
  ): Fault | undefined => {
    const path = FsPath.join(frame.path, name)
    if (isPinned(path)) return located(accessDenied("root"), path)
    const shuts = after?.kind === "directory" && hasModes ? modeOf(after) : undefined
    steps.push({
      path,
      region: indexOf(frame.region),
      slot: steps.length,
      keeps: false,
      before,
      after,
      replacesOtherSpelling,
      ...(after && { next: after.kind }),
      ...(isUnmovable(shuts) && { shuts })
    })
    return undefined
  }

  const changeMode = (path: FsPath.FsPath, before: Node, after: Node, opens: boolean): void => {
    const was = modeOf(before)
    if (!hasModes || was === undefined || before.kind === "symlink") return
    const becomes = modeOf(after) ?? was
    const isOpened = opens && isUnwritable(was)
    if (becomes !== was || isOpened) modes.push({ path, kind: before.kind, was, becomes, opens: isOpened })
  }

  /** Compares two directories. Removals come first, because a new name may be another spelling of an old name. */
  const compare = (frame: Frame, pending: Array<Frame>): Fault | undefined => {
    const { after, before, path } = frame
    const spellings = port.info.caseSensitive ? undefined : new Set<string>()
    const kept: Array<readonly [name: string, before: Node, after: Node]> = []
    const first = steps.length
    const inPlace = modes.length
    for (const [name, last] of before.entries) {
      const next = after.entries.get(name)
      if (next !== undefined) {
        kept.push([name, last, next])
        continue
      }
      spellings?.add(FsPath.fold(name))
      const fault = move(frame, name, last, undefined)
      if (fault !== undefined) return fault
    }
    for (const [name, last, next] of kept) {
      const at = FsPath.join(path, name)
      if (last.kind === "directory" && next.kind === "directory") {
        pending.push({ path: at, before: last, after: next, region: regionAt(at, frame.region) })
      } else if (haveSameContent(last, next)) changeMode(at, last, next, false)
      else if (!isSameNode(last, next)) {
        const fault = move(frame, name, last, next)
        if (fault !== undefined) return fault
      }
    }
    for (const [name, next] of after.entries) {
      if (before.entries.has(name)) continue
      const fault = move(frame, name, undefined, next, spellings?.has(FsPath.fold(name)) === true)
      if (fault !== undefined) return fault
    }
    const fileModes = modes.splice(inPlace)
    changeMode(path, before, after, steps.length > first)
    modes.push(...fileModes)
    return undefined
  }

  const top: LazyRegion = { path: FsPath.root, isFlat: crossDevice.get(FsPath.root) === true, index: undefined }
  const pending: Array<Frame> = [{ path: FsPath.root, before, after, region: top.isFlat ? top : { ...top, index: 0 } }]
  for (let frame = pending.pop(); frame !== undefined; frame = pending.pop()) {
    if (haveEqualEntries(frame.before, frame.after)) changeMode(frame.path, frame.before, frame.after, false)
    else {
      const fault = compare(frame, pending)
      if (fault !== undefined) return fault
    }
  }
  return { regions, steps, modes }
}

// Before any change, every entry that a transaction will remove or replace is inspected. Each entry must have the kind that the
// tree records, and each file also the recorded size. A directory must contain no entry that is missing in the tree, because
// the entry would be lost.

const changed = ioError("the entry changed after it was read; try again", "ECHANGED")

const unknownEntry = (name: string): Fault =>
  ioError(
    `the directory contains ${JSON.stringify(name)}, which was created after the tree was read and would be lost; try again`,
    "ENOTEMPTY"
  )

const occupied = ioError("the entry was created after the tree was read and would be lost; try again", "EEXIST")

const entryStateOf = (stat: FileStat): EntryState | undefined => {
  const { kind, modifiedAt, sizeBytes } = stat
  return kind === "other" ? undefined : { kind, sizeBytes, ...(modifiedAt && { modified: modifiedAt.epochMilliseconds }) }
}

/** Compares kind, size and modification time of an entry with a recorded state. For a directory, compares only the kind. */
export const hasEntryState = (stat: FileStat, mark: EntryState): boolean =>
  stat.kind === mark.kind &&
  (mark.kind === "directory" ||
    (stat.sizeBytes === mark.sizeBytes &&
      (mark.modified === undefined || stat.modifiedAt?.epochMilliseconds === mark.modified)))

const matchesNode = (stat: FileStat, node: Node): boolean =>
  stat.kind === node.kind && (node.kind !== "file" || node.sizeBytes === stat.sizeBytes)

const findUnexpectedChild = (children: ReadonlyArray<Child>, known: DirectoryNode): Child | undefined =>
  children.find((child) => !TemporaryNames.isInProgress(child.name) && known.entries.get(keyOf(child))?.kind !== child.kind)

const inspectWhole = Effect.fnUntraced(function* (port: Backend, top: FsPath.FsPath, known: DirectoryNode) {
  const pending: Array<readonly [path: FsPath.FsPath, known: DirectoryNode]> = [[top, known]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [path, known] = next
    const children = yield* locate(path, port.list(path))
    const unexpectedChild = findUnexpectedChild(children, known)
    if (unexpectedChild !== undefined) return yield* Effect.fail(located(unknownEntry(unexpectedChild.name), path))
    for (const child of children) {
      const inside = known.entries.get(keyOf(child))
      if (inside?.kind === "directory") pending.push([FsPath.join(path, keyOf(child)), inside])
    }
  }
})

const inspectStep = Effect.fnUntraced(function* (port: Backend, step: Step) {
  const { before, path } = step
  const stat = yield* locate(path, port.stat(path))
  if (before === undefined && stat !== undefined && !step.replacesOtherSpelling) {
    return yield* Effect.fail(located(occupied, path))
  }
  if (before === undefined) return
  if (stat === undefined || !matchesNode(stat, before)) return yield* Effect.fail(located(changed, path))
  const mark = entryStateOf(stat)
  if (mark !== undefined) step.was = mark
  if (before.kind !== "directory") return
  if (port.attributes !== undefined && isUnmovable(stat.mode)) step.opens = stat.mode
  yield* inspectWhole(port, path, before)
})

/** Inspects the entries of all steps, and records their state in `was` and `opens`. */
export const inspect = (port: Backend, { steps }: Plan): Effect.Effect<void, Fault> =>
  Effect.forEach(steps, (step) => inspectStep(port, step), { discard: true })

// The staging directories are created first, are private to this user, and are removed at the end of every transaction.
//
// A staging directory stays only if an entry could not be restored, or if the removal failed.

const whileWritable = <A, E>(port: Backend, path: FsPath.FsPath, effect: Effect.Effect<A, E>): Effect.Effect<A, E | Fault> => {
  const { attributes } = port
  if (attributes === undefined) return effect
  return Effect.flatMap(locate(path, port.stat(path)), (stat): Effect.Effect<A, E | Fault> => {
    const mode = stat?.mode
    return isUnwritable(mode)
      ? Effect.acquireUseRelease(
          Effect.ignore(attributes.set(path, { mode: withOwnerBits(mode) })),
          () => effect,
          () => Effect.ignore(attributes.set(path, { mode }))
        )
      : effect
  })
}

const makeStagingDirectory = Effect.fnUntraced(function* (port: Backend, region: Region, token: string) {
  const staging = stagingDirectory(region, token)
  yield* whileWritable(port, region.path, port.makeDirectory(staging))
  if (port.attributes !== undefined) yield* port.attributes.set(staging, { mode: 0o700 })
  yield* port.makeDirectory(sideDirectory(region, token, "new"))
  yield* port.makeDirectory(sideDirectory(region, token, "old"))
})

export const makeStaging = (port: Backend, regions: ReadonlyArray<Region>, token: string): Effect.Effect<void, Fault> =>
  Effect.forEach(
    regions.filter(({ isFlat }) => !isFlat),
    (region) => locate(region.path, makeStagingDirectory(port, region, token)),
    { discard: true }
  )

const removeSlots = Effect.fnUntraced(function* (port: Backend, { path }: Region, token: string) {
  const children = yield* Effect.catchIf(port.list(path), isGone, () => Effect.succeed([]))
  for (const { name } of children) if (isSlotName(token, name)) yield* removeWhole(port, FsPath.join(path, name))
})

const removeStagingDirectory = Effect.fnUntraced(function* (port: Backend, region: Region, token: string) {
  const staging = stagingDirectory(region, token)
  if (region.isFlat) return yield* removeSlots(port, region, token)
  if ((yield* port.stat(staging)) === undefined) return
  yield* removeDirectory(port, sideDirectory(region, token, "new"))
  yield* removeDirectory(port, sideDirectory(region, token, "old"))
  yield* whileWritable(port, region.path, removeDirectory(port, staging))
})

export const remove = (port: Backend, regions: ReadonlyArray<Region>, token: string): Effect.Effect<void, Fault> =>
  Effect.provideService(
    Effect.forEach([...regions].reverse(), (region) => locate(region.path, removeStagingDirectory(port, region, token)), {
      discard: true
    }),
    TakingBack,
    true
  )
