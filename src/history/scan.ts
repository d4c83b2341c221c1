/**
 * Scans the whole current tree.
 *
 * A file is not read again if its stamp is unchanged and older than the start of the previous scan. After the other files of a
 * directory are read, their stamps are compared again. A file that changed in the meantime is read again. So the content of
 * each file is from one moment, if the backend has stamps.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { chunks, range } from "../engine/read.ts"
import { type Fault, located } from "../model/FsError.ts"
import { type FsPath, join, root } from "../model/FsPath.ts"
import { type Backend, keyOf } from "../port/Backend.ts"
import { withReadAhead } from "../port/readAhead.ts"
import { performing } from "../port/Request.ts"
import type { DirectoryHistory, StampedChild } from "../port/history.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import { exploreTree, type Step } from "./exploreTree.ts"
import { capture, type Captured, isPlainSegment, type Listed, type Source } from "./capture.ts"
import { isSameStamp, listedStamp, settledAt, type Stamp, type StampedDirectory, type StampedNode, stampOf } from "./stamps.ts"
import { findUnchanged, type Unchanged } from "./unchanged.ts"
import type { Threads } from "./threads/pool.ts"
import { blobHasher, blobId, type DirectoryNode, type Node } from "./tree.ts"

export interface Scan {
  readonly tree: DirectoryNode
  /** The time when the scan started, in milliseconds since 1970. */
  readonly began: number
  readonly files: number
  readonly bytes: number
  readonly directories: number
  /** The number of FIFOs, sockets and devices, which a tree does not contain. */
  readonly others: number
}

export interface ContentSink<E> {
  readonly file: (bytes: Uint8Array) => string
  /** Receives a file that a thread has encoded as an object of a git pack. Without this function, threads only hash. */
  readonly encoded?: ((captured: Captured) => void) | undefined
  /** Stores the content of a stream and returns its id. Returns `undefined` if the stream does not have `size` bytes. */
  readonly large: (size: number, bytes: Stream.Stream<Uint8Array, Fault>) => Effect.Effect<string | undefined, Fault | E>
  /** Returns the id of a directory whose files and subdirectories have ids. Without this function, directories have no ids. */
  readonly directory?: ((self: DirectoryNode) => string) | undefined
}

export interface Census {
  readonly files: number
  readonly bytes: number
  readonly directories: number
  readonly others: number
  readonly bytesToRead: number
}

export interface ScanOptions<E> {
  readonly previous?: Scan | undefined
  readonly sink?: ContentSink<E> | undefined
  /** The threads that read files, if the history of the port has `lend`. */
  readonly threads?: Threads | undefined
  /** Tests whether the sink still has the content with an id of the previous scan. @default always true */
  readonly hasContent?: ((id: string) => boolean) | undefined
  readonly excludes?: ((path: FsPath) => boolean) | undefined
  /**
   * The function that receives the counts during the walk, and once more before the first file is read. `isWhole` is true for
   * the last call.
   */
  readonly onCensus?: ((census: Census, isWhole: boolean) => Effect.Effect<void, E>) | undefined
  readonly onProgress?: ((done: Pick<Census, "files" | "bytes">, of: Census) => Effect.Effect<void>) | undefined
}

export const maxWholeFileBytes = 1024 * 1024
const chunkBytes = 256 * 1024

/** The largest number of times that a file is read again because it changed. */
const maxRereads = 8

export const hashOnlySink: ContentSink<never> = {
  file: blobId,
  large: (size, bytes) =>
    Effect.suspend(() => {
      const hash = blobHasher(size)
      let seen = 0
      return Effect.map(
        Stream.runForEachArray(bytes, (arrays) =>
          Effect.sync(() => {
            for (const array of arrays) {
              hash.update(array)
              seen += array.length
            }
          })
        ),
        () => (seen === size ? hash.digest("hex") : undefined)
      )
    })
}

const isUnchangedSince = (known: Node | undefined, now: StampedChild, before: Scan | undefined): known is StampedNode => {
  if (known === undefined || known.kind === "directory" || known.kind !== now.kind || before === undefined) return false
  const { stamp } = known as StampedNode
  return stamp !== undefined && isSameStamp(stamp, now) && settledAt(stamp) < before.began
}

interface DirectoryDraft {
  readonly path: FsPath
  readonly mode: number | undefined
  readonly before: StampedDirectory | undefined
  /** The stamp of the directory in the listing of its parent. */
  readonly foundStamp: Stamp | undefined
  /**
   * The stamp of the directory when its entries were listed. Absent unless the listed directory has the stamp `foundStamp`.
   */
  stamp: Stamp | undefined
  /** The number of entries in the listing. If the tree contains fewer entries, the directory gets no stamp. */
  listedEntries: number
  /** True if the entries are copied from `before`, so that the directory need not be listed. */
  isKnown: boolean
  readonly entries: Map<string, Node>
  readonly directories: Array<readonly [segment: string, draft: DirectoryDraft]>
  unread: Array<ScannedChild>
  isGone: boolean
}

interface ScannedChild {
  readonly segment: string
  readonly kind: StampedChild["kind"]
  readonly sizeBytes: number
  readonly mode: number | undefined
  readonly stamp: StampedChild | undefined
}

const isGone = ({ _tag }: Fault): boolean => _tag === "NotFound" || _tag === "NotADirectory" || _tag === "NotAFile"

const isGoneError = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "_tag" in error && isGone(error as Fault)

const childOfStamp = (stamp: StampedChild): ScannedChild => ({
  segment: keyOf(stamp),
  kind: stamp.kind,
  sizeBytes: stamp.sizeBytes,
  mode: stamp.mode,
  stamp
})

/**
 * Lists a directory of a backend without stamps. If an entry is not found, its stat is repeated once, because another program
 * may be replacing the entry.
 */
const listWithoutStamps = Effect.fnUntraced(function* (
  port: Backend,
  path: FsPath
): Effect.fn.Return<ReadonlyArray<ScannedChild>, Fault> {
  const out: Array<ScannedChild> = []
  for (const child of yield* port.list(path)) {
    const segment = keyOf(child)
    // A file needs no stat here, because reading the file also returns its mode.
    if (child.kind === "file" && child.sizeBytes !== undefined) {
      out.push({ segment, kind: "file", sizeBytes: child.sizeBytes, mode: undefined, stamp: undefined })
      continue
    }
    const stat = (yield* port.stat(join(path, segment))) ?? (yield* port.stat(join(path, segment)))
    // A backend that cannot read symlinks may follow them, and then reports a broken symlink as missing.
    const isLink = port.links === undefined && child.kind === "symlink"
    if (stat === undefined && !isLink) continue
    const kind = isLink || stat === undefined ? "symlink" : stat.kind
    out.push({ segment, kind, sizeBytes: stat?.sizeBytes ?? 0, mode: stat?.mode, stamp: undefined })
  }
  return out
})

const listChildren = (port: Backend, path: FsPath): Effect.Effect<ReadonlyArray<ScannedChild>, Fault> => {
  const { history } = port
  return history?._tag === "Directory"
    ? Effect.map(history.listStamped(path), (stamps) => stamps.map(childOfStamp))
    : listWithoutStamps(port, path)
}

const draftOf = (
  path: FsPath,
  mode: number | undefined,
  before: Node | undefined,
  stamp: Stamp | undefined
): DirectoryDraft => ({
  path,
  mode: mode === undefined ? undefined : mode & 0o777,
  before: before?.kind === "directory" ? before : undefined,
  foundStamp: stamp && stampOf(stamp),
  stamp: undefined,
  listedEntries: 0,
  isKnown: false,
  entries: new Map(),
  directories: [],
  unread: [],
  isGone: false
})

/** The failure for a symlink that cannot be read. If the scan skipped the symlink, a restore would remove it. */
const unreadableLink: Fault = {
  _tag: "IoError",
  code: "ENOTSUP",
  detail: "the entry is a symlink, and this filesystem cannot read symlinks"
}

const linkAt = (port: Backend, path: FsPath): Effect.Effect<string | undefined, Fault> =>
  port.links === undefined
    ? Effect.fail(unreadableLink)
    : Effect.catch(port.links.read(path), (fault) =>
        isGone(fault) || fault._tag === "InvalidArgument" ? Effect.succeed(undefined) : Effect.fail(fault)
      )

interface WalkStep extends Step {
  readonly above: WalkStep | undefined
  readonly draft: DirectoryDraft
}

type EnterDirectory<E> = (draft: DirectoryDraft, children: ReadonlyArray<ScannedChild>) => Effect.Effect<void, Fault | E>

const maxListAttempts = 3

/**
 * Lists a directory, with up to `maxListAttempts` attempts if it is not found. Another program may be renaming or replacing
 * the directory. Returns `undefined` if the last attempt does not find it either.
 */
const relistMissing = (
  port: Backend,
  path: FsPath,
  left = maxListAttempts
): Effect.Effect<ReadonlyArray<ScannedChild> | undefined, Fault> =>
  Effect.catch(listChildren(port, path), (fault) => {
    if (!isGone(fault)) return Effect.fail(fault)
    return left === 1 ? Effect.succeed(undefined) : Effect.andThen(Effect.yieldNow, relistMissing(port, path, left - 1))
  })

const walkSequentially = Effect.fnUntraced(function* <E>(port: Backend, top: DirectoryDraft, enter: EnterDirectory<E>) {
  const pending = [top]
  for (let here = pending.pop(); here !== undefined; here = pending.pop()) {
    const children = yield* here === top ? listChildren(port, here.path) : relistMissing(port, here.path)
    if (children === undefined) here.isGone = true
    else yield* enter(here, children)
    for (const [, below] of here.directories) pending.push(below)
  }
})

/** Walks the tree with many concurrent reads. */
const walkWithReadAhead = Effect.fnUntraced(function* <E>(
  port: Backend,
  explore: NonNullable<DirectoryHistory["explore"]>,
  top: DirectoryDraft,
  enter: EnterDirectory<E>
) {
  const explorer = yield* explore<WalkStep>((step) => step.draft.path)
  let device: number | undefined
  /**
   * Adds the directories to list below a directory that need not be listed. Their reads use paths, because the upper
   * directory is not open.
   */
  const addUnknown = (known: DirectoryDraft, add: (step: WalkStep) => void): void => {
    const pending = [known]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      for (const [segment, below] of next.directories) {
        if (below.isKnown) pending.push(below)
        else add({ above: undefined, segment, draft: below, unread: 0 })
      }
    }
  }
  yield* exploreTree(
    explorer,
    { above: undefined, segment: "", draft: top, unread: 0 },
    Effect.fnUntraced(function* ({ children, self, visit }, add) {
      const { draft } = visit
      if ("_tag" in children && (!isGone(children) || draft === top)) return yield* Effect.fail(children)
      const found =
        "_tag" in children
          ? yield* relistMissing(port, draft.path)
          : (children as ReadonlyArray<StampedChild>).map(childOfStamp)
      if (found === undefined) {
        draft.isGone = true
        return
      }
      if (draft === top) device = self?.device
      draft.stamp = listedStamp(draft.foundStamp, self, device)
      yield* enter(draft, found)
      for (const [segment, below] of draft.directories) {
        if (below.isKnown) addUnknown(below, add)
        else add({ above: visit, segment, draft: below, unread: 0 })
      }
    })
  )
})

const isSameDirectory = ({ stamp }: StampedDirectory, now: StampedChild): boolean =>
  stamp !== undefined && isSameStamp(stamp, now)

const walkTree = Effect.fnUntraced(function* <E>(port: Backend, options: ScanOptions<E>, unchanged: Unchanged | undefined) {
  const { excludes, hasContent = () => true, onCensus, previous } = options
  const { history } = port
  const stat = yield* port.stat(root)
  const top = draftOf(root, stat?.mode, previous?.tree, undefined)
  let [files, bytes, directories, others, bytesToRead] = [0, 0, 0, 0, 0]

  const link = Effect.fnUntraced(function* (here: DirectoryDraft, { segment, stamp }: ScannedChild) {
    const path = join(here.path, segment)
    const target = yield* Effect.mapError(linkAt(port, path), (fault) => located(fault, path))
    if (target === undefined) return
    const link: StampedNode = { kind: "symlink", target, ...(stamp && { stamp: stampOf(stamp) }) }
    here.entries.set(segment, link)
  })
  /** Copies the entries of unchanged directories from the previous scan. Stops at each directory that may have changed. */
  const takeOver = (top: DirectoryDraft): void => {
    const pending = [top]
    for (let here = pending.pop(); here !== undefined; here = pending.pop()) {
      const { before, entries, path } = here
      if (before === undefined || unchanged?.isListed(before) !== true) continue
      here.isKnown = true
      here.stamp = here.foundStamp
      here.listedEntries = before.entries.size
      for (const [segment, node] of before.entries) {
        if (excludes?.(join(path, segment)) === true) continue
        if (node.kind === "directory") {
          if (takeWhole(here, segment, node)) continue
          directories++
          const below = draftOf(join(path, segment), node.mode, node, (node as StampedDirectory).stamp)
          here.directories.push([segment, below])
          pending.push(below)
        } else {
          entries.set(segment, node)
          files++
          bytes += node.kind === "file" ? node.sizeBytes : ((node as StampedNode).stamp?.sizeBytes ?? 0)
        }
      }
    }
  }
  /** Copies a directory and everything below it from the previous scan, if nothing changed or is excluded. */
  const takeWhole = (here: DirectoryDraft, segment: string, node: DirectoryNode): boolean => {
    const counts = excludes === undefined ? unchanged?.whole(node) : undefined
    if (counts === undefined) return false
    here.entries.set(segment, node)
    files += counts.files
    bytes += counts.bytes
    directories += counts.directories + 1
    return true
  }
  /** Records the children, and lists the files to read. Returns the symlinks whose targets must be read. */
  const take = (here: DirectoryDraft, children: ReadonlyArray<ScannedChild>): ReadonlyArray<ScannedChild> | undefined => {
    let links: Array<ScannedChild> | undefined
    here.listedEntries = children.length
    for (const child of children) {
      const { kind, segment, sizeBytes, stamp } = child
      if (TemporaryNames.isInProgress(segment) || excludes?.(join(here.path, segment)) === true) continue
      const before = here.before?.entries.get(segment)
      if (kind === "directory") {
        const isSame = before?.kind === "directory" && stamp !== undefined && isSameDirectory(before, stamp)
        if (isSame && takeWhole(here, segment, before)) continue
        directories++
        const below = draftOf(join(here.path, segment), child.mode, before, stamp)
        here.directories.push([segment, below])
        if (isSame) takeOver(below)
        continue
      }
      if (kind === "other") {
        others++
        continue
      }
      files++
      bytes += sizeBytes
      if (
        stamp !== undefined &&
        isUnchangedSince(before, stamp, previous) &&
        (before.kind === "symlink" || hasContent(before.id))
      ) {
        here.entries.set(segment, before)
      } else if (kind === "file") {
        here.unread.push(child)
        bytesToRead += sizeBytes
      } else (links ??= []).push(child)
    }
    return links
  }
  const census = (): Census => ({ files, bytes, directories, others, bytesToRead })
  const counted = (): Effect.Effect<void, E> => onCensus?.(census(), false) ?? Effect.void
  const enter: EnterDirectory<E> = (here, children) => {
    const links = take(here, children)
    if (links === undefined) return counted()
    return Effect.andThen(
      Effect.forEach(links, (child) => link(here, child), { discard: true }),
      Effect.suspend(counted)
    )
  }
  if (history?._tag === "Directory" && history.explore !== undefined) {
    yield* Effect.scoped(walkWithReadAhead(port, history.explore, top, enter))
  } else yield* walkSequentially(port, top, enter)
  return { top, census: census() }
})

interface Read {
  readonly id: string
  readonly sizeBytes: number
  readonly mode: number | undefined
}

const readFile = <E>(port: Backend, path: FsPath, sink: ContentSink<E>): Effect.Effect<Read | undefined, Fault | E> => {
  const opened = Effect.scoped(
    Effect.flatMap(port.open(path), (handle): Effect.Effect<Read | undefined, Fault | E> => {
      const { mode, sizeBytes } = handle.stat
      const read = (id: string | undefined): Read | undefined => (id === undefined ? undefined : { id, sizeBytes, mode })
      return sizeBytes > maxWholeFileBytes
        ? Effect.map(sink.large(sizeBytes, chunks(handle, 0, sizeBytes, chunkBytes)), read)
        : Effect.map(range(handle, 0, sizeBytes), (bytes) => (bytes.length === sizeBytes ? read(sink.file(bytes)) : undefined))
    })
  )
  const perform = performing(port, "Read")
  if (perform === undefined) return opened
  const performed = perform({ _tag: "Read", path, maxBytes: maxWholeFileBytes })
  return Effect.flatMap(performed, (whole): Effect.Effect<Read | undefined, Fault | E> => {
    if (Option.isNone(whole)) return opened
    const { bytes, stat } = whole.value
    return Effect.succeed({ id: sink.file(bytes), sizeBytes: bytes.length, mode: stat.mode })
  })
}

export const idOf = (
  port: Backend,
  path: FsPath
): Effect.Effect<{ readonly id: string; readonly sizeBytes: number } | undefined, Fault> =>
  Effect.map(readFile(port, path, hashOnlySink), (read) => read && { id: read.id, sizeBytes: read.sizeBytes })

/**
 * Reads a file twice through one descriptor. Two equal reads are valid even if the path now belongs to another file. Returns
 * `undefined` if the reads differ.
 */
const readTwice = <E>(port: Backend, path: FsPath, sink: ContentSink<E>): Effect.Effect<Read | undefined, Fault | E> =>
  Effect.scoped(
    Effect.flatMap(
      port.open(path),
      Effect.fnUntraced(function* (handle) {
        const { mode, sizeBytes } = handle.stat
        const bytes = chunks(handle, 0, sizeBytes, chunkBytes)
        const id = yield* sink.large(sizeBytes, bytes)
        const again = id === undefined ? undefined : yield* hashOnlySink.large(sizeBytes, bytes)
        return id === undefined || id !== again ? undefined : { id, sizeBytes, mode }
      })
    )
  )

const keepsChanging = (path: FsPath): Fault => ({
  _tag: "IoError",
  path,
  detail: "the file changes each time it is read; stop the program that writes to the file"
})

const readUnread = Effect.fnUntraced(function* <E>(
  port: Backend,
  draft: DirectoryDraft,
  sink: ContentSink<E>,
  done: (file: ScannedChild) => void
) {
  let unread: ReadonlyArray<ScannedChild> = draft.unread
  const hasStamps = port.history?._tag === "Directory"
  for (let left = maxRereads; unread.length > 0; left--) {
    const readings: Array<readonly [child: ScannedChild, read: Read]> = []
    const gone = new Set<string>()
    // In the last attempts, read each file twice. The stamp of a busy file may change although its content does not.
    const shouldReadTwice = left <= maxRereads / 2
    for (const child of unread) {
      const path = join(draft.path, child.segment)
      const reading = shouldReadTwice ? readTwice(port, path, sink) : readFile(port, path, sink)
      const read = yield* Effect.catch(Effect.retry(reading, { times: 1, while: isGoneError }), (fault) =>
        isGoneError(fault) ? Effect.sync(() => void gone.add(child.segment)) : Effect.fail(fault)
      )
      if (read !== undefined) readings.push([child, read])
    }
    const now = hasStamps
      ? new Map(
          (yield* Effect.catch(listChildren(port, draft.path), (fault) =>
            isGone(fault) ? Effect.succeed([]) : Effect.fail(fault)
          )).map((child) => [child.segment, child])
        )
      : undefined
    const again: Array<ScannedChild> = []
    const read = new Map(readings.map(([child, read]) => [child.segment, read]))
    for (const child of unread) {
      const { segment, stamp } = child
      const found = read.get(segment)
      // Without stamps, a removed file is detected only by its failed read.
      const then = now === undefined ? (gone.has(segment) ? undefined : child) : now.get(segment)
      if (then === undefined || then.kind !== "file") continue
      const isSteady =
        found !== undefined &&
        (stamp === undefined ||
          then.stamp === undefined ||
          (isSameStamp(stamp, then.stamp) && found.sizeBytes === stamp.sizeBytes))
      if (isSteady || (found !== undefined && shouldReadTwice)) {
        const file: StampedNode = {
          kind: "file",
          id: found.id,
          sizeBytes: found.sizeBytes,
          ...(found.mode === undefined ? undefined : { mode: found.mode & 0o777 }),
          ...(isSteady && then.stamp && { stamp: stampOf(then.stamp) })
        }
        draft.entries.set(segment, file)
        done(child)
      } else if (left === 0) {
        return yield* Effect.fail(keepsChanging(join(draft.path, segment)))
      } else again.push(then)
    }
    unread = again
  }
})

/** The minimum number of files for a read in threads. For fewer files, starting the threads takes too long. */
const minThreadedFiles = 256

interface ListedFile extends Listed {
  readonly child: ScannedChild
}

const isReadByThreads = ({ segment, sizeBytes, stamp }: ScannedChild): boolean =>
  stamp !== undefined && sizeBytes <= maxWholeFileBytes && isPlainSegment(segment)

/** Reads files in threads. Leaves a file in `unread` if no thread could read it, or if its stamp differs from the listing. */
const readInThreads = <E>(
  port: Backend,
  unread: ReadonlyArray<DirectoryDraft>,
  sink: ContentSink<E>,
  { hasContent = () => true, threads }: ScanOptions<E>,
  progress: { readonly add: (file: ScannedChild) => void; readonly report: Effect.Effect<void> }
): Effect.Effect<void> => {
  const { history } = port
  const lend = history?._tag === "Directory" ? history.lend : undefined
  const count = unread.reduce((sum, draft) => sum + draft.unread.length, 0)
  if (threads === undefined || lend === undefined || count < minThreadedFiles) return Effect.void
  const captured = new Set<ScannedChild>()
  const sources = unread.map((draft): Source<ListedFile> => {
    const { before, entries, path } = draft
    const files = draft.unread.filter(isReadByThreads).map((child): ListedFile => {
      const known = before?.entries.get(child.segment)
      const knownId = known?.kind === "file" && hasContent(known.id) ? known.id : undefined
      return { child, segment: child.segment, stamp: child.stamp!, knownId }
    })
    return {
      path,
      files,
      take: ({ child, segment, stamp }, found) => {
        sink.encoded?.(found)
        const { mode, sizeBytes } = stamp
        const file: StampedNode = { kind: "file", id: found.id, sizeBytes, mode, stamp: stampOf(stamp) }
        entries.set(segment, file)
        captured.add(child)
        progress.add(child)
      }
    }
  })
  return Effect.map(capture(sources, { lend, threads, isEncoding: sink.encoded !== undefined }, progress.report), () => {
    for (const draft of unread) draft.unread = draft.unread.filter((child) => !captured.has(child))
  })
}

/** Returns the stamp of a directory, or `undefined` if the tree lacks an entry of the directory. */
const wholeStampOf = ({ entries, listedEntries, stamp }: DirectoryDraft): Stamp | undefined =>
  entries.size === listedEntries ? stamp : undefined

const isUnchanged = (draft: DirectoryDraft, before: StampedDirectory): boolean => {
  if (before.mode !== draft.mode || before.entries.size !== draft.entries.size) return false
  const stamp = wholeStampOf(draft)
  if (before.stamp === undefined ? stamp !== undefined : stamp === undefined || !isSameStamp(before.stamp, stamp)) return false
  for (const [segment, node] of draft.entries) if (before.entries.get(segment) !== node) return false
  return true
}

const directoriesPerYield = 100

/** Builds the tree from the innermost directories to the root, because a directory needs its finished subdirectories. */
const buildTree = Effect.fnUntraced(function* <E>(top: DirectoryDraft, sink: ContentSink<E>, isSinkComplete: boolean) {
  const order: Array<DirectoryDraft> = [top]
  for (const draft of order) for (const [, below] of draft.directories) order.push(below)
  const builtDirectories = new Map<DirectoryDraft, DirectoryNode>()
  for (let i = order.length - 1; i >= 0; i--) {
    const draft = order[i]!
    for (const [segment, below] of draft.directories)
      if (!below.isGone) draft.entries.set(segment, builtDirectories.get(below)!)
    builtDirectories.set(draft, buildDirectory(draft, sink, isSinkComplete))
    if (i % directoriesPerYield === directoriesPerYield - 1) yield* Effect.yieldNow
  }
  return builtDirectories.get(top)!
})

/** Builds one directory. `isSinkComplete` is true if the sink still has the contents of every unchanged directory. */
const buildDirectory = <E>(draft: DirectoryDraft, sink: ContentSink<E>, isSinkComplete: boolean): DirectoryNode => {
  const { before, entries, mode } = draft
  const isKnown = sink.directory === undefined || (isSinkComplete && before?.id !== undefined)
  if (before !== undefined && isKnown && isUnchanged(draft, before)) return before
  const stamp = wholeStampOf(draft)
  const node: StampedDirectory = {
    kind: "directory",
    entries,
    ...(mode === undefined ? undefined : { mode }),
    ...(stamp && { stamp })
  }
  return sink.directory === undefined ? node : { ...node, id: sink.directory(node) }
}

const unreadDrafts = function* (top: DirectoryDraft): Generator<DirectoryDraft> {
  const pending = [top]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (next.unread.length > 0) yield next
    for (const [, below] of next.directories) pending.push(below)
  }
}

/** Scans the tree. The caller must block writes through this filesystem. Other programs may write during the scan. */
export const scan = Effect.fnUntraced(function* <E = never>(
  port: Backend,
  options: ScanOptions<E> = {}
): Effect.fn.Return<Scan, Fault | E> {
  const sink: ContentSink<E> = options.sink ?? hashOnlySink
  const began = yield* Clock.currentTimeMillis
  const { hasContent, previous, threads } = options
  const isComparable = port.history?._tag === "Directory" && previous !== undefined && threads !== undefined
  const unchanged = isComparable && hasContent === undefined ? yield* findUnchanged(port.history, threads, previous) : undefined
  const { census, top } = yield* walkTree(port, options, unchanged)
  if (options.onCensus !== undefined) yield* options.onCensus(census, true)
  const { onProgress } = options
  let [files, bytes] = [0, 0]
  const progress = {
    add: ({ sizeBytes }: ScannedChild): void => {
      files++
      bytes += sizeBytes
    },
    report: Effect.suspend(() => onProgress?.({ files, bytes }, census) ?? Effect.void)
  }
  yield* readInThreads(port, [...unreadDrafts(top)], sink, options, progress)
  const unread = [...unreadDrafts(top)]
  const reading = withReadAhead(
    port,
    unread.flatMap((draft) => draft.unread.map(({ segment }) => join(draft.path, segment)))
  )
  for (const draft of unread) yield* Effect.andThen(readUnread(reading, draft, sink, progress.add), progress.report)
  const tree = yield* buildTree(top, sink, options.hasContent === undefined)
  return { tree, began, files: census.files, bytes: census.bytes, directories: census.directories, others: census.others }
})
