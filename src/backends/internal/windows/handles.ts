/**
 * Manages the files that are open for reading.
 *
 * Windows cannot replace an open file or move a directory that contains one. So a change in this program could wait for
 * a reader that waits for the change.
 *
 * Instead, the reader's remaining content is copied, to memory or, if it is large, to a hidden file in the root. Then
 * the file is closed. The reader continues with the copy.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs } from "../../../runtime/node.ts"
import type { FileStat } from "../../../model/Entry.ts"
import type { Fault } from "../../../model/FsError.ts"
import { fold, type FsPath, isWithin, relative, root } from "../../../model/FsPath.ts"
import type { Handle } from "../../../port/Backend.ts"
import * as TemporaryNames from "../../../runtime/temporaryNames.ts"
import { isFault } from "../attempt.ts"
import { allocate, largest } from "../hostBytes.ts"
import { atOnce, attempt, patiently } from "./attempt.ts"
import { closeQuietly, read, unlinkQuietly, write } from "./bytes.ts"
import type { WindowsDisk, WindowsStats } from "./disk.ts"
import { isSameFile, type Walker } from "./walk.ts"

export interface Opened {
  readonly descriptor: number
  readonly stats: WindowsStats
}

const closed: Fault = { _tag: "IoError", detail: "the file has been closed" }

/** Bytes of all copies in memory. Further copies go to the disk. */
const inMemory = 8 * 1024 * 1024
const block = 1024 * 1024

/** An open descriptor, closed once it is no longer needed and no read is in progress. */
interface Lease {
  readonly descriptor: number
  /** Set for a hidden copy, which blocks no change. */
  readonly isCopy: boolean
  users: number
  isOver: boolean
  readonly whenClosed: Array<() => void>
}

type Source = Lease | { readonly bytes: Uint8Array }

interface Reader {
  path: FsPath
  readonly stats: WindowsStats
  readonly size: number
  source: Source
  isClosed: boolean
}

export type InTheWay = { readonly file: WindowsStats } | { readonly directory: FsPath }

export interface Handles {
  readonly open: (
    path: FsPath,
    stat: (stats: WindowsStats) => FileStat,
    open: () => Opened | Fault
  ) => Effect.Effect<Handle, Fault, Scope.Scope>
  readonly has: (what: InTheWay) => boolean
  readonly release: (what: InTheWay) => Effect.Effect<void, Fault>
  readonly moved: (from: FsPath, to: FsPath) => void
}

const leaseOf = (descriptor: number, isCopy = false): Lease => ({ descriptor, isCopy, users: 0, isOver: false, whenClosed: [] })

const isLease = (source: Source): source is Lease => "descriptor" in source

const closeIfUnused = (disk: WindowsDisk, lease: Lease): void => {
  if (!lease.isOver || lease.users > 0) return
  closeQuietly(disk, lease.descriptor)
  for (const tell of lease.whenClosed.splice(0)) tell()
}

const end = (disk: WindowsDisk, lease: Lease): void => {
  lease.isOver = true
  closeIfUnused(disk, lease)
}

/**
 * Runs a read while the lease is in use.
 *
 * The lease is marked at the time of the call, because other fibers could close the descriptor before the effect runs.
 * So the returned effect must run, and no interruption may come before it.
 */
const during = <A>(disk: WindowsDisk, lease: Lease, use: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> => {
  lease.users++
  return Effect.ensuring(
    use,
    Effect.sync(() => {
      lease.users--
      closeIfUnused(disk, lease)
    })
  )
}

const cut = (bytes: Uint8Array, length: number): Uint8Array => (length === bytes.length ? bytes : bytes.slice(0, length))

const readFrom = (disk: WindowsDisk, source: Source, bytes: Uint8Array, offset: number): Effect.Effect<number, Fault> => {
  if (isLease(source)) return during(disk, source, read(disk, source.descriptor, bytes, offset))
  bytes.set(source.bytes.subarray(offset, offset + bytes.length))
  return Effect.succeed(Math.max(0, Math.min(bytes.length, source.bytes.length - offset)))
}

const { O_CREAT, O_EXCL, O_RDWR } = Fs.constants

/** Creates a hidden file in the root, which is never moved. The file is removed when it is closed. */
const openCopy = (walker: Walker): Effect.Effect<Lease, Fault> =>
  attempt(() => {
    const top = walker.directory(root)
    if (isFault(top)) return top
    const name = TemporaryNames.make()
    const at = top.at(name)
    let lease: Lease | undefined
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

/** Copies the content to a hidden file. Must run uninterruptibly, except for parts in `restore`. */
const copyToDisk = (walker: Walker, size: number, lease: Lease, restore: Restore): Effect.Effect<Lease, Fault> =>
  Effect.flatMap(openCopy(walker), (copy) => {
    const { disk } = walker
    const bytes = allocate(block)
    const progress = { written: 0 }
    const from = (offset: number): Effect.Effect<void, Fault> =>
      offset >= size
        ? Effect.void
        : Effect.flatMap(
            read(disk, lease.descriptor, bytes.subarray(0, Math.min(block, size - offset)), offset),
            (length): Effect.Effect<void, Fault> =>
              length === 0
                ? Effect.void
                : Effect.andThen(write(disk, copy.descriptor, bytes.subarray(0, length), progress), from(offset + length))
          )
    return Effect.as(
      Effect.onError(restore(from(0)), () => Effect.sync(() => end(disk, copy))),
      copy
    )
  })

const whenClosed = (lease: Lease): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (lease.users === 0) resume(Effect.void)
    else lease.whenClosed.push(() => resume(Effect.void))
  })

export const make = (walker: Walker): Handles => {
  const { disk } = walker
  const readers = new Set<Reader>()
  let held = 0

  const isIn = (reader: Reader, what: InTheWay): boolean =>
    isLease(reader.source) &&
    !reader.source.isCopy &&
    ("file" in what ? isSameFile(reader.stats, what.file) : isWithin(fold(what.directory), fold(reader.path)))

  const drop = (source: Source, size: number): void => {
    if (isLease(source)) end(disk, source)
    else held -= size
  }

  const close = (reader: Reader): void => {
    reader.isClosed = true
    readers.delete(reader)
    drop(reader.source, reader.size)
  }

  const copyToMemory = (size: number, lease: Lease): Effect.Effect<Source, Fault> => {
    held += size
    const bytes = allocate(size)
    return Effect.onError(
      Effect.map(read(disk, lease.descriptor, bytes, 0), (length) => ({ bytes: cut(bytes, length) })),
      () => Effect.sync(() => void (held -= size))
    )
  }

  const letGo = (reader: Reader): Effect.Effect<void, Fault> =>
    Effect.uninterruptibleMask((restore) => {
      const { size, source: lease } = reader
      if (reader.isClosed || !isLease(lease)) return Effect.void
      const copying = size > inMemory - held ? copyToDisk(walker, size, lease, restore) : copyToMemory(size, lease)
      return Effect.flatMap(during<Source>(disk, lease, copying), (copy) => {
        // The reader was closed meanwhile, or was released for another change.
        if (reader.isClosed || reader.source !== lease) drop(copy, size)
        else {
          reader.source = copy
          end(disk, lease)
        }
        return whenClosed(lease)
      })
    })

  const handleOf = (reader: Reader, stat: FileStat): Handle => ({
    stat,
    read: (offset, length) =>
      Effect.uninterruptible(
        Effect.suspend(() => {
          if (reader.isClosed) return Effect.fail(closed)
          // Bytes appended since the file was opened are not part of the handle's content.
          const bytes = allocate(Math.max(0, Math.min(length, largest, reader.size - offset)))
          if (bytes.length === 0) return Effect.succeed(bytes)
          return Effect.map(readFrom(disk, reader.source, bytes, offset), (length) => cut(bytes, length))
        })
      )
  })

  return {
    open: (path, stat, open) =>
      // Retry the whole acquisition, so that the wait for the file is interruptible.
      patiently(
        Effect.map(
          Effect.acquireRelease(
            Effect.map(atOnce(open), ({ descriptor, stats }): Reader => {
              const reader = { path, stats, size: Number(stats.size), source: leaseOf(descriptor), isClosed: false }
              readers.add(reader)
              return reader
            }),
            (reader) => Effect.sync(() => close(reader))
          ),
          (reader) => handleOf(reader, stat(reader.stats))
        )
      ),
    has: (what) => {
      for (const reader of readers) if (isIn(reader, what)) return true
      return false
    },
    release: (what) =>
      Effect.suspend(() =>
        Effect.forEach(
          [...readers].filter((reader) => isIn(reader, what)),
          // Each reader is checked when its turn comes, because it may be closed by then.
          letGo,
          { discard: true }
        )
      ),
    moved: (from, to) => {
      const above = fold(from)
      for (const reader of readers) {
        if (!isWithin(above, fold(reader.path))) continue
        const rest = relative(from, reader.path)
        reader.path = (rest === root ? to : `${to}/${rest}`) as FsPath
      }
    }
  }
}
