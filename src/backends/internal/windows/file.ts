/**
 * Inspects, opens and lists on a Windows disk.
 *
 * A file is opened only after it was inspected, and inspected again once it is open. A listing is repeated if its
 * directory changes meanwhile.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs } from "../../../runtime/node.ts"
import type { FileStat, Kind } from "../../../model/Entry.ts"
import type { Fault } from "../../../model/FsError.ts"
import { type FsPath, parent, root } from "../../../model/FsPath.ts"
import type { Child, Handle, Whole } from "../../../port/Backend.ts"
import { isFault } from "../attempt.ts"
import { maxAttempts, notFound, directoriesKeepChanging } from "../confined.ts"
import { codeOf } from "../../../model/systemError.ts"
import { allocate, maxSyncBytes } from "../hostBytes.ts"
import { notFoundBelowFile, statOf } from "../hostFile.ts"
import { attempt, awaitCall, retryTransient } from "./attempt.ts"
import { closeQuietly, readSync } from "./bytes.ts"
import type { WindowsEntry, WindowsStats } from "./disk.ts"
import type { Handles, Opened } from "./handles.ts"
import { childOf } from "./keys.ts"
import { removeLeftover } from "./leftovers.ts"
import { type WindowsDirectory, inspectPath, retryChanged, type Walker } from "./walk.ts"

const notAFile: Fault = { _tag: "NotAFile" }

type Kinds = Pick<WindowsStats, "isFile" | "isDirectory" | "isSymbolicLink">

export const kindOf = (stats: Kinds): Kind =>
  stats.isSymbolicLink() ? "symlink" : stats.isDirectory() ? "directory" : stats.isFile() ? "file" : "other"

/** Creates a stat without permission bits: Windows keeps only one, and Node has no call for access rights. */
export const toStat = (path: FsPath, stats: WindowsStats): FileStat =>
  statOf(path, kindOf(stats), Number(stats.size), Number(stats.birthtimeMs), Number(stats.mtimeMs))

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

export const open = (walker: Walker, handles: Handles, path: FsPath): Effect.Effect<Handle, Fault, Scope.Scope> =>
  handles.open(
    path,
    (stats) => toStat(path, stats),
    () => openToRead(walker, path)
  )

export const readSmall = (walker: Walker, path: FsPath, maxBytes: number): Effect.Effect<Whole | undefined, Fault> =>
  attempt(() => {
    const opened = openToRead(walker, path)
    if (isFault(opened)) return opened
    const { descriptor, stats } = opened
    try {
      if (stats.size > BigInt(Math.min(maxBytes, maxSyncBytes))) return undefined
      const bytes = allocate(Number(stats.size))
      const length = readSync(walker.disk, descriptor, bytes, 0)
      const read = length === bytes.length ? bytes : bytes.slice(0, length)
      return { stat: { ...toStat(path, stats), sizeBytes: length }, bytes: read }
    } finally {
      closeQuietly(walker.disk, descriptor)
    }
  })

/** Inspects links, because a listing reports every file that is stored elsewhere or in another form as a link. */
const kindOfEntry = (walker: Walker, place: WindowsDirectory, entry: WindowsEntry): Kind => {
  if (!entry.isSymbolicLink()) return kindOf(entry)
  const stats = walker.look(place.at(entry.name))
  return stats === undefined ? "symlink" : kindOf(stats)
}

/** Opens a directory. Fails with NotADirectory only for the entry itself, and with NotFound below a non-directory. */
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
