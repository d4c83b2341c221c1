/**
 * Changes of names on a Windows disk. What they act on is looked at directly before, with nothing else of this program in between, since
 * Windows' own rename tells too little apart: it replaces a file with a directory on some systems, and never one directory with
 * another, however empty.
 */
import * as Effect from "effect/Effect"
import type { Fault } from "../../../model/FsError.ts"
import { fold, type FsPath, isWithin, root } from "../../../model/FsPath.ts"
import * as TemporaryNames from "../../../runtime/temporaryNames.ts"
import { isFault } from "../attempt.ts"
import { notADirectory, notFound } from "../confined.ts"
import { codeOf } from "../../../model/systemError.ts"
import { absent } from "../hostFile.ts"
import { atOnce, attempt } from "./attempt.ts"
import { unlinkQuietly } from "./bytes.ts"
import { fromWindows, isDenied } from "./errors.ts"
import { childrenNow, kindOf } from "./file.ts"
import type { Handles } from "./handles.ts"
import type { WindowsStats } from "./disk.ts"
import { sweep } from "./leftovers.ts"
import { isSameFile, isSameName, type Spot, spotOf, stably, type Walker } from "./walk.ts"
import { isReadOnly, yielding } from "./write.ts"

const isRoot: Fault = { _tag: "AccessDenied", why: "root" }
const permission: Fault = { _tag: "AccessDenied", why: "permission" }
const notAFile: Fault = { _tag: "NotAFile" }
const alreadyExists: Fault = { _tag: "AlreadyExists" }
const notEmpty: Fault = { _tag: "DirectoryNotEmpty" }
const intoItself: Fault = { _tag: "InvalidArgument", argument: "to", detail: "a directory cannot be moved into itself" }

export const makeDirectory = (walker: Walker, path: FsPath): Effect.Effect<void, Fault> =>
  attempt(() => {
    if (path === root) return alreadyExists
    const spot = spotOf(walker, path, true)
    if (isFault(spot)) return spot
    return spot.stats === undefined ? void walker.disk.mkdirSync(spot.at) : alreadyExists
  })

/** Not `undefined`, which here says that something has changed meanwhile. */
const done = Symbol()

const removeAt = ({ disk, look }: Walker, { at, stats: found }: Spot): typeof done | Fault | undefined => {
  if (found === undefined) return notFound
  try {
    if (found.isDirectory()) disk.rmdirSync(at)
    else disk.unlinkSync(at)
    return done
  } catch (error) {
    const now = look(at)
    return now !== undefined && now.isDirectory() !== found.isDirectory() ? undefined : fromWindows(error, now && kindOf(now))
  }
}

const removeNow = (walker: Walker, path: FsPath): typeof done | Fault =>
  stably(() => {
    const spot = spotOf(walker, path)
    return isFault(spot) ? spot : removeAt(walker, spot)
  })

/**
 * An open file keeps its name until it is closed, on some systems, and a new one of that name then goes with it. So it gets a hidden
 * name first, in the root, where it keeps no directory from being removed.
 */
const removeOpen = (walker: Walker, { at }: Spot): undefined | Fault => {
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
  // A deleted file may keep its name until it is closed, and stays hidden so long.
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
  const now = Effect.asVoid(atOnce(() => removeNow(walker, path)))
  const removed = Effect.flatMap(
    atOnce(() => spotOf(walker, path)),
    (spot) => {
      const file = spot.stats
      if (file === undefined || !handles.has({ file })) return now
      return Effect.catch(
        atOnce(() => removeOpen(walker, spot)),
        () => Effect.andThen(handles.release({ file }), now)
      )
    }
  )
  return Effect.mapError(removed, absent)
}

/** Removes the leftovers of killed writers, and returns whether the directory is empty then. */
const clear = (walker: Walker, path: FsPath): boolean => {
  const place = walker.directory(path)
  if (isFault(place)) return false
  return childrenNow(walker, place).every(({ kind, name }) => kind === "file" && sweep(walker, place.at(name), name))
}

const occupied = new Set(["ENOTEMPTY", "EEXIST"])

const removeEmpty = (walker: Walker, path: FsPath, at: string): Fault | undefined => {
  try {
    walker.disk.rmdirSync(at)
  } catch (error) {
    if (!occupied.has(codeOf(error) ?? "")) throw error
    if (!clear(walker, path)) return notEmpty
    walker.disk.rmdirSync(at)
  }
  return undefined
}

/** Where room has been made; takes that back by `restore` where the move fails after all, which is then what is reported. */
const inPlaceOf = (walker: Walker, from: string, to: string, restore: () => void): undefined => {
  try {
    walker.disk.renameSync(from, to)
  } catch (error) {
    try {
      restore()
    } catch {
      // What was there may still be going, since somebody has it open; then neither can have the name yet.
    }
    throw error
  }
}

/** An open file says that it is busy when it is to be moved. So what is only denied is for want of permission, but of a directory. */
const toFreeName = ({ disk }: Walker, from: Spot, source: WindowsStats, to: string): Fault | undefined => {
  try {
    disk.renameSync(from.at, to)
  } catch (error) {
    if (source.isDirectory() || !isDenied(error)) throw error
    return permission
  }
  return undefined
}

const replaceDirectory = (walker: Walker, from: Spot, path: FsPath, to: string): Fault | undefined =>
  removeEmpty(walker, path, to) ?? inPlaceOf(walker, from.at, to, () => walker.disk.mkdirSync(to))

/** A link to a directory is itself a directory to Windows' rename, which then replaces nothing. */
const replaceLink = (walker: Walker, from: Spot, target: Spot, to: string): undefined => {
  const { disk } = walker
  return TemporaryNames.during((name) => {
    const aside = target.place.at(name)
    disk.renameSync(to, aside)
    inPlaceOf(walker, from.at, to, () => disk.renameSync(aside, to))
    unlinkQuietly(disk, aside)
    return undefined
  })
}

/** Between two names of one file some systems do nothing, and say that it was done. */
const replaceSame = ({ disk, look }: Walker, from: Spot, to: string): undefined => {
  disk.renameSync(from.at, to)
  if (look(from.at) !== undefined) disk.unlinkSync(from.at)
}

/** What cannot take the place of what. */
const misfit = (source: WindowsStats, target: WindowsStats): Fault | undefined =>
  source.isDirectory() === target.isDirectory() ? undefined : source.isDirectory() ? notADirectory : notAFile

const replaceAny = (walker: Walker, from: Spot, source: WindowsStats, path: FsPath, to: Spot): Fault | undefined => {
  const target = to.stats!
  const fault = misfit(source, target)
  if (fault !== undefined) return fault
  // What is replaced keeps its name as it is spelt.
  const at = to.place.at(walker.nameOf(to.place, to.name))
  if (target.isDirectory()) return replaceDirectory(walker, from, path, at)
  if (target.isSymbolicLink()) return replaceLink(walker, from, to, at)
  if (isReadOnly(target)) return permission
  return isSameFile(source, target) ? replaceSame(walker, from, at) : void walker.disk.renameSync(from.at, at)
}

/** In two steps where the system takes another case of a name for the same name, and leaves it as it is. */
const respell = (walker: Walker, from: Spot, to: Spot, replace: boolean): Fault | undefined => {
  const { disk } = walker
  const name = walker.nameOf(from.place, from.name)
  if (name === to.name) return replace ? undefined : alreadyExists
  disk.renameSync(from.at, to.at)
  if (walker.nameOf(to.place, to.name) === to.name) return undefined
  return TemporaryNames.during((temporary) => {
    const between = to.place.at(temporary)
    disk.renameSync(from.at, between)
    return inPlaceOf(walker, between, to.at, () => disk.renameSync(between, from.place.at(name)))
  })
}

/** One entry by two spellings of its name. */
const isRespelling = (from: Spot, source: WindowsStats, to: Spot): boolean =>
  to.stats !== undefined &&
  isSameFile(source, to.stats) &&
  isSameFile(from.place.stats, to.place.stats) &&
  isSameName(from.name, to.name)

const renameNow = (walker: Walker, from: FsPath, to: FsPath, replace: boolean): Fault | undefined => {
  const source = spotOf(walker, from)
  if (isFault(source)) return absent(source)
  const { stats } = source
  if (stats === undefined) return notFound
  if (stats.isDirectory() && fold(from) !== fold(to) && isWithin(fold(from), fold(to))) return intoItself
  const target = spotOf(walker, to, stats.isDirectory())
  if (isFault(target)) return target
  if (isRespelling(source, stats, target)) return respell(walker, source, target, replace)
  if (target.stats === undefined) return toFreeName(walker, source, stats, target.at)
  return replace ? replaceAny(walker, source, stats, to, target) : alreadyExists
}

export const rename = (
  walker: Walker,
  handles: Handles,
  from: FsPath,
  to: FsPath,
  replace: boolean
): Effect.Effect<void, Fault> => {
  if (from === root || to === root) return Effect.fail(isRoot)
  return yielding(
    handles,
    () => {
      const [source, target] = [spotOf(walker, from), spotOf(walker, to)]
      if (!isFault(source) && source.stats?.isDirectory() === true) return { directory: from }
      return isFault(target) || target.stats === undefined ? undefined : { file: target.stats }
    },
    atOnce(() => {
      const fault = renameNow(walker, from, to, replace)
      if (fault === undefined) handles.moved(from, to)
      return fault
    })
  ) as Effect.Effect<void, Fault>
}
