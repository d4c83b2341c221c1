/**
 * Computes the steps of a transaction from the two trees alone.
 *
 * Each step puts at most one entry in place and removes at most one, whole subtrees as one. A directory of both trees
 * is never moved, but its mode may change.
 */
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { type DirectoryNode, isSameNode, type Node } from "../tree.ts"
import type { Region } from "./places.ts"

/** The state of an entry at the start of the transaction, to detect later changes by other programs. */
export interface EntryState {
  readonly kind: Node["kind"]
  readonly sizeBytes: number
  /** Milliseconds since 1970; absent if the backend has no times. */
  readonly modified?: number
}

export interface Move {
  readonly path: FsPath.FsPath
  readonly region: number
  readonly slot: number
  /** The kind of the new entry; absent for none. */
  readonly next?: Node["kind"]
  /** The state of the old entry; absent for none. */
  was?: EntryState
  /** True if the old entry stays until the new one replaces it; the set-aside entry is then a copy. */
  keeps: boolean
  /** The mode of an old directory that must be made writable before it can be moved. */
  opens?: number
  /** The mode of a new directory that is set after the move, because the directory could not be moved with it. */
  shuts?: number
  /** The digest of the staged entry (see `digest.ts`); only in records. */
  digest?: string
  /** True if the digest includes permission bits. */
  hasBits?: boolean
}

export interface Step extends Move {
  readonly before: Node | undefined
  readonly after: Node | undefined
  /** True on a tree that ignores case, if an old name that is removed first is another spelling of this one. */
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
  /** The mode changes; a directory comes before its contents. */
  readonly modes: ReadonlyArray<ModeChange>
}

/** The bits that the owner needs to change the entries of a directory. */
const ownerWriteExecuteBits = 0o300
/** The bit that the owner needs to move a directory to another parent. */
const ownerWriteBit = 0o200

export const isUnwritable = (mode: number | undefined): mode is number =>
  mode !== undefined && (mode & ownerWriteExecuteBits) !== ownerWriteExecuteBits
export const isUnmovable = (mode: number | undefined): mode is number =>
  mode !== undefined && (mode & ownerWriteBit) !== ownerWriteBit
export const withOwnerBits = (mode: number): number => mode | 0o700

const permissionBits = 0o777

export const modeOf = (node: Node | undefined): number | undefined =>
  node === undefined || node.kind === "symlink" || node.mode === undefined ? undefined : node.mode & permissionBits

const rootDenied: Fault = { _tag: "AccessDenied", why: "root" }

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

/** Computes the plan. `crossings` holds directories on other disks than their parents, and tells which regions are flat. */
export const make = (
  port: Backend,
  before: DirectoryNode,
  after: DirectoryNode,
  crossings: ReadonlyMap<FsPath.FsPath, boolean>
): Plan | Fault => {
  const hasModes = port.attributes !== undefined
  const isPinned = port.rules?.pinned ?? (() => false)
  const regions: Array<Region> = [{ path: FsPath.root, isFlat: false }]
  const steps: Array<Step> = []
  const modes: Array<ModeChange> = []

  const regionAt = (path: FsPath.FsPath, above: LazyRegion): LazyRegion => {
    const isFlat = crossings.get(path)
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
    if (isPinned(path)) return located(rootDenied, path)
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

  /** Compares two directories. Removals come first, because a new name may be another spelling of an old one. */
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

  const top: LazyRegion = { path: FsPath.root, isFlat: crossings.get(FsPath.root) === true, index: undefined }
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

export const isFault = (plan: Plan | Fault): plan is Fault => "_tag" in plan
