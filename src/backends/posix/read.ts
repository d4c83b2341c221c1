/**
 * Opens and inspects files.
 *
 * A file is inspected before it is opened, because opening a FIFO would block, opening a device may have an effect, and
 * a symlink may lead elsewhere. The file is inspected again after it is opened, because an open file can no longer be
 * replaced.
 */
import { fileClosed, hardLinkRefused, notFoundBelowFile } from "../faults.ts"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FileStat, Kind } from "../../model/Entry.ts"
import { diskFull, is as isFault, notAFile, notFound } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, name, parent, root } from "../../model/FsPath.ts"
import { codeOf, isBytes, isSystemError } from "../../model/realms.ts"
import type { Handle, Whole } from "../../port/Backend.ts"
import * as Stream from "effect/Stream"
import * as Host from "../../runtime/host.ts"
import { awaitCall, closeQuietly, faultOf, type Start } from "../../runtime/host.ts"
import { Fs } from "../../runtime/node.ts"
import type { Content } from "../writing.ts"
import { attempt } from "./errors.ts"
import { type Confined, type HostDirectory, lstatEntry, retryChanged, withPlace } from "./place.ts"

// Reads and writes bytes of open files.
//
// Transfers of at most `maxSyncBytes` are synchronous: 64 KiB from the page cache take 4 µs, while a round trip through
// the thread pool takes at least 25 µs. Larger transfers use the thread pool, so that the program does not block.

export const maxSyncBytes = 64 * 1024

/** The maximum number of bytes per system call. The system transfers at most 2 GiB per call. */
export const maxBytesPerCall = 1024 * 1024 * 1024

/** The maximum number of bytes of a staged stream that one system call appends. These bytes are kept in memory. */
export const maxAppendBlockBytes = 256 * 1024 * 1024

export const allocate = (length: number): Uint8Array => new Uint8Array(Buffer.allocUnsafeSlow(length).buffer, 0, length)

type Done = (error: Error | null, count: number) => void

/**
 * The disk calls that transfer bytes. The position `null` means the position of the descriptor, or the end of a file that
 * was opened for appending.
 */
export interface TransferCalls {
  readonly readSync: (descriptor: number, bytes: Uint8Array, at: number, length: number, position: number) => number
  readonly read: (descriptor: number, bytes: Uint8Array, at: number, length: number, position: number, done: Done) => void
  readonly writeSync: (descriptor: number, bytes: Uint8Array, at: number, length: number, position: number | null) => number
  readonly write: (
    descriptor: number,
    bytes: Uint8Array,
    at: number,
    length: number,
    position: number | null,
    done: Done
  ) => void
}

export interface Progress {
  written: number
  /**
   * True to write at explicit positions from the beginning of the file, not at the position of the descriptor.
   * @default false
   */
  readonly isPositioned?: boolean
}

export interface Transfers {
  readonly readSync: (descriptor: number, bytes: Uint8Array, offset: number) => number
  /** Reads until the array is full or the file ends. */
  readonly read: (descriptor: number, bytes: Uint8Array, offset: number) => Effect.Effect<number, Fault>
  readonly write: (
    descriptor: number,
    bytes: Uint8Array,
    progress?: Progress,
    bytesPerCall?: number
  ) => Effect.Effect<void, Fault>
}

export const makeTransfers = (
  calls: TransferCalls,
  attempt: <A>(run: () => A | Fault) => Effect.Effect<A, Fault>,
  awaitCall: <A>(start: Start<A>) => Effect.Effect<A, Fault>
): Transfers => {
  const readSync: Transfers["readSync"] = (descriptor, bytes, offset) => {
    let done = 0
    while (done < bytes.length) {
      const read = calls.readSync(descriptor, bytes, done, bytes.length - done, offset + done)
      if (read === 0) break
      done += read
    }
    return done
  }
  const read: Transfers["read"] = (descriptor, bytes, offset) => {
    const from = (done: number): Effect.Effect<number, Fault> =>
      Effect.flatMap(
        awaitCall<number>((end) =>
          calls.read(descriptor, bytes, done, Math.min(bytes.length - done, maxBytesPerCall), offset + done, end)
        ),
        (read) => (read === 0 || done + read === bytes.length ? Effect.succeed(done + read) : from(done + read))
      )
    return bytes.length > maxSyncBytes ? from(0) : attempt(() => readSync(descriptor, bytes, offset))
  }
  const write: Transfers["write"] = (descriptor, bytes, progress = { written: 0 }, bytesPerCall = 8 * 1024 * 1024) => {
    const from = (done: number): Effect.Effect<void, Fault> => {
      if (done === bytes.length) return Effect.void
      const length = Math.min(bytes.length - done, bytesPerCall)
      const position = progress.isPositioned === true ? progress.written : null
      const writing =
        bytes.length > maxSyncBytes
          ? awaitCall<number>((end) => calls.write(descriptor, bytes, done, length, position, end))
          : attempt(() => calls.writeSync(descriptor, bytes, done, length, position))
      return Effect.flatMap(writing, (written) => {
        progress.written += written
        return written === 0 ? Effect.fail(diskFull) : from(done + written)
      })
    }
    return from(0)
  }
  return { readSync, read, write }
}

export const { read, readSync, write } = makeTransfers(Fs, attempt, awaitCall)

/** Copies a file in blocks. Keeps one block in memory. */
export const copyBlocks = (
  size: number,
  blockBytes: number,
  read: (block: Uint8Array, offset: number) => Effect.Effect<number, Fault>,
  write: (bytes: Uint8Array) => Effect.Effect<void, Fault>
): Effect.Effect<void, Fault> =>
  Effect.suspend(() => {
    const block = allocate(Math.min(size, blockBytes))
    const from = (offset: number): Effect.Effect<void, Fault> =>
      Effect.flatMap(read(block.subarray(0, Math.min(block.length, size - offset)), offset), (length) =>
        length === 0 ? Effect.void : Effect.andThen(write(block.subarray(0, length)), from(offset + length))
      )
    return from(0)
  })

export const writeContent = <E, R>(
  content: Content<E, R>,
  write: (bytes: Uint8Array) => Effect.Effect<void, Fault>
): Effect.Effect<void, Fault | E, R> =>
  isBytes(content)
    ? write(content)
    : Stream.runForEachArray(content, (chunks) => Effect.forEach(chunks, write, { discard: true }))

export type Durability = "none" | "file" | "full"

/** Flushes the bytes to disk. Never retries: after a failure, the kernel may have discarded the unwritten bytes. */
export const flush = (descriptor: number): Effect.Effect<void, Fault> => Host.sync(descriptor, faultOf)

export const kindOf = (stats: Fs.Stats | Fs.Dirent | Fs.Dirent<Buffer>): Kind =>
  stats.isFile() ? "file" : stats.isDirectory() ? "directory" : stats.isSymbolicLink() ? "symlink" : "other"

const permissionBits = 0o777

/** The latest time that a JavaScript date can represent, in milliseconds since 1970. Disks can store later times. */
const maxTimeMillis = 8_640_000_000_000_000

const toTime = (millis: number): DateTime.Utc =>
  DateTime.makeUnsafe(Math.max(-maxTimeMillis, Math.min(maxTimeMillis, Math.floor(millis))))

/** Creates a stat. Times are milliseconds since 1970; `mode` is absent if the disk has no modes. */
export const statOf = (
  path: FsPath,
  kind: Kind,
  size: number,
  born: number,
  modified: number,
  mode?: number,
  identity?: string
): FileStat => ({
  path,
  kind,
  isFile: kind === "file",
  isDirectory: kind === "directory",
  sizeBytes: kind === "file" || kind === "symlink" ? size : 0,
  // Disks without creation times report 0.
  ...(born > 0 ? { createdAt: toTime(born) } : undefined),
  modifiedAt: toTime(modified),
  ...(mode === undefined ? undefined : { mode: mode & permissionBits }),
  ...(kind === "symlink" ? { isSymlink: true } : undefined),
  ...(identity === undefined ? undefined : { identity })
})

/** Returns the device and inode. Returns `undefined` if the inode is unknown, or too large to be exact as a number. */
export const identityOf = ({ dev, ino }: Pick<Fs.Stats, "dev" | "ino">): string | undefined =>
  ino !== 0 && Number.isSafeInteger(ino) ? `${dev}:${ino}` : undefined

export const toStat = (path: FsPath, stats: Fs.Stats): FileStat =>
  statOf(path, kindOf(stats), stats.size, stats.birthtimeMs, stats.mtimeMs, stats.mode, identityOf(stats))

export const inParent = <A>(
  confined: Confined,
  path: FsPath,
  use: (place: HostDirectory, segment: string) => A | Fault
): A | Fault => withPlace(confined.directory(parent(path)), (place) => use(place, name(path)))

export const stat = (confined: Confined, path: FsPath): FileStat | undefined | Fault => {
  const found =
    path === root
      ? withPlace(confined.directory(root), ({ stats }) => stats)
      : inParent(confined, path, (place, segment) => lstatEntry(place.at(segment)) ?? notFound)
  if (!isFault(found)) return toStat(path, found)
  return notFoundBelowFile(found)._tag === "NotFound" ? undefined : found
}

export type Hardlinks = "allow" | "reject"

/**
 * Tests whether hard links are refused and a file has several names. Such a file may also belong to a tree outside the
 * root.
 */
export const isRefusedHardLink = (stats: Fs.Stats, hardlinks: Hardlinks): boolean =>
  hardlinks === "reject" && stats.isFile() && stats.nlink > 1

export interface Opened {
  readonly descriptor: number
  readonly stats: Fs.Stats
}

const { O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = Fs.constants

const changed = new Set(["ELOOP", "ENXIO", "EISDIR", "ENOENT"])

const tryOpen = (
  confined: Confined,
  place: HostDirectory,
  segment: string,
  flags: number,
  hardlinks: Hardlinks
): Opened | Fault | undefined => {
  const at = place.at(segment)
  const found = lstatEntry(at)
  if (found === undefined) return notFound
  if (!found.isFile()) return notAFile
  let descriptor: number
  try {
    descriptor = Fs.openSync(at, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
  } catch (error) {
    if (changed.has(codeOf(error) ?? "")) return undefined
    throw error
  }
  let opened: Opened | Fault | undefined
  try {
    const stats = Fs.fstatSync(descriptor)
    if (stats.isFile() && confined.holds(descriptor, place, segment)) {
      opened = isRefusedHardLink(stats, hardlinks) ? hardLinkRefused : { descriptor, stats }
    }
    return opened
  } finally {
    if (opened === undefined || isFault(opened)) closeQuietly(descriptor)
  }
}

export const openFile = (confined: Confined, path: FsPath, flags: number, hardlinks: Hardlinks): Opened | Fault => {
  if (path === root) return notAFile
  return retryChanged(() => inParent(confined, path, (place, segment) => tryOpen(confined, place, segment, flags, hardlinks)))
}

const openToRead = (confined: Confined, path: FsPath, hardlinks: Hardlinks): Opened | Fault => {
  const opened = openFile(confined, path, O_RDONLY, hardlinks)
  return isFault(opened) ? notFoundBelowFile(opened) : opened
}

export const truncateBytes = (bytes: Uint8Array, length: number): Uint8Array =>
  length === bytes.length ? bytes : bytes.slice(0, length)

const handleOf = (path: FsPath, { descriptor, stats }: Opened): { readonly handle: Handle; readonly close: () => void } => {
  const stat = toStat(path, stats)
  let activeReads = 0
  let isClosed = false
  const endRead = (): void => {
    activeReads--
    if (isClosed && activeReads === 0) closeQuietly(descriptor)
  }
  return {
    handle: {
      stat,
      read: (offset, length) =>
        Effect.uninterruptible(
          Effect.suspend(() => {
            if (isClosed) return Effect.fail(fileClosed)
            // Bytes appended since the file was opened are not part of the handle's content.
            const bytes = allocate(Math.max(0, Math.min(length, maxBytesPerCall, stats.size - offset)))
            if (bytes.length === 0) return Effect.succeed(bytes)
            activeReads++
            return Effect.map(Effect.ensuring(read(descriptor, bytes, offset), Effect.sync(endRead)), (length) =>
              truncateBytes(bytes, length)
            )
          })
        )
    },
    close: () => {
      isClosed = true
      if (activeReads === 0) closeQuietly(descriptor)
    }
  }
}

export const open = (confined: Confined, path: FsPath, hardlinks: Hardlinks): Effect.Effect<Handle, Fault, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.map(
        attempt(() => openToRead(confined, path, hardlinks)),
        (opened) => handleOf(path, opened)
      ),
      ({ close }) => Effect.sync(close)
    ),
    ({ handle }) => handle
  )

const wholeOf = (path: FsPath, stats: Fs.Stats, bytes: Uint8Array): Whole => {
  const stat = toStat(path, stats)
  return { stat: stat.sizeBytes === bytes.length ? stat : { ...stat, sizeBytes: bytes.length }, bytes }
}

export const readSmallSync = (
  confined: Confined,
  path: FsPath,
  maxBytes: number,
  hardlinks: Hardlinks
): Whole | undefined | Fault => {
  const opened = openToRead(confined, path, hardlinks)
  return isFault(opened) ? opened : readAndClose(path, opened, maxBytes)
}

const readAndClose = (path: FsPath, { descriptor, stats }: Opened, maxBytes: number): Whole | undefined => {
  try {
    if (stats.size > Math.min(maxBytes, maxSyncBytes)) return undefined
    const bytes = allocate(stats.size)
    return wholeOf(path, stats, truncateBytes(bytes, readSync(descriptor, bytes, 0)))
  } finally {
    closeQuietly(descriptor)
  }
}

export const readSmall = (
  confined: Confined,
  path: FsPath,
  maxBytes: number,
  hardlinks: Hardlinks
): Effect.Effect<Whole | undefined, Fault> => attempt(() => readSmallSync(confined, path, maxBytes, hardlinks))

/** The number of small files that are read without a pause for other fibers. */
const filesPerRun = 16

/** Reads small files. Opens a directory once for the files in it that follow each other. */
const readRun = (
  confined: Confined,
  paths: ReadonlyArray<FsPath>,
  maxBytes: number,
  hardlinks: Hardlinks
): ReadonlyArray<Whole | undefined> => {
  let directory: FsPath | undefined
  let place: HostDirectory | undefined
  const readOne = (path: FsPath): Whole | undefined => {
    if (directory !== parent(path)) {
      place?.release()
      place = undefined
      directory = parent(path)
      const found = confined.directory(directory)
      if (!isFault(found)) place = found
    }
    if (place === undefined || path === root) return undefined
    const opened = tryOpen(confined, place, name(path), O_RDONLY, hardlinks)
    return opened === undefined || isFault(opened) ? undefined : readAndClose(path, opened, maxBytes)
  }
  try {
    return paths.map((path) => {
      try {
        return readOne(path)
      } catch (error) {
        if (isSystemError(error)) return undefined
        throw error
      }
    })
  } finally {
    place?.release()
  }
}

/** Reads small files. Returns `undefined` for each file that is large or cannot be read. */
export const readMany = (
  confined: Confined,
  paths: ReadonlyArray<FsPath>,
  maxBytes: number,
  hardlinks: Hardlinks
): Effect.Effect<ReadonlyArray<Whole | undefined>> =>
  Effect.gen(function* () {
    const out: Array<Whole | undefined> = []
    for (let at = 0; at < paths.length; at += filesPerRun) {
      if (at > 0) yield* Effect.yieldNow
      out.push(...readRun(confined, paths.slice(at, at + filesPerRun), maxBytes, hardlinks))
    }
    return out
  })
