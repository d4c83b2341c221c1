/**
 * Appends to files in place, in a single system call, so that no other writer can interleave.
 *
 * A failure truncates the file to its previous size. A stream is staged first, and appended once it has ended
 * successfully.
 */
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import { Fs } from "../../runtime/node.ts"
import { isBytes } from "../../model/bytes.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Commit } from "../../port/Backend.ts"
import { runCommit, writeContent, publish, flushName, withStaged } from "./atomicReplace.ts"
import { attempt, isFault } from "./attempt.ts"
import { type Confined, changeOwnerOfOpen, isSameFile, lstatEntry, maxAttempts, directoriesKeepChanging } from "./confined.ts"
import { codeOf } from "../../model/systemError.ts"
import { closeQuietly, unlinkQuietly } from "../../runtime/host.ts"
import { allocate, type Durability, maxBytesPerCall, type Progress, read, flush, write } from "./hostBytes.ts"
import { type Hardlinks, inParent, openFile, type Opened, toStat } from "./hostFile.ts"

interface Target extends Opened, Progress {
  readonly isNew: boolean
  isComplete: boolean
}

const { O_APPEND, O_CREAT, O_EXCL, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = Fs.constants

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

const openTarget = (confined: Confined, path: FsPath, hardlinks: Hardlinks): Target | Fault => {
  for (let looks = 0; looks < maxAttempts; looks++) {
    const opened = openFile(confined, path, O_WRONLY | O_APPEND, hardlinks)
    if (!isFault(opened)) return target(opened, false)
    if (opened._tag !== "NotFound") return opened
    const made = makeTarget(confined, path)
    if (made !== undefined) return made
  }
  return directoriesKeepChanging
}

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
    // Ignore this failure: the caller already reports the original one.
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

/** Bytes appended by one system call, which are held in memory. */
const blockSize = 256 * 1024 * 1024

const appendFrom = (descriptor: number, target: Target): Effect.Effect<void, Fault> =>
  Effect.flatMap(
    attempt(() => Fs.fstatSync(descriptor).size),
    (size) => {
      const block = allocate(Math.min(size, blockSize))
      const from = (offset: number): Effect.Effect<void, Fault> =>
        Effect.flatMap(read(descriptor, block, offset), (length) =>
          length === 0
            ? Effect.void
            : Effect.flatMap(write(target.descriptor, block.subarray(0, length), target, maxBytesPerCall), () =>
                from(offset + length)
              )
        )
      return from(0)
    }
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
    const filled = writeContent(staged, content)
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
  content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
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
