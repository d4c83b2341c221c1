/**
 * Finds the directories that did not change since an earlier scan, so that a scan need not list them again.
 *
 * The time of a directory changes when a name is added, removed or renamed in it. So a directory with the same stamp still
 * has the same names, and threads compare only the stamps of these names. A stamp counts only if it is older than the
 * earlier scan.
 *
 * A stat by an absolute path takes half the time of a stat through a descriptor. Another process may redirect the path, but
 * then the path leads to an entry with another disk, inode or time. A directory has only one name, and moving or
 * hard-linking an entry changes its time. Absolute paths are used only for stats, never to read or list.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { root } from "../model/FsPath.ts"
import type { DirectoryHistory } from "../port/history.ts"
import { Fs } from "../runtime/node.ts"
import { settledAt, type Stamp, type StampedDirectory, type StampedNode, writeStamp } from "./stamps.ts"
import type { Threads } from "./threads/pool.ts"
import { type CompareOrder, directoryStates, stampLength } from "./threads/orders.ts"
import { isPlainSegment } from "./capture.ts"
import type { DirectoryNode, Node } from "./tree.ts"

export interface Counts {
  readonly files: number
  readonly bytes: number
  readonly directories: number
}

export interface Unchanged {
  /** Tests whether the stamps of the directory and of all its entries, including subdirectories, are unchanged. */
  readonly isListed: (directory: DirectoryNode) => boolean
  /** Counts the entries below a directory if none of them changed; otherwise returns `undefined`. */
  readonly whole: (directory: DirectoryNode) => Counts | undefined
}

/**
 * The types of filesystems on which every change of a name changes the time of its directory: ext, XFS, Btrfs, F2FS, ZFS, tmpfs
 * and overlays.
 */
const reliableDisks = new Set([0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994, 0x794c7630])

const hasReliableTimes = (base: string): boolean => {
  try {
    return reliableDisks.has(Fs.statfsSync(base).type)
  } catch {
    return false
  }
}

/** The data of a scanned directory that a comparison needs. A scanned tree never changes, so a summary is computed once. */
interface Summary {
  /** True if the directory and its files and symlinks have stamps, and no name of them has a control character. */
  canCompare: boolean
  settledAt: number
  readonly directories: Array<readonly [segment: string, directory: StampedDirectory]>
  files: number
  bytes: number
}

const summaries = new WeakMap<DirectoryNode, Summary>()

const emptySummary = ({ stamp }: StampedDirectory): Summary => ({
  canCompare: stamp !== undefined,
  settledAt: stamp === undefined ? 0 : settledAt(stamp),
  directories: [],
  files: 0,
  bytes: 0
})

const addTo = (summary: Summary, segment: string, node: Node): void => {
  if (node.kind === "directory") {
    summary.directories.push([segment, node])
    return
  }
  const { stamp } = node as StampedNode
  summary.files++
  summary.bytes += node.kind === "file" ? node.sizeBytes : (stamp?.sizeBytes ?? 0)
  if (stamp === undefined || !isPlainSegment(segment)) summary.canCompare = false
  else summary.settledAt = Math.max(summary.settledAt, settledAt(stamp))
}

/** The number of names in one order to a thread, which compares the names in a few milliseconds. */
const namesPerOrder = 1024

/** The minimum number of files for a comparison in threads. For fewer files, a walk is as fast. */
const minNames = 1000

/** The number of names and directories between two yields to other fibers. */
const namesPerYield = 5000

interface Visited {
  readonly directory: DirectoryNode
  readonly path: string
  readonly summary: Summary
}

const visit = Effect.fnUntraced(function* (tree: DirectoryNode) {
  const visited: Array<Visited> = []
  const pending: Array<Pick<Visited, "directory" | "path">> = [{ directory: tree, path: "" }]
  let count = 0
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { directory, path } = next
    let summary = summaries.get(directory)
    if (summary === undefined) {
      summary = emptySummary(directory)
      for (const [segment, node] of directory.entries) {
        addTo(summary, segment, node)
        if (++count % namesPerYield === 0) yield* Effect.yieldNow
      }
      summaries.set(directory, summary)
    }
    visited.push({ directory, path, summary })
    for (const [segment, directory] of summary.directories) {
      if (isPlainSegment(segment)) pending.push({ directory, path: path === "" ? segment : `${path}/${segment}` })
      if (++count % namesPerYield === 0) yield* Effect.yieldNow
    }
  }
  return visited
})

interface Comparison {
  readonly order: CompareOrder
  /** The directories that the order compares. A directory with many names is in several orders. */
  readonly directories: ReadonlyArray<DirectoryNode>
}

/** Yields the orders one by one, so that only sent orders are in memory. */
const comparisonsOf = function* (
  visited: ReadonlyArray<Visited>,
  began: number,
  target: Pick<CompareOrder, "base" | "device">
): Generator<Comparison> {
  let texts: Array<string> = []
  let directories: Array<DirectoryNode> = []
  let stamps: Array<Stamp> = []
  const take = (): Comparison => {
    const all = new Float64Array(stampLength * stamps.length)
    for (const [index, stamp] of stamps.entries()) writeStamp(all, stampLength * index, stamp)
    const order: CompareOrder = { _tag: "Compare", ...target, directories: texts, stamps: all }
    const taken = { order, directories }
    texts = []
    directories = []
    stamps = []
    return taken
  }
  for (const { directory, path, summary } of visited) {
    const { stamp } = directory as StampedDirectory
    if (path === "" || stamp === undefined || !summary.canCompare || summary.settledAt >= began) continue
    let names = [path]
    const add = (): void => {
      texts.push(names.join("\n"))
      directories.push(directory)
      names = [path]
    }
    stamps.push(stamp)
    for (const [segment, node] of directory.entries) {
      if (node.kind === "directory") continue
      if (stamps.length >= namesPerOrder && names.length > 1) {
        add()
        yield take()
        stamps.push(stamp)
      }
      names.push(segment)
      stamps.push((node as StampedNode).stamp!)
    }
    add()
    if (stamps.length >= namesPerOrder) yield take()
  }
  if (stamps.length > 0) yield take()
}

const judge = (visited: ReadonlyArray<Visited>, states: ReadonlyMap<DirectoryNode, number>): Unchanged => {
  const { otherNames, same } = directoryStates
  const isSame = (directory: DirectoryNode): boolean => {
    const state = states.get(directory)
    return state === same || state === otherNames
  }
  const listed = new Set<DirectoryNode>()
  const wholes = new Map<DirectoryNode, Counts>()
  // Start with the last directory, because `visited` has each directory before its subdirectories.
  for (let at = visited.length - 1; at >= 0; at--) {
    const { directory, summary } = visited[at]!
    if (states.get(directory) !== same) continue
    const { bytes, directories, files } = summary
    if (!directories.every(([, below]) => isSame(below))) continue
    listed.add(directory)
    let whole: Counts | undefined = { files, bytes, directories: directories.length }
    for (const [, below] of directories) {
      const more = wholes.get(below)
      whole = whole &&
        more && {
          files: whole.files + more.files,
          bytes: whole.bytes + more.bytes,
          directories: whole.directories + more.directories
        }
    }
    if (whole !== undefined) wholes.set(directory, whole)
  }
  return { isListed: (directory) => listed.has(directory), whole: (directory) => wholes.get(directory) }
}

/**
 * Compares the tree of an earlier scan with the disk, in threads.
 *
 * Returns `undefined` for fewer than `minNames` files, because a walk is as fast. Also returns `undefined` on disks whose
 * directory times do not show every change.
 */
export const findUnchanged = Effect.fnUntraced(function* (
  { lend, root: base }: DirectoryHistory,
  threads: Threads,
  { began, files, tree }: { readonly began: number; readonly files: number; readonly tree: DirectoryNode }
): Effect.fn.Return<Unchanged | undefined, never, Scope.Scope> {
  if (lend === undefined || files < minNames) return undefined
  const lent = yield* Effect.option(lend(root))
  if (lent._tag === "None" || !hasReliableTimes(lent.value.base)) return undefined
  const { device } = lent.value
  const visited = yield* visit(tree)
  const states = new Map<DirectoryNode, number>()
  const comparisons = comparisonsOf(visited, began, { base, device })
  const send = Effect.gen(function* () {
    for (let next = comparisons.next(); next.done !== true; next = comparisons.next()) {
      const { directories, order } = next.value
      const report = yield* threads.run(order)
      for (const [index, directory] of directories.entries()) {
        const state = report?._tag === "Compared" ? report.states[index]! : directoryStates.other
        states.set(directory, Math.min(state, states.get(directory) ?? state))
      }
      yield* Effect.yieldNow
    }
  })
  yield* Effect.all(
    Array.from({ length: threads.concurrency }, () => send),
    { concurrency: "unbounded", discard: true }
  )
  return judge(visited, states)
}, Effect.scoped)
