/**
 * Creates, removes and renames entries with single system calls, which are atomic.
 *
 * The target is inspected directly before, with no other code of this program in between. Another process could still
 * create an entry within the remaining microseconds, which Node has no call to prevent.
 */
import { Fs } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath, isWithin, name, parent, root } from "../../model/FsPath.ts"
import { isFault } from "./attempt.ts"
import {
  type Confined,
  changeOwner,
  isSameFile,
  lstatEntry,
  maxAttempts,
  type HostDirectory,
  directoriesKeepChanging
} from "./confined.ts"
import { codeOf } from "../../model/systemError.ts"
import { fromErrno } from "./errno.ts"
import { notFoundBelowFile, inParent, kindOf } from "./hostFile.ts"
import { listSync } from "./hostEntries.ts"
import type { HostPath } from "./hostNames.ts"
import { removeLeftover } from "./leftovers.ts"

const isRoot: Fault = { _tag: "AccessDenied", why: "root" }
const notFound: Fault = { _tag: "NotFound" }
const notAFile: Fault = { _tag: "NotAFile" }
const notADirectory: Fault = { _tag: "NotADirectory" }
const alreadyExists: Fault = { _tag: "AlreadyExists" }
const notEmpty: Fault = { _tag: "DirectoryNotEmpty" }
const intoItself: Fault = { _tag: "InvalidArgument", argument: "to", detail: "a directory cannot be moved into itself" }

export const makeDirectory = (confined: Confined, path: FsPath): Fault | undefined =>
  path === root
    ? alreadyExists
    : inParent(confined, path, (place, segment) => {
        const at = place.at(segment)
        Fs.mkdirSync(at)
        return changeOwner(confined, at, Fs.rmdirSync)
      })

const removeAt = (at: HostPath): Fault | "changed" | undefined => {
  const found = lstatEntry(at)
  if (found === undefined) return notFound
  try {
    if (found.isDirectory()) Fs.rmdirSync(at)
    else Fs.unlinkSync(at)
    return undefined
  } catch (error) {
    const now = lstatEntry(at)
    return now !== undefined && now.isDirectory() !== found.isDirectory() ? "changed" : fromErrno(error, now && kindOf(now))
  }
}

export const remove = (confined: Confined, path: FsPath): Fault | undefined => {
  if (path === root) return isRoot
  const fault = inParent(confined, path, (place, segment) => {
    for (let looks = 0; looks < maxAttempts; looks++) {
      const removed = removeAt(place.at(segment))
      if (removed !== "changed") return removed
    }
    return directoriesKeepChanging
  })
  return fault && notFoundBelowFile(fault)
}

const kindFault = (source: Fs.Stats, target: Fs.Stats): Fault | undefined =>
  source.isDirectory() === target.isDirectory() ? undefined : source.isDirectory() ? notADirectory : notAFile

const removeLeftoversIn = (place: HostDirectory, segment: string): boolean => {
  const directory = place.openChild(segment)
  if (isFault(directory)) return false
  try {
    return listSync(directory).every(({ name }) => removeLeftover(directory, name))
  } finally {
    directory.release()
  }
}

const notEmptyCodes = new Set(["ENOTEMPTY", "EEXIST"])

interface RenameEnd {
  readonly path: FsPath
  readonly place: HostDirectory
  readonly segment: string
  readonly stats: Fs.Stats | undefined
}

const endOf = (path: FsPath, place: HostDirectory, segment: string): RenameEnd => ({
  path,
  place,
  segment,
  stats: lstatEntry(place.at(segment))
})

const renameEnds = (from: RenameEnd, to: RenameEnd): undefined =>
  void Fs.renameSync(from.place.at(from.segment), to.place.at(to.segment))

const replaceDirectory = (from: RenameEnd, to: RenameEnd): Fault | undefined => {
  try {
    return renameEnds(from, to)
  } catch (error) {
    if (!notEmptyCodes.has(codeOf(error) ?? "")) throw error
    return removeLeftoversIn(to.place, to.segment) ? renameEnds(from, to) : notEmpty
  }
}

const replaceEntry = (from: RenameEnd, source: Fs.Stats, to: RenameEnd, target: Fs.Stats): Fault | undefined => {
  const fault = kindFault(source, target)
  if (fault !== undefined) return fault
  if (source.isDirectory()) return replaceDirectory(from, to)
  if (!isSameFile(source, target)) return renameEnds(from, to)
  // A system rename between two names of one file does nothing and reports success.
  return void Fs.unlinkSync(from.place.at(from.segment))
}

const renameTo = (
  from: RenameEnd,
  source: Fs.Stats,
  to: RenameEnd,
  isRespelling: boolean,
  replace: boolean
): Fault | undefined => {
  if (isRespelling) return from.path !== to.path ? renameEnds(from, to) : replace ? undefined : alreadyExists
  if (to.stats === undefined) return renameEnds(from, to)
  return replace ? replaceEntry(from, source, to, to.stats) : alreadyExists
}

export const rename = (confined: Confined, from: FsPath, to: FsPath, replace: boolean): Fault | undefined => {
  if (from === root || to === root) return isRoot
  const key = (path: FsPath): FsPath => (confined.caseSensitive ? path : fold(path))
  const parentDirectory = confined.directory(parent(from))
  if (isFault(parentDirectory)) return notFoundBelowFile(parentDirectory)
  try {
    const source = endOf(from, parentDirectory, name(from))
    const { stats } = source
    if (stats === undefined) return notFound
    const isRespelling = key(from) === key(to)
    if (stats.isDirectory() && !isRespelling && isWithin(key(from), key(to))) return intoItself
    return inParent(confined, to, (place, segment) => renameTo(source, stats, endOf(to, place, segment), isRespelling, replace))
  } finally {
    parentDirectory.release()
  }
}
