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
import { type Confined, giveAway, isSameFile, look, maxLooks, type Place, unstable } from "./confined.ts"
import { codeOf } from "../../model/systemError.ts"
import { fromErrno } from "./errno.ts"
import { absent, inside, kindOf } from "./hostFile.ts"
import { childrenNow } from "./hostEntries.ts"
import type { HostPath } from "./hostNames.ts"
import { sweep } from "./leftovers.ts"

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
    : inside(confined, path, (place, segment) => {
        const at = place.at(segment)
        Fs.mkdirSync(at)
        return giveAway(confined, at, Fs.rmdirSync)
      })

const removeAt = (at: HostPath): Fault | "changed" | undefined => {
  const found = look(at)
  if (found === undefined) return notFound
  try {
    if (found.isDirectory()) Fs.rmdirSync(at)
    else Fs.unlinkSync(at)
    return undefined
  } catch (error) {
    const now = look(at)
    return now !== undefined && now.isDirectory() !== found.isDirectory() ? "changed" : fromErrno(error, now && kindOf(now))
  }
}

export const remove = (confined: Confined, path: FsPath): Fault | undefined => {
  if (path === root) return isRoot
  const fault = inside(confined, path, (place, segment) => {
    for (let looks = 0; looks < maxLooks; looks++) {
      const removed = removeAt(place.at(segment))
      if (removed !== "changed") return removed
    }
    return unstable
  })
  return fault && absent(fault)
}

const misfit = (source: Fs.Stats, target: Fs.Stats): Fault | undefined =>
  source.isDirectory() === target.isDirectory() ? undefined : source.isDirectory() ? notADirectory : notAFile

const clear = (place: Place, segment: string): boolean => {
  const directory = place.enter(segment)
  if (isFault(directory)) return false
  try {
    return childrenNow(directory).every(({ name }) => sweep(directory, name))
  } finally {
    directory.release()
  }
}

const occupied = new Set(["ENOTEMPTY", "EEXIST"])

interface End {
  readonly path: FsPath
  readonly place: Place
  readonly segment: string
  readonly stats: Fs.Stats | undefined
}

const endOf = (path: FsPath, place: Place, segment: string): End => ({ path, place, segment, stats: look(place.at(segment)) })

const move = (from: End, to: End): undefined => void Fs.renameSync(from.place.at(from.segment), to.place.at(to.segment))

const replaceDirectory = (from: End, to: End): Fault | undefined => {
  try {
    return move(from, to)
  } catch (error) {
    if (!occupied.has(codeOf(error) ?? "")) throw error
    return clear(to.place, to.segment) ? move(from, to) : notEmpty
  }
}

const replaceAny = (from: End, source: Fs.Stats, to: End, target: Fs.Stats): Fault | undefined => {
  const fault = misfit(source, target)
  if (fault !== undefined) return fault
  if (source.isDirectory()) return replaceDirectory(from, to)
  if (!isSameFile(source, target)) return move(from, to)
  // A system rename between two names of one file does nothing and reports success.
  return void Fs.unlinkSync(from.place.at(from.segment))
}

const renameTo = (from: End, source: Fs.Stats, to: End, isRespelling: boolean, replace: boolean): Fault | undefined => {
  if (isRespelling) return from.path !== to.path ? move(from, to) : replace ? undefined : alreadyExists
  if (to.stats === undefined) return move(from, to)
  return replace ? replaceAny(from, source, to, to.stats) : alreadyExists
}

export const rename = (confined: Confined, from: FsPath, to: FsPath, replace: boolean): Fault | undefined => {
  if (from === root || to === root) return isRoot
  const key = (path: FsPath): FsPath => (confined.caseSensitive ? path : fold(path))
  const holder = confined.directory(parent(from))
  if (isFault(holder)) return absent(holder)
  try {
    const source = endOf(from, holder, name(from))
    const { stats } = source
    if (stats === undefined) return notFound
    const isRespelling = key(from) === key(to)
    if (stats.isDirectory() && !isRespelling && isWithin(key(from), key(to))) return intoItself
    return inside(confined, to, (place, segment) => renameTo(source, stats, endOf(to, place, segment), isRespelling, replace))
  } finally {
    holder.release()
  }
}
