/**
 * Writes files on a Windows disk: publication is atomic, and a failed append is undone.
 *
 * A file is closed before it gets its final name, because some systems cannot rename an open file. An open file cannot
 * be replaced. A replaced name keeps its case.
 */
import { permission } from "../faults.ts"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { FileStat } from "../../model/Entry.ts"
import { alreadyExists, is as isFault, notAFile } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { isBytes, codeOf } from "../../model/realms.ts"
import type { Commit } from "../../port/Backend.ts"
import { Fs } from "../../runtime/node.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import {
  copyBlocks,
  type Durability,
  maxAppendBlockBytes,
  maxBytesPerCall,
  type Progress,
  writeContent
} from "../posix/read.ts"
import { linkNew } from "../posix/write.ts"
import { type Content, type Mode, runCommit } from "../writing.ts"
import { closeQuietly, flush, transfersOf, unlinkQuietly, type WindowsDisk, type WindowsStats } from "./disk.ts"
import { attempt, attemptOnce, isInUse, retryTransient } from "./errors.ts"
import { type BlockingReaders, type Handles, kindOf, type Opened, openFile, toStat } from "./handles.ts"
import { inspectPath, isSameFile, type Walker, type WindowsDirectory } from "./walk.ts"
import { retryChanged } from "../posix/place.ts"

interface Writer {
  readonly walker: Walker
  readonly handles: Handles
  readonly durability: Durability
}

const { O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_WRONLY } = Fs.constants

/** Tests the read-only attribute, which Node reports as a missing write permission. */
export const isReadOnly = (stats: WindowsStats): boolean => (stats.mode & 0o200n) === 0n

/**
 * Runs a change that open files may block. Readers of this program switch to a copy of the file, and the change is
 * retried immediately. If another program has the file open, the change is retried after pauses.
 */
export const withReadersReleased = <A>(
  handles: Handles,
  findBlocking: () => BlockingReaders | undefined | Fault,
  change: Effect.Effect<A, Fault>
): Effect.Effect<A, Fault> =>
  retryTransient(
    Effect.catch(change, (fault) => {
      if (!isInUse(fault)) return Effect.fail(fault)
      return Effect.flatMap(attemptOnce(findBlocking), (blocking) =>
        blocking === undefined || !handles.has(blocking)
          ? Effect.fail(fault)
          : Effect.andThen(handles.release(blocking), change)
      )
    })
  )

interface Staged {
  readonly descriptor: number
  readonly place: WindowsDirectory
  readonly name: string
  stat: FileStat | undefined
  isPublished: boolean
}

const targetFault = (stats: WindowsStats | undefined, mode: Mode): Fault | undefined => {
  if (stats === undefined) return undefined
  if (mode === "create") return alreadyExists
  if (kindOf(stats) !== "file") return notAFile
  return isReadOnly(stats) ? permission : undefined
}

/** Creates and opens a new file. Removes the file again if it may have been created in a wrong directory. */
const openNew = (walker: Walker, place: WindowsDirectory, at: string, flags: number): Opened | undefined => {
  const { disk } = walker
  const descriptor = disk.openSync(at, flags | O_CREAT | O_EXCL, 0o666)
  let opened: Opened | undefined
  try {
    const stats = disk.fstatSync(descriptor, { bigint: true })
    if (walker.holds(descriptor, place, at)) opened = { descriptor, stats }
    return opened
  } finally {
    if (opened === undefined) {
      closeQuietly(disk, descriptor)
      unlinkQuietly(disk, at)
    }
  }
}

const openTemporary = (walker: Walker, place: WindowsDirectory): Staged | undefined => {
  const name = TemporaryNames.make()
  let opened: Opened | undefined
  try {
    opened = openNew(walker, place, place.at(name), O_RDWR)
    return opened && { descriptor: opened.descriptor, place, name, stat: undefined, isPublished: false }
  } finally {
    if (opened === undefined) TemporaryNames.forget(name)
  }
}

/**
 * Opens a hidden file for the content. Fails if the publication would fail, so that a long stream is not read for
 * nothing.
 */
const stage = (walker: Walker, path: FsPath, mode: Mode): Staged | Fault =>
  retryChanged(() => {
    const spot = inspectPath(walker, path)
    if (isFault(spot)) return spot
    return targetFault(spot.stats, mode) ?? openTemporary(walker, spot.place)
  })

const discard = ({ disk }: Walker, staged: Staged): void => {
  if (staged.stat === undefined) closeQuietly(disk, staged.descriptor)
  if (!staged.isPublished) unlinkQuietly(disk, staged.place.at(staged.name))
  TemporaryNames.forget(staged.name)
}

const withStaged = <A, E, R>(
  walker: Walker,
  path: FsPath,
  mode: Mode,
  use: (staged: Staged) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> =>
  Effect.acquireUseRelease(
    attempt(() => stage(walker, path, mode)),
    use,
    (staged) => Effect.sync(() => discard(walker, staged))
  )

const prepare = <E, R>(
  { durability, walker: { disk } }: Writer,
  staged: Staged,
  path: FsPath,
  content: Content<E, R>
): Effect.Effect<FileStat, Fault | E, R> => {
  const progress = { written: 0, isPositioned: true }
  const filled = writeContent(content, (bytes) => transfersOf(disk).write(staged.descriptor, bytes, progress))
  return Effect.andThen(
    durability === "none" ? filled : Effect.andThen(filled, flush(disk, staged.descriptor)),
    attemptOnce(() => {
      const stat = toStat(path, disk.fstatSync(staged.descriptor, { bigint: true }))
      staged.stat = stat
      // Report a failure of close, because some network disks report only here that the content was lost.
      disk.closeSync(staged.descriptor)
      return stat
    })
  )
}

/** The error codes of disks without hard links. Some report the call as unknown, which libuv translates to EISDIR. */
const noHardLinkCodes = new Set(["EPERM", "EISDIR", "EINVAL", "ENOSYS", "ENOTSUP", "EMLINK"])

/** Gives the staged file its name. Unless the mode is `replace`, the path must not exist. */
const publishNow = (walker: Walker, staged: Staged, path: FsPath, mode: Mode, stat: FileStat): FileStat | Fault => {
  const spot = inspectPath(walker, path)
  if (isFault(spot)) return spot
  const from = staged.place.at(staged.name)
  if (mode === "replace") {
    const fault = targetFault(spot.stats, mode)
    if (fault !== undefined) return fault
    const name = spot.stats === undefined ? spot.name : walker.nameOf(spot.place, spot.name)
    walker.disk.renameSync(from, spot.place.at(name))
  } else {
    if (spot.stats !== undefined) return alreadyExists
    linkNew(walker.disk, noHardLinkCodes, from, spot.at)
  }
  staged.isPublished = true
  return stat
}

const publish = ({ handles, walker }: Writer, staged: Staged, path: FsPath, mode: Mode, stat: FileStat) =>
  withReadersReleased(
    handles,
    () => {
      const spot = inspectPath(walker, path)
      return isFault(spot) ? spot : spot.stats && { file: spot.stats }
    },
    attemptOnce(() => publishNow(walker, staged, path, mode, stat))
  )

export const replaceFile = <E, R>(
  writer: Writer,
  path: FsPath,
  content: Content<E, R>,
  mode: "create" | "replace",
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | E, R> =>
  withStaged(writer.walker, path, mode, (staged) =>
    Effect.flatMap(prepare(writer, staged, path, content), (stat) =>
      runCommit(commit, publish(writer, staged, path, mode, stat))
    )
  )

interface Target extends Opened, Progress {
  readonly path: FsPath
  readonly isNew: boolean
  isComplete: boolean
}

const makeTarget = (walker: Walker, path: FsPath): Opened | Fault | undefined => {
  const spot = inspectPath(walker, path)
  if (isFault(spot)) return spot
  try {
    return openNew(walker, spot.place, spot.at, O_WRONLY | O_APPEND)
  } catch (error) {
    if (codeOf(error) === "EEXIST") return undefined
    throw error
  }
}

const openTarget = (walker: Walker, path: FsPath): Target | Fault =>
  retryChanged(() => {
    const found = openFile(walker, path, O_WRONLY | O_APPEND)
    const isNew = isFault(found) && found._tag === "NotFound"
    const opened = isNew ? makeTarget(walker, path) : found
    return opened === undefined || isFault(opened) ? opened : { ...opened, path, isNew, written: 0, isComplete: false }
  })

/**
 * Undoes a failed append, unless another writer has appended since.
 *
 * A file that was opened for appending cannot be truncated, and an open file may survive its removal. So this function
 * truncates or removes the file by its name, if the name still belongs to the file.
 */
const undoAppend = (walker: Walker, { isNew, path, stats, written }: Target): void => {
  const { disk } = walker
  const spot = inspectPath(walker, path)
  if (isFault(spot) || spot.stats === undefined || !isSameFile(spot.stats, stats)) return
  if (spot.stats.size !== stats.size + BigInt(written)) return
  if (isNew) return disk.unlinkSync(spot.at)
  const descriptor = disk.openSync(spot.at, O_RDWR)
  try {
    if (walker.holds(descriptor, spot.place, spot.at)) disk.ftruncateSync(descriptor, Number(stats.size))
  } finally {
    closeQuietly(disk, descriptor)
  }
}

const closeTarget = (walker: Walker, target: Target): void => {
  closeQuietly(walker.disk, target.descriptor)
  if (target.isComplete) return
  try {
    undoAppend(walker, target)
  } catch {
    // Ignore this failure: the caller already reports the original failure.
  }
}

/** Returns the stat after the append. Computes the stat if the system does not return it. */
const statOf = (disk: WindowsDisk, { descriptor, path, stats, written }: Target): FileStat => {
  try {
    return toStat(path, disk.fstatSync(descriptor, { bigint: true }))
  } catch {
    return { ...toStat(path, stats), sizeBytes: Number(stats.size) + written }
  }
}

/**
 * Opens the target, runs `use`, and closes the target. While another program has the file open, waits interruptibly and tries
 * the opening again, for a limited time.
 */
const withTarget = <A>(
  walker: Walker,
  path: FsPath,
  use: (target: Target) => Effect.Effect<A, Fault>
): Effect.Effect<A, Fault> =>
  Effect.scoped(
    Effect.flatMap(
      retryTransient(
        Effect.acquireRelease(
          attemptOnce(() => openTarget(walker, path)),
          (target) => Effect.sync(() => closeTarget(walker, target))
        )
      ),
      use
    )
  )

const appendTo = (
  { durability, walker }: Writer,
  path: FsPath,
  writeTo: (target: Target) => Effect.Effect<void, Fault>
): Effect.Effect<FileStat, Fault> =>
  withTarget(walker, path, (target) =>
    Effect.andThen(
      durability === "none" ? writeTo(target) : Effect.andThen(writeTo(target), flush(walker.disk, target.descriptor)),
      Effect.sync(() => {
        target.isComplete = true
        return statOf(walker.disk, target)
      })
    )
  )

const appendFrom = (disk: WindowsDisk, from: string, size: number, target: Target): Effect.Effect<void, Fault> =>
  Effect.acquireUseRelease(
    attempt(() => disk.openSync(from, O_RDONLY)),
    (descriptor) => {
      const { read, write } = transfersOf(disk)
      return copyBlocks(
        size,
        maxAppendBlockBytes,
        (block, offset) => read(descriptor, block, offset),
        (bytes) => write(target.descriptor, bytes, target, maxBytesPerCall)
      )
    },
    (descriptor) => Effect.sync(() => closeQuietly(disk, descriptor))
  )

const appendStream = <E, R>(
  writer: Writer,
  path: FsPath,
  content: Stream.Stream<Uint8Array, E, R>,
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | E, R> =>
  withStaged(writer.walker, path, "append", (staged) =>
    Effect.flatMap(prepare(writer, staged, path, content), (stat) => {
      const from = staged.place.at(staged.name)
      const published = Effect.catch(publish(writer, staged, path, "append", stat), (fault) =>
        fault._tag === "AlreadyExists"
          ? appendTo(writer, path, (target) => appendFrom(writer.walker.disk, from, stat.sizeBytes, target))
          : Effect.fail(fault)
      )
      return runCommit(commit, published)
    })
  )

export const append = <E, R>(
  writer: Writer,
  path: FsPath,
  content: Content<E, R>,
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | E, R> =>
  isBytes(content)
    ? runCommit(
        commit,
        appendTo(writer, path, (target) =>
          transfersOf(writer.walker.disk).write(target.descriptor, content, target, maxBytesPerCall)
        )
      )
    : appendStream(writer, path, content, commit)
