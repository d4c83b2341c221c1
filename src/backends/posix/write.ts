/** Writes files on a host: publishes new content atomically, and appends in place. */
import { alreadyExists, ioError, is as isFault, notAFile } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, name, parent, root } from "../../model/FsPath.ts"
import { isBytes, codeOf } from "../../model/realms.ts"
import type { Commit, NewEntry } from "../../port/Backend.ts"
import { closeQuietly, unlinkQuietly } from "../../runtime/host.ts"
import { Fs } from "../../runtime/node.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { type Content, type Mode, runCommit } from "../writing.ts"
import { makeDirectory, setByAlias, setByName } from "./changes.ts"
import { removeLeftoversOnce } from "./entries.ts"
import { attempt } from "./errors.ts"
import {
  changeOwnerOfOpen,
  type Confined,
  type HostDirectory,
  type HostPath,
  isSameFile,
  lstatEntry,
  retryChanged,
  withPlace
} from "./place.ts"
import {
  copyBlocks,
  type Durability,
  flush,
  type Hardlinks,
  inParent,
  maxAppendBlockBytes,
  maxBytesPerCall,
  type Opened,
  openFile,
  type Progress,
  read,
  toStat,
  write,
  writeContent
} from "./read.ts"

// Publishes files atomically. All content goes to a hidden temporary file in the same directory. Then one rename gives
// the file its name, or one hard link if no file may be replaced.
//
// If the write fails or is interrupted before this step, the old file is kept and the temporary file is removed. A
// killed process leaves a hidden leftover, which the next use of the directory removes.

interface Staged {
  readonly descriptor: number
  readonly place: HostDirectory
  readonly segment: string
  /** The file that had the name when the write began. */
  readonly old: Fs.Stats | undefined
  stat: FileStat | undefined
  isPublished: boolean
}

const { O_APPEND, O_CREAT, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDWR, O_WRONLY } = Fs.constants

const abandon = (
  confined: Confined,
  { descriptor, place, segment }: Pick<Staged, "descriptor" | "place" | "segment">
): void => {
  try {
    confined.withdraw(descriptor, place, segment)
  } finally {
    closeQuietly(descriptor)
  }
}

const openTemporary = (confined: Confined, place: HostDirectory, old: Fs.Stats | undefined): Staged | undefined => {
  // A new file gets 0o666 minus the umask. A replacement belongs to another group than the old file until it is complete, so
  // only its owner may open it until then.
  const mode = old === undefined ? 0o666 : old.mode & 0o700
  const segment = TemporaryNames.make()
  let descriptor: number | undefined
  let staged: Staged | undefined
  try {
    descriptor = Fs.openSync(place.at(segment), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode)
    if (confined.holds(descriptor, place, segment)) {
      changeOwnerOfOpen(confined, descriptor)
      staged = { descriptor, place, segment, old, stat: undefined, isPublished: false }
    }
    return staged
  } finally {
    if (staged === undefined) {
      if (descriptor !== undefined) abandon(confined, { descriptor, place, segment })
      TemporaryNames.forget(segment)
    }
  }
}

/**
 * Opens a temporary file. Returns a fault if the publication would fail, so that a long stream is not read for nothing. Returns
 * `undefined` if the directory was replaced meanwhile.
 */
const tryStage = (confined: Confined, place: HostDirectory, segment: string, mode: Mode): Staged | Fault | undefined => {
  const found = lstatEntry(place.at(segment))
  if (found !== undefined && mode === "create") return alreadyExists
  if (found !== undefined && !found.isFile()) return notAFile
  removeLeftoversOnce(place)
  return openTemporary(confined, place, found)
}

const stage = (confined: Confined, path: FsPath, mode: Mode): Staged | Fault =>
  retryChanged(() => {
    const place = confined.directory(parent(path))
    if (isFault(place)) return place
    let staged: Staged | Fault | undefined
    try {
      staged = tryStage(confined, place, name(path), mode)
      return staged
    } finally {
      if (staged === undefined || isFault(staged)) place.release()
    }
  })

const discard = (staged: Staged): void => {
  if (staged.stat === undefined) closeQuietly(staged.descriptor)
  if (!staged.isPublished) unlinkQuietly(staged.place.at(staged.segment))
  TemporaryNames.forget(staged.segment)
  staged.place.release()
}

const withStaged = <A, E, R>(
  confined: Confined,
  path: FsPath,
  mode: Mode,
  use: (staged: Staged) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> =>
  Effect.acquireUseRelease(
    attempt(() => stage(confined, path, mode)),
    use,
    (staged) => Effect.sync(() => discard(staged))
  )

const chownDeniedCodes = new Set(["EPERM", "EINVAL", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"])

const tryChown = (descriptor: number, uid: number, gid: number): boolean => {
  try {
    Fs.fchownSync(descriptor, uid, gid)
    return true
  } catch (error) {
    if (chownDeniedCodes.has(codeOf(error) ?? "")) return false
    throw error
  }
}

/**
 * Copies the owner, the group and the permission bits of the replaced file. If the system refuses the owner, copies the
 * group alone, and ignores a second refusal.
 */
const copyOwnership = (descriptor: number, old: Fs.Stats): void => {
  const { gid, mode, uid } = Fs.fstatSync(descriptor)
  if (uid !== old.uid || gid !== old.gid) void (tryChown(descriptor, old.uid, old.gid) || tryChown(descriptor, -1, old.gid))
  if ((mode & 0o777) !== (old.mode & 0o777)) Fs.fchmodSync(descriptor, old.mode & 0o777)
}

const noHardLinkCodes = new Set(["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EMLINK"])

interface LinkCalls<P> {
  readonly linkSync: (from: P, to: P) => void
  readonly openSync: (path: P, flags: number, mode: number) => number
  readonly closeSync: (descriptor: number) => void
  readonly renameSync: (from: P, to: P) => void
  readonly unlinkSync: (path: P) => void
}

/**
 * Gives a file a name that must be free. On a disk without hard links, first reserves the name with an empty file, and
 * then renames the file over it.
 */
export const linkNew = <P>(disk: LinkCalls<P>, noHardLinkCodes: ReadonlySet<string>, from: P, to: P): void => {
  const discard = (path: P): void => {
    try {
      disk.unlinkSync(path)
    } catch {
      // A temporary file that remains is a leftover. A reserved name that remains is an empty file.
    }
  }
  try {
    disk.linkSync(from, to)
  } catch (error) {
    if (!noHardLinkCodes.has(codeOf(error) ?? "")) throw error
    disk.closeSync(disk.openSync(to, O_RDWR | O_CREAT | O_EXCL | (O_NOFOLLOW ?? 0), 0o600))
    try {
      disk.renameSync(from, to)
    } catch (error) {
      discard(to)
      throw error
    }
    return
  }
  discard(from)
}

/**
 * Gives the staged file its name. Unless the mode is `replace`, the path must not exist. With `append`, the descriptor
 * stays open.
 */
const publish = (confined: Confined, staged: Staged, path: FsPath, mode: Mode): FileStat | Fault =>
  inParent(confined, path, (place, segment) => {
    const to = place.at(segment)
    const found = lstatEntry(to)
    if (found !== undefined && mode !== "replace") return alreadyExists
    if (found !== undefined && !found.isFile()) return notAFile
    // Another process may have removed the old file since the write began.
    const stat = staged.stat ?? finishedStat(staged, path, found ?? staged.old)
    if (mode !== "append" && staged.stat === undefined) {
      staged.stat = stat
      // Report a failure of close, because some network disks report only here that the content was lost.
      Fs.closeSync(staged.descriptor)
    }
    const from = staged.place.at(staged.segment)
    if (mode === "replace") Fs.renameSync(from, to)
    else linkNew<HostPath>(Fs, noHardLinkCodes, from, to)
    staged.isPublished = true
    return stat
  })

const finishedStat = (staged: Staged, path: FsPath, old: Fs.Stats | undefined): FileStat => {
  if (old !== undefined) copyOwnership(staged.descriptor, old)
  return toStat(path, Fs.fstatSync(staged.descriptor))
}

const makeUnconfirmed = (fault: Fault): Fault => ({
  ...ioError(
    "the change was made, but the disk did not confirm that it would survive a machine crash",
    fault._tag === "IoError" && typeof fault["code"] === "string" ? fault["code"] : undefined
  ),
  cause: fault["cause"]
})

export const flushName = (confined: Confined, path: FsPath, durability: Durability): Effect.Effect<void, Fault> =>
  durability !== "full"
    ? Effect.void
    : Effect.mapError(
        Effect.acquireUseRelease(
          attempt(() => inParent(confined, path, (place) => place.open())),
          flush,
          (descriptor) => Effect.sync(() => closeQuietly(descriptor))
        ),
        makeUnconfirmed
      )

export const replaceFile = <E, R>(
  confined: Confined,
  path: FsPath,
  content: Content<E, R>,
  mode: "create" | "replace",
  durability: Durability,
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | E, R> => {
  const written = withStaged(confined, path, mode, (staged) => {
    const filled = writeContent(content, (bytes) => write(staged.descriptor, bytes))
    return Effect.andThen(
      durability === "none" ? filled : Effect.andThen(filled, flush(staged.descriptor)),
      runCommit(
        commit,
        attempt(() => publish(confined, staged, path, mode))
      )
    )
  })
  return durability === "full" ? Effect.tap(written, () => flushName(confined, path, durability)) : written
}

// Appends to files in place. A single system call appends up to 1 GiB, or 256 MiB of a stream, so that no other writer
// can interleave.
//
// After a failure, the file is truncated to its previous size; a new file is removed. A stream is first staged in a
// temporary file. After the stream has ended successfully, this file is appended, or published if the path is free.

interface Target extends Opened, Progress {
  readonly isNew: boolean
  isComplete: boolean
}

const target = (opened: Opened, isNew: boolean): Target => ({ ...opened, isNew, written: 0, isComplete: false })

const makeTarget = (confined: Confined, path: FsPath): Target | Fault | undefined =>
  inParent(confined, path, (place, segment) => {
    let descriptor: number
    try {
      const flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
      descriptor = Fs.openSync(place.at(segment), flags, 0o666)
    } catch (error) {
      if (codeOf(error) === "EEXIST") return undefined
      throw error
    }
    let made: Target | undefined
    try {
      if (confined.holds(descriptor, place, segment)) {
        changeOwnerOfOpen(confined, descriptor)
        made = target({ descriptor, stats: Fs.fstatSync(descriptor) }, true)
      } else confined.withdraw(descriptor, place, segment)
      return made
    } catch (error) {
      unlinkQuietly(place.at(segment))
      throw error
    } finally {
      if (made === undefined) closeQuietly(descriptor)
    }
  })

const openTarget = (confined: Confined, path: FsPath, hardlinks: Hardlinks): Target | Fault =>
  retryChanged(() => {
    const opened = openFile(confined, path, O_WRONLY | O_APPEND, hardlinks)
    if (!isFault(opened)) return target(opened, false)
    return opened._tag === "NotFound" ? makeTarget(confined, path) : opened
  })

/** Undoes a failed append, unless another writer has appended since. */
const undoAppend = (confined: Confined, path: FsPath, { descriptor, isNew, stats, written }: Target): void => {
  try {
    if (Fs.fstatSync(descriptor).size !== stats.size + written) return
    if (!isNew) return Fs.ftruncateSync(descriptor, stats.size)
    void inParent(confined, path, (place, segment) => {
      const found = lstatEntry(place.at(segment))
      if (found !== undefined && isSameFile(found, stats)) Fs.unlinkSync(place.at(segment))
    })
  } catch {
    // Ignore this failure: the caller already reports the original failure.
  }
}

const statOf = (path: FsPath, { descriptor, stats, written }: Target): FileStat => {
  try {
    return toStat(path, Fs.fstatSync(descriptor))
  } catch {
    return { ...toStat(path, stats), sizeBytes: stats.size + written }
  }
}

const appendTo = (
  confined: Confined,
  path: FsPath,
  hardlinks: Hardlinks,
  durability: Durability,
  writeTo: (target: Target) => Effect.Effect<void, Fault>
): Effect.Effect<FileStat, Fault> =>
  Effect.acquireUseRelease(
    attempt(() => openTarget(confined, path, hardlinks)),
    (target) =>
      Effect.andThen(
        durability === "none" ? writeTo(target) : Effect.andThen(writeTo(target), flush(target.descriptor)),
        Effect.sync(() => {
          target.isComplete = true
          return statOf(path, target)
        })
      ),
    (target) =>
      Effect.sync(() => {
        if (!target.isComplete) undoAppend(confined, path, target)
        closeQuietly(target.descriptor)
      })
  )

const appendFrom = (descriptor: number, target: Target): Effect.Effect<void, Fault> =>
  Effect.flatMap(
    attempt(() => Fs.fstatSync(descriptor).size),
    (size) =>
      copyBlocks(
        size,
        maxAppendBlockBytes,
        (block, offset) => read(descriptor, block, offset),
        (bytes) => write(target.descriptor, bytes, target, maxBytesPerCall)
      )
  )

const appendStream = <E, R>(
  confined: Confined,
  path: FsPath,
  content: Stream.Stream<Uint8Array, E, R>,
  hardlinks: Hardlinks,
  durability: Durability,
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | E, R> =>
  withStaged(confined, path, "append", (staged) => {
    const filled = writeContent(content, (bytes) => write(staged.descriptor, bytes))
    const published = Effect.catch(
      attempt(() => publish(confined, staged, path, "append")),
      (fault) =>
        fault._tag === "AlreadyExists"
          ? appendTo(confined, path, hardlinks, durability, (target) => appendFrom(staged.descriptor, target))
          : Effect.fail(fault)
    )
    return Effect.andThen(
      durability === "none" ? filled : Effect.andThen(filled, flush(staged.descriptor)),
      runCommit(commit, published)
    )
  })

export const append = <E, R>(
  confined: Confined,
  path: FsPath,
  content: Content<E, R>,
  hardlinks: Hardlinks,
  durability: Durability,
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | E, R> =>
  Effect.tap(
    isBytes(content)
      ? runCommit(
          commit,
          appendTo(confined, path, hardlinks, durability, (target) =>
            write(target.descriptor, content, target, maxBytesPerCall)
          )
        )
      : appendStream(confined, path, content, hardlinks, durability, commit),
    () => flushName(confined, path, durability)
  )

// Creates many entries with few calls each. The caller creates the entries in a hidden directory, so a file is written under
// its own name.

/** The time after which the creation of many entries lets other fibers run. */
const sliceMillis = 5
/** The maximum size of a file that is written synchronously together with others. */
const maxTogetherBytes = 1024 * 1024

const fillNew = (confined: Confined, descriptor: number, bytes: Uint8Array, mode: number | undefined): Fs.Stats | undefined => {
  changeOwnerOfOpen(confined, descriptor)
  for (let at = 0; at < bytes.length;) {
    const written = Fs.writeSync(descriptor, bytes, at, bytes.length - at, null)
    if (written === 0) return undefined
    at += written
  }
  const stats = Fs.fstatSync(descriptor)
  // The umask may have cleared some of the bits.
  if (mode !== undefined && (stats.mode & 0o777) !== mode) Fs.fchmodSync(descriptor, mode)
  return stats
}

const closeNew = (descriptor: number, at: HostPath, stats: Fs.Stats): void => {
  try {
    Fs.closeSync(descriptor)
  } catch (error) {
    // Some network disks report only here that the content was lost.
    const found = lstatEntry(at)
    if (found !== undefined && isSameFile(found, stats)) Fs.unlinkSync(at)
    throw error
  }
}

const makeFile = (confined: Confined, path: FsPath, bytes: Uint8Array, mode: number | undefined): boolean | Fault =>
  inParent(confined, path, (place, segment): boolean => {
    const at = place.at(segment)
    const descriptor = Fs.openSync(at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY, mode ?? 0o666)
    let stats: Fs.Stats | undefined
    try {
      if (confined.holds(descriptor, place, segment)) stats = fillNew(confined, descriptor, bytes, mode)
    } finally {
      if (stats === undefined) abandon(confined, { descriptor, place, segment })
    }
    if (stats !== undefined) closeNew(descriptor, at, stats)
    return stats !== undefined
  })

/** Sets the mode of a new directory. Returns false if another process has replaced it with another kind of entry. */
const setModeOfNew = (confined: Confined, place: HostDirectory, segment: string, mode: number): boolean => {
  const set = confined.descriptorPath === undefined ? setByName : setByAlias
  const outcome = withPlace(place.openChild(segment), ({ directory, stats }) => set(directory, stats, { mode }))
  return !isFault(outcome)
}

const makeWithMode = (confined: Confined, path: FsPath, mode: number | undefined): boolean | Fault => {
  const fault = makeDirectory(confined, path)
  if (fault !== undefined || mode === undefined) return fault ?? true
  return inParent(confined, path, (place, segment) => {
    let isMade = false
    try {
      isMade = setModeOfNew(confined, place, segment, mode)
    } finally {
      if (!isMade) Fs.rmdirSync(place.at(segment))
    }
    return isMade
  })
}

const makeEntry = (confined: Confined, { bytes, mode, path }: NewEntry): boolean => {
  try {
    if (bytes === undefined) return makeWithMode(confined, path, mode) === true
    return path !== root && bytes.length <= maxTogetherBytes && makeFile(confined, path, bytes, mode) === true
  } catch {
    return false
  }
}

/** Creates entries, and returns for each entry whether it was created. Replaces nothing, and follows no link. */
export const makeMany = (confined: Confined, entries: ReadonlyArray<NewEntry>): Effect.Effect<ReadonlyArray<boolean>> =>
  Effect.suspend(() => {
    const made: Array<boolean> = []
    const next: Effect.Effect<ReadonlyArray<boolean>> = Effect.suspend(() => {
      const end = performance.now() + sliceMillis
      while (made.length < entries.length) {
        made.push(makeEntry(confined, entries[made.length]!))
        if (performance.now() >= end) return Effect.andThen(Effect.yieldNow, next)
      }
      return Effect.succeed(made)
    })
    return next
  })
