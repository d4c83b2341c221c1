/**
 * Creates, removes and renames entries on a Windows disk.
 *
 * Entries are inspected directly before the change, so that no other code of this program can change them in between.
 * The inspection is needed because versions of Windows rename differently. Some replace a file by a directory, and none
 * replaces a directory, even an empty one.
 */
import { intoItself, isRoot, kindFault, notFoundBelowFile, permission } from "../faults.ts"
import * as Effect from "effect/Effect"
import { alreadyExists, directoryNotEmpty, is as isFault, notFound } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath, isWithin, root } from "../../model/FsPath.ts"
import { codeOf } from "../../model/realms.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { unlinkQuietly, type WindowsStats } from "./disk.ts"
import { attempt, attemptOnce, fromWindows, isDenied } from "./errors.ts"
import { type Handles, kindOf, listSync } from "./handles.ts"
import { inspectPath, isSameFile, isSameName, type PathEntry, removeLeftover, type Walker } from "./walk.ts"
import { retryChanged } from "../posix/place.ts"
import { isReadOnly, withReadersReleased } from "./write.ts"

export const makeDirectory = (walker: Walker, path: FsPath): Effect.Effect<void, Fault> =>
  attempt(() => {
    if (path === root) return alreadyExists
    const spot = inspectPath(walker, path, true)
    if (isFault(spot)) return spot
    return spot.stats === undefined ? void walker.disk.mkdirSync(spot.at) : alreadyExists
  })

/**
 * The result of a successful removal. The result is not `undefined`, because `undefined` means that an entry has changed since
 * it was inspected.
 */
const removedMark = Symbol()

const removeAt = ({ disk, look }: Walker, { at, stats: found }: PathEntry): typeof removedMark | Fault | undefined => {
  if (found === undefined) return notFound
  try {
    if (found.isDirectory()) disk.rmdirSync(at)
    else disk.unlinkSync(at)
    return removedMark
  } catch (error) {
    const now = look(at)
    return now !== undefined && now.isDirectory() !== found.isDirectory() ? undefined : fromWindows(error, now && kindOf(now))
  }
}

const removeNow = (walker: Walker, path: FsPath): typeof removedMark | Fault =>
  retryChanged(() => {
    const spot = inspectPath(walker, path)
    return isFault(spot) ? spot : removeAt(walker, spot)
  })

/**
 * Removes an open file.
 *
 * On some systems, a removed file keeps its name until it is closed, and a new file with the same name is then removed
 * too. So the file is first renamed to a hidden name in the root, where it does not prevent the removal of its old
 * directory.
 */
const removeOpen = (walker: Walker, { at }: PathEntry): undefined | Fault => {
  const { disk } = walker
  const top = walker.directory(root)
  if (isFault(top)) return top
  const name = TemporaryNames.make()
  const hidden = top.at(name)
  try {
    disk.renameSync(at, hidden)
    try {
      disk.unlinkSync(hidden)
    } catch (error) {
      disk.renameSync(hidden, at)
      throw error
    }
  } catch (error) {
    TemporaryNames.forget(name)
    throw error
  }
  // A deleted file may keep its hidden name until it is closed.
  if (isFree(walker, hidden)) TemporaryNames.forget(name)
  return undefined
}

const isFree = ({ look }: Walker, at: string): boolean => {
  try {
    return look(at) === undefined
  } catch {
    return false
  }
}

export const remove = (walker: Walker, handles: Handles, path: FsPath): Effect.Effect<void, Fault> => {
  if (path === root) return Effect.fail(isRoot)
  const now = Effect.asVoid(attemptOnce(() => removeNow(walker, path)))
  const removed = Effect.flatMap(
    attemptOnce(() => inspectPath(walker, path)),
    (spot) => {
      const file = spot.stats
      if (file === undefined || !handles.has({ file })) return now
      return Effect.catch(
        attemptOnce(() => removeOpen(walker, spot)),
        () => Effect.andThen(handles.release({ file }), now)
      )
    }
  )
  return Effect.mapError(removed, notFoundBelowFile)
}

const removeLeftoversIn = (walker: Walker, path: FsPath): boolean => {
  const place = walker.directory(path)
  if (isFault(place)) return false
  return listSync(walker, place).every(({ kind, name }) => kind === "file" && removeLeftover(walker, place.at(name), name))
}

const notEmptyCodes = new Set(["ENOTEMPTY", "EEXIST"])

const removeEmpty = (walker: Walker, path: FsPath, at: string): Fault | undefined => {
  try {
    walker.disk.rmdirSync(at)
  } catch (error) {
    if (!notEmptyCodes.has(codeOf(error) ?? "")) throw error
    if (!removeLeftoversIn(walker, path)) return directoryNotEmpty
    walker.disk.rmdirSync(at)
  }
  return undefined
}

/**
 * Renames to a name that was just freed. If the rename fails, undoes the preparation with `restore` and throws the
 * error of the rename.
 */
const renameOrRestore = (walker: Walker, from: string, to: string, restore: () => void): undefined => {
  try {
    walker.disk.renameSync(from, to)
  } catch (error) {
    try {
      restore()
    } catch {
      // Another program may still have the removed entry open. Until it closes the entry, no new entry can have the
      // name.
    }
    throw error
  }
}

/**
 * Renames to a free name. Windows reports an open file as busy. So for a file, "access denied" means a lack of
 * permission; for a directory, it may also mean an open file inside.
 */
const renameToFree = ({ disk }: Walker, from: PathEntry, source: WindowsStats, to: string): Fault | undefined => {
  try {
    disk.renameSync(from.at, to)
  } catch (error) {
    if (source.isDirectory() || !isDenied(error)) throw error
    return permission
  }
  return undefined
}

const replaceDirectory = (walker: Walker, from: PathEntry, path: FsPath, to: string): Fault | undefined =>
  removeEmpty(walker, path, to) ?? renameOrRestore(walker, from.at, to, () => walker.disk.mkdirSync(to))

/** Replaces a link. A plain rename is not sufficient, because Windows treats a link to a directory as a directory. */
const replaceLink = (walker: Walker, from: PathEntry, target: PathEntry, to: string): undefined => {
  const { disk } = walker
  return TemporaryNames.withNameSync((name) => {
    const aside = target.place.at(name)
    disk.renameSync(to, aside)
    renameOrRestore(walker, from.at, to, () => disk.renameSync(aside, to))
    unlinkQuietly(disk, aside)
    return undefined
  })
}

/** Renames a file over another name of the same file. Some systems report success for such a rename, but do nothing. */
const replaceHardLink = ({ disk, look }: Walker, from: PathEntry, to: string): undefined => {
  disk.renameSync(from.at, to)
  if (look(from.at) !== undefined) disk.unlinkSync(from.at)
}

const replaceEntry = (
  walker: Walker,
  from: PathEntry,
  source: WindowsStats,
  path: FsPath,
  to: PathEntry
): Fault | undefined => {
  const target = to.stats!
  const fault = kindFault(source.isDirectory(), target.isDirectory())
  if (fault !== undefined) return fault
  // The new entry keeps the case of the replaced name.
  const at = to.place.at(walker.nameOf(to.place, to.name))
  if (target.isDirectory()) return replaceDirectory(walker, from, path, at)
  if (target.isSymbolicLink()) return replaceLink(walker, from, to, at)
  if (isReadOnly(target)) return permission
  return isSameFile(source, target) ? replaceHardLink(walker, from, at) : void walker.disk.renameSync(from.at, at)
}

/** Changes the case of a name. If the system ignores a rename to another spelling, renames in two steps. */
const changeCase = (walker: Walker, from: PathEntry, to: PathEntry, replace: boolean): Fault | undefined => {
  const { disk } = walker
  const name = walker.nameOf(from.place, from.name)
  if (name === to.name) return replace ? undefined : alreadyExists
  disk.renameSync(from.at, to.at)
  if (walker.nameOf(to.place, to.name) === to.name) return undefined
  return TemporaryNames.withNameSync((temporary) => {
    const between = to.place.at(temporary)
    disk.renameSync(from.at, between)
    return renameOrRestore(walker, between, to.at, () => disk.renameSync(between, from.place.at(name)))
  })
}

const isSameEntry = (from: PathEntry, source: WindowsStats, to: PathEntry): boolean =>
  to.stats !== undefined &&
  isSameFile(source, to.stats) &&
  isSameFile(from.place.stats, to.place.stats) &&
  isSameName(from.name, to.name)

const renameNow = (walker: Walker, from: FsPath, to: FsPath, replace: boolean): Fault | undefined => {
  const source = inspectPath(walker, from)
  if (isFault(source)) return notFoundBelowFile(source)
  const { stats } = source
  if (stats === undefined) return notFound
  if (stats.isDirectory() && fold(from) !== fold(to) && isWithin(fold(from), fold(to))) return intoItself
  const target = inspectPath(walker, to, stats.isDirectory())
  if (isFault(target)) return target
  if (isSameEntry(source, stats, target)) return changeCase(walker, source, target, replace)
  if (target.stats === undefined) return renameToFree(walker, source, stats, target.at)
  return replace ? replaceEntry(walker, source, stats, to, target) : alreadyExists
}

export const rename = (
  walker: Walker,
  handles: Handles,
  from: FsPath,
  to: FsPath,
  replace: boolean
): Effect.Effect<void, Fault> => {
  if (from === root || to === root) return Effect.fail(isRoot)
  return withReadersReleased(
    handles,
    () => {
      const [source, target] = [inspectPath(walker, from), inspectPath(walker, to)]
      if (!isFault(source) && source.stats?.isDirectory() === true) return { directory: from }
      return isFault(target) || target.stats === undefined ? undefined : { file: target.stats }
    },
    attemptOnce(() => {
      const fault = renameNow(walker, from, to, replace)
      if (fault === undefined) handles.updatePaths(from, to)
      return fault
    })
  ) as Effect.Effect<void, Fault>
}
