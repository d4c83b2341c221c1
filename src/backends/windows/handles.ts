/**
 * Inspects and lists entries, and manages the files that are open for reading.
 *
 * Windows cannot replace an open file, or move a directory that contains an open file. So a change in this program
 * could wait for a reader that itself waits for the change.
 *
 * Instead, the content of the file is copied, to memory or, if it is large, to a hidden file in the root. Then the file is
 * closed. The reader continues with the copy.
 */
import { directoriesKeepChanging, fileClosed, notFoundBelowFile } from "../faults.ts"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FileStat, Kind } from "../../model/Entry.ts"
import { is as isFault, notAFile, notFound } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath, isWithin, parent, relative, root } from "../../model/FsPath.ts"
import { codeOf } from "../../model/realms.ts"
import type { Child, Handle, Whole } from "../../port/Backend.ts"
import { Fs } from "../../runtime/node.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { maxAttempts, retryChanged } from "../posix/place.ts"
import { allocate, copyBlocks, maxBytesPerCall, maxSyncBytes, statOf, truncateBytes } from "../posix/read.ts"
import { closeQuietly, transfersOf, unlinkQuietly, type WindowsDisk, type WindowsEntry, type WindowsStats } from "./disk.ts"
import { attempt, attemptOnce, awaitCall, retryTransient } from "./errors.ts"
import { childOf } from "./names.ts"
import { inspectPath, isSameFile, removeLeftover, type Walker, type WindowsDirectory } from "./walk.ts"

// Inspects, opens and lists entries of a Windows disk.
//
// A file is inspected before and after it is opened. A listing is repeated if its directory is moved or replaced meanwhile.

type Kinds = Pick<WindowsStats, "isFile" | "isDirectory" | "isSymbolicLink">

export const kindOf = (stats: Kinds): Kind =>
  stats.isSymbolicLink() ? "symlink" : stats.isDirectory() ? "directory" : stats.isFile() ? "file" : "other"

/**
 * Creates a stat without permission bits. Windows stores only one permission bit, and Node has no call for access
 * control lists.
 */
export const toStat = (path: FsPath, stats: WindowsStats): FileStat =>
  statOf(
    path,
    kindOf(stats),
    Number(stats.size),
    Number(stats.birthtimeMs),
    Number(stats.mtimeMs),
    undefined,
    stats.ino === 0n ? undefined : `${stats.dev}:${stats.ino}`
  )

export const stat = (walker: Walker, path: FsPath): FileStat | undefined | Fault => {
  const found = path === root ? walker.directory(root) : inspectPath(walker, path)
  if (!isFault(found)) return found.stats && toStat(path, found.stats)
  return notFoundBelowFile(found)._tag === "NotFound" ? undefined : found
}

const changed = new Set(["EISDIR", "ENOENT", "ELOOP"])

export const openFile = (walker: Walker, path: FsPath, flags: number): Opened | Fault => {
  if (path === root) return notAFile
  const { disk } = walker
  return retryChanged(() => {
    const spot = inspectPath(walker, path)
    if (isFault(spot)) return spot
    if (spot.stats === undefined) return notFound
    if (kindOf(spot.stats) !== "file") return notAFile
    let descriptor: number
    try {
      descriptor = disk.openSync(spot.at, flags)
    } catch (error) {
      if (changed.has(codeOf(error) ?? "")) return undefined
      throw error
    }
    let opened: Opened | undefined
    try {
      const stats = disk.fstatSync(descriptor, { bigint: true })
      if (stats.isFile() && walker.holds(descriptor, spot.place, spot.at)) opened = { descriptor, stats }
      return opened
    } finally {
      if (opened === undefined) closeQuietly(disk, descriptor)
    }
  })
}

const openToRead = (walker: Walker, path: FsPath): Opened | Fault => {
  const opened = openFile(walker, path, Fs.constants.O_RDONLY)
  return isFault(opened) ? notFoundBelowFile(opened) : opened
}

export const readSmall = (walker: Walker, path: FsPath, maxBytes: number): Effect.Effect<Whole | undefined, Fault> =>
  attempt(() => {
    const opened = openToRead(walker, path)
    if (isFault(opened)) return opened
    const { descriptor, stats } = opened
    try {
      if (stats.size > BigInt(Math.min(maxBytes, maxSyncBytes))) return undefined
      const bytes = allocate(Number(stats.size))
      const length = transfersOf(walker.disk).readSync(descriptor, bytes, 0)
      return { stat: { ...toStat(path, stats), sizeBytes: length }, bytes: truncateBytes(bytes, length) }
    } finally {
      closeQuietly(walker.disk, descriptor)
    }
  })

/**
 * Returns the kind of an entry. Inspects an entry that is listed as a link, because a listing also reports other
 * reparse points, such as files in a cloud, as links.
 */
const kindOfEntry = (walker: Walker, place: WindowsDirectory, entry: WindowsEntry): Kind => {
  if (!entry.isSymbolicLink()) return kindOf(entry)
  const stats = walker.look(place.at(entry.name))
  return stats === undefined ? "symlink" : kindOf(stats)
}

/**
 * Opens a directory. Returns NotADirectory if the entry is not a directory, and NotFound if a parent is not a directory.
 */
const openDirectory = (walker: Walker, path: FsPath): WindowsDirectory | Fault => {
  const place = walker.directory(path)
  if (!isFault(place) || place._tag !== "NotADirectory" || path === root) return place
  const above = walker.directory(parent(path))
  return isFault(above) ? notFound : place
}

export const listSync = (walker: Walker, place: WindowsDirectory): ReadonlyArray<Child> =>
  walker.disk
    .readdirSync(place.directory, { withFileTypes: true })
    .map((entry) => childOf(entry.name, kindOfEntry(walker, place, entry)))

const children = (walker: Walker, place: WindowsDirectory): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  Effect.flatMap(
    retryTransient(awaitCall<Array<WindowsEntry>>((end) => walker.disk.readdir(place.directory, { withFileTypes: true }, end))),
    (entries) => attempt(() => entries.map((entry) => childOf(entry.name, kindOfEntry(walker, place, entry))))
  )

const isGone = (fault: Fault): boolean => fault._tag === "NotFound" || fault._tag === "NotADirectory"

const withoutLeftovers = (walker: Walker, place: WindowsDirectory, found: ReadonlyArray<Child>): ReadonlyArray<Child> =>
  found.filter(({ name }) => !removeLeftover(walker, place.at(name), name))

export const list = (walker: Walker, path: FsPath, removesLeftovers: boolean): Effect.Effect<ReadonlyArray<Child>, Fault> => {
  const listing = (left: number): Effect.Effect<ReadonlyArray<Child>, Fault> =>
    Effect.flatMap(
      attempt(() => openDirectory(walker, path)),
      (place) =>
        Effect.matchEffect(children(walker, place), {
          onSuccess: (found) =>
            Effect.flatMap(
              attempt(() => place.isSame()),
              (isSame): Effect.Effect<ReadonlyArray<Child>, Fault> =>
                isSame ? Effect.succeed(removesLeftovers ? withoutLeftovers(walker, place, found) : found) : again(left)
            ),
          onFailure: (fault) => (isGone(fault) ? again(left) : Effect.fail(fault))
        })
    )
  const again = (left: number): Effect.Effect<ReadonlyArray<Child>, Fault> =>
    left === 0 ? Effect.fail(directoriesKeepChanging) : listing(left - 1)
  return listing(maxAttempts)
}

export interface Opened {
  readonly descriptor: number
  readonly stats: WindowsStats
}

/** The maximum total size of all copies in memory, in bytes. Further copies go to the disk. */
const maxMemoryBytes = 8 * 1024 * 1024
const blockBytes = 1024 * 1024

/** An open descriptor. The descriptor is closed when it is no longer needed and no read is in progress. */
interface DescriptorLease {
  readonly descriptor: number
  /** True for the descriptor of a hidden copy, which does not block changes. */
  readonly isCopy: boolean
  users: number
  isEnded: boolean
  readonly whenClosed: Array<() => void>
}

type Source = DescriptorLease | { readonly bytes: Uint8Array }

interface Reader {
  path: FsPath
  readonly stats: WindowsStats
  readonly size: number
  source: Source
  isClosed: boolean
}

export type BlockingReaders = { readonly file: WindowsStats } | { readonly directory: FsPath }

export interface Handles {
  readonly open: (path: FsPath) => Effect.Effect<Handle, Fault, Scope.Scope>
  readonly has: (blocking: BlockingReaders) => boolean
  readonly release: (blocking: BlockingReaders) => Effect.Effect<void, Fault>
  readonly updatePaths: (from: FsPath, to: FsPath) => void
}

const leaseOf = (descriptor: number, isCopy = false): DescriptorLease => ({
  descriptor,
  isCopy,
  users: 0,
  isEnded: false,
  whenClosed: []
})

const isLease = (source: Source): source is DescriptorLease => "descriptor" in source

const closeIfUnused = (disk: WindowsDisk, lease: DescriptorLease): void => {
  if (!lease.isEnded || lease.users > 0) return
  closeQuietly(disk, lease.descriptor)
  for (const notify of lease.whenClosed.splice(0)) notify()
}

const endLease = (disk: WindowsDisk, lease: DescriptorLease): void => {
  lease.isEnded = true
  closeIfUnused(disk, lease)
}

/**
 * Keeps a lease in use while a read runs.
 *
 * The lease counts as in use from the call of this function, because another fiber could close the descriptor before the
 * effect runs. So the caller must run the returned effect, and must not be interruptible before that.
 */
const whileInUse = <A>(disk: WindowsDisk, lease: DescriptorLease, use: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> => {
  lease.users++
  return Effect.ensuring(
    use,
    Effect.sync(() => {
      lease.users--
      closeIfUnused(disk, lease)
    })
  )
}

const readFrom = (disk: WindowsDisk, source: Source, bytes: Uint8Array, offset: number): Effect.Effect<number, Fault> => {
  if (isLease(source)) return whileInUse(disk, source, transfersOf(disk).read(source.descriptor, bytes, offset))
  bytes.set(source.bytes.subarray(offset, offset + bytes.length))
  return Effect.succeed(Math.max(0, Math.min(bytes.length, source.bytes.length - offset)))
}

const { O_CREAT, O_EXCL, O_RDWR } = Fs.constants

/**
 * Creates a hidden file in the root directory, because the root is never moved. The file is removed when it is closed.
 */
const openCopy = (walker: Walker): Effect.Effect<DescriptorLease, Fault> =>
  attempt(() => {
    const top = walker.directory(root)
    if (isFault(top)) return top
    const name = TemporaryNames.make()
    const at = top.at(name)
    let lease: DescriptorLease | undefined
    try {
      lease = leaseOf(walker.disk.openSync(at, O_RDWR | O_CREAT | O_EXCL), true)
      lease.whenClosed.push(() => {
        unlinkQuietly(walker.disk, at)
        TemporaryNames.forget(name)
      })
      return lease
    } finally {
      if (lease === undefined) TemporaryNames.forget(name)
    }
  })

type Restore = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

/**
 * Copies the content to a hidden file. The caller must run the effect uninterruptibly; `restore` makes the copying
 * itself interruptible.
 */
const copyToDisk = (
  walker: Walker,
  size: number,
  lease: DescriptorLease,
  restore: Restore
): Effect.Effect<DescriptorLease, Fault> =>
  Effect.flatMap(openCopy(walker), (copy) => {
    const { disk } = walker
    const { read, write } = transfersOf(disk)
    const progress = { written: 0, isPositioned: true }
    const copying = copyBlocks(
      size,
      blockBytes,
      (block, offset) => read(lease.descriptor, block, offset),
      (bytes) => write(copy.descriptor, bytes, progress)
    )
    return Effect.as(
      Effect.onError(restore(copying), () => Effect.sync(() => endLease(disk, copy))),
      copy
    )
  })

const whenClosed = (lease: DescriptorLease): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (lease.users === 0) resume(Effect.void)
    else lease.whenClosed.push(() => resume(Effect.void))
  })

export const make = (walker: Walker): Handles => {
  const { disk } = walker
  const readers = new Set<Reader>()
  let memoryBytes = 0

  const isBlocking = (reader: Reader, blocking: BlockingReaders): boolean =>
    isLease(reader.source) &&
    !reader.source.isCopy &&
    ("file" in blocking ? isSameFile(reader.stats, blocking.file) : isWithin(fold(blocking.directory), fold(reader.path)))

  const discardSource = (source: Source, size: number): void => {
    if (isLease(source)) endLease(disk, source)
    else memoryBytes -= size
  }

  const close = (reader: Reader): void => {
    reader.isClosed = true
    readers.delete(reader)
    discardSource(reader.source, reader.size)
  }

  const copyToMemory = (size: number, lease: DescriptorLease): Effect.Effect<Source, Fault> => {
    memoryBytes += size
    const bytes = allocate(size)
    return Effect.onError(
      Effect.map(transfersOf(disk).read(lease.descriptor, bytes, 0), (length) => ({ bytes: truncateBytes(bytes, length) })),
      () => Effect.sync(() => void (memoryBytes -= size))
    )
  }

  const releaseReader = (reader: Reader): Effect.Effect<void, Fault> =>
    Effect.uninterruptibleMask((restore) => {
      const { size, source: lease } = reader
      if (reader.isClosed || !isLease(lease)) return Effect.void
      const copying = size > maxMemoryBytes - memoryBytes ? copyToDisk(walker, size, lease, restore) : copyToMemory(size, lease)
      return Effect.flatMap(whileInUse<Source>(disk, lease, copying), (copy) => {
        // The reader was closed, or released for a different change, during the copying.
        if (reader.isClosed || reader.source !== lease) discardSource(copy, size)
        else {
          reader.source = copy
          endLease(disk, lease)
        }
        return whenClosed(lease)
      })
    })

  const handleOf = (reader: Reader, stat: FileStat): Handle => ({
    stat,
    read: (offset, length) =>
      Effect.uninterruptible(
        Effect.suspend(() => {
          if (reader.isClosed) return Effect.fail(fileClosed)
          // Bytes appended since the file was opened are not part of the handle's content.
          const bytes = allocate(Math.max(0, Math.min(length, maxBytesPerCall, reader.size - offset)))
          if (bytes.length === 0) return Effect.succeed(bytes)
          return Effect.map(readFrom(disk, reader.source, bytes, offset), (length) => truncateBytes(bytes, length))
        })
      )
  })

  return {
    open: (path) =>
      // Retry the whole acquisition, so that the wait for the file is interruptible.
      retryTransient(
        Effect.map(
          Effect.acquireRelease(
            Effect.map(
              attemptOnce(() => openToRead(walker, path)),
              ({ descriptor, stats }): Reader => {
                const reader = { path, stats, size: Number(stats.size), source: leaseOf(descriptor), isClosed: false }
                readers.add(reader)
                return reader
              }
            ),
            (reader) => Effect.sync(() => close(reader))
          ),
          (reader) => handleOf(reader, toStat(path, reader.stats))
        )
      ),
    has: (blocking) => {
      for (const reader of readers) if (isBlocking(reader, blocking)) return true
      return false
    },
    release: (blocking) =>
      Effect.suspend(() =>
        Effect.forEach(
          [...readers].filter((reader) => isBlocking(reader, blocking)),
          // Each reader is checked directly before it is released, because it may have been closed during an earlier
          // release.
          releaseReader,
          { discard: true }
        )
      ),
    updatePaths: (from, to) => {
      const above = fold(from)
      for (const reader of readers) {
        if (!isWithin(above, fold(reader.path))) continue
        const rest = relative(from, reader.path)
        reader.path = (rest === root ? to : `${to}/${rest}`) as FsPath
      }
    }
  }
}
