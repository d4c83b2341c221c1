/**
 * Finds the directories that did not change since an earlier scan, so that a scan need not list them again.
 *
 * The time of a directory changes when a name is added, removed or renamed in it. So a directory with the same stamp
 * still has the same names, and threads compare only the stamps of these names. A stamp counts only if it is older than
 * the earlier scan.
 *
 * A stat by a whole path takes half the time of a stat through a descriptor. Another process may redirect such a path.
 * But the path then leads to no entry with the same disk, inode and times. A directory has only one name, and moving or
 * hard-linking an entry changes its time. These paths are only used for stats, never to read or list.
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
import type { DirectoryNode } from "./tree.ts"

export interface Counts {
  readonly files: number
  readonly bytes: number
  readonly directories: number
}

export interface Unchanged {
  /** Tests whether the stamp of the directory itself is unchanged. */
  readonly isSame: (directory: DirectoryNode) => boolean
  /** Tests whether the stamps of the directory, of its files and links, and of its subdirectories are unchanged. */
  readonly isListed: (directory: DirectoryNode) => boolean
  /** Counts the entries below a directory if none of them changed; otherwise returns `undefined`. */
  readonly whole: (directory: DirectoryNode) => Counts | undefined
}

/**
 * The types of filesystems on which every change of a name changes the time of its directory: ext, XFS, Btrfs, F2FS, ZFS, tmpfs and
 * overlays.
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
  readonly names: string
  /** The stamps of the directory, its files and its links. `undefined` if one has no stamp, or a name that is not plain. */
  readonly stamps: Float64Array | undefined
  readonly settledAt: number
  readonly directories: ReadonlyArray<readonly [segment: string, directory: StampedDirectory]>
  readonly counts: Counts
}

const summaries = new WeakMap<DirectoryNode, Summary>()

const summarize = (directory: StampedDirectory): Summary => {
  const names: Array<string> = []
  const stamps: Array<Stamp | undefined> = [directory.stamp]
  const directories: Array<readonly [string, StampedDirectory]> = []
  let bytes = 0
  for (const [segment, node] of directory.entries) {
    if (node.kind === "directory") {
      directories.push([segment, node])
      continue
    }
    const { stamp } = node as StampedNode
    names.push(segment)
    stamps.push(stamp)
    bytes += node.kind === "file" ? node.sizeBytes : (stamp?.sizeBytes ?? 0)
  }
  const known = stamps.filter((stamp) => stamp !== undefined)
  const canCompare = known.length === stamps.length && names.every(isPlainSegment)
  const written = canCompare ? new Float64Array(stampLength * stamps.length) : undefined
  if (written !== undefined) for (const [index, stamp] of known.entries()) writeStamp(written, stampLength * index, stamp)
  return {
    names: names.join("\n"),
    stamps: written,
    settledAt: known.reduce((latest, stamp) => Math.max(latest, settledAt(stamp)), 0),
    directories,
    counts: { files: names.length, bytes, directories: directories.length }
  }
}

const summaryOf = (directory: DirectoryNode): Summary => {
  const known = summaries.get(directory)
  if (known !== undefined) return known
  const made = summarize(directory)
  summaries.set(directory, made)
  return made
}

interface Comparison {
  readonly order: CompareOrder
  readonly directories: ReadonlyArray<DirectoryNode>
}

/** The number of names in one order. A thread compares them in a few milliseconds. */
const namesPerOrder = 1024

/** The minimum number of files for a comparison in threads. For fewer files, a walk is as fast. */
const minNames = 1000

const directoriesPerYield = 1000

interface Visited {
  readonly directory: DirectoryNode
  readonly path: string
}

const visit = Effect.fnUntraced(function* (tree: DirectoryNode) {
  const visited: Array<Visited> = []
  const pending: Array<Visited> = [{ directory: tree, path: "" }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (visited.push(next) % directoriesPerYield === 0) yield* Effect.yieldNow
    const { path } = next
    for (const [segment, directory] of summaryOf(next.directory).directories) {
      if (isPlainSegment(segment)) pending.push({ directory, path: path === "" ? segment : `${path}/${segment}` })
    }
  }
  return visited
})

const comparisonsOf = (
  visited: ReadonlyArray<Visited>,
  began: number,
  target: Pick<CompareOrder, "base" | "device">
): ReadonlyArray<Comparison> => {
  const comparisons: Array<Comparison> = []
  let texts: Array<string> = []
  let directories: Array<DirectoryNode> = []
  let stamps: Array<Float64Array> = []
  let length = 0
  const close = (): void => {
    const all = new Float64Array(length)
    let at = 0
    for (const some of stamps) {
      all.set(some, at)
      at += some.length
    }
    comparisons.push({ order: { _tag: "Compare", ...target, directories: texts, stamps: all }, directories })
    texts = []
    directories = []
    stamps = []
    length = 0
  }
  for (const { directory, path } of visited) {
    const summary = summaryOf(directory)
    if (path === "" || summary.stamps === undefined || summary.settledAt >= began) continue
    texts.push(summary.names === "" ? path : `${path}\n${summary.names}`)
    directories.push(directory)
    stamps.push(summary.stamps)
    length += summary.stamps.length
    if (length >= stampLength * namesPerOrder) close()
  }
  if (length > 0) close()
  return comparisons
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
    const { directory } = visited[at]!
    if (states.get(directory) !== same) continue
    const { counts, directories } = summaryOf(directory)
    if (!directories.every(([, below]) => isSame(below))) continue
    listed.add(directory)
    let whole: Counts | undefined = counts
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
  return { isSame, isListed: (directory) => listed.has(directory), whole: (directory) => wholes.get(directory) }
}

/**
 * Compares a tree with the disk.
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
  yield* Effect.forEach(
    comparisonsOf(visited, began, { base, device }),
    ({ directories, order }) =>
      Effect.map(threads.run(order), (report) => {
        if (report?._tag !== "Compared") return
        for (const [index, directory] of directories.entries()) states.set(directory, report.states[index]!)
      }),
    { concurrency: threads.concurrency, discard: true }
  )
  return judge(visited, states)
}, Effect.scoped)
