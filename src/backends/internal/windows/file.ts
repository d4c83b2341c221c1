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
import { maxLooks, notFound, unstable } from "../confined.ts"
import { codeOf } from "../../../model/systemError.ts"
import { allocate, inlineBytes } from "../hostBytes.ts"
import { absent, statOf } from "../hostFile.ts"
import { attempt, awaited, patiently } from "./attempt.ts"
import { closeQuietly, readSync } from "./bytes.ts"
import type { WindowsEntry, WindowsStats } from "./disk.ts"
import type { Handles, Opened } from "./handles.ts"
import { childOf } from "./keys.ts"
import { sweep } from "./leftovers.ts"
import { type Place, spotOf, stably, type Walker } from "./walk.ts"

const notAFile: Fault = { _tag: "NotAFile" }

type Kinds = Pick<WindowsStats, "isFile" | "isDirectory" | "isSymbolicLink">

export const kindOf = (stats: Kinds): Kind =>
  stats.isSymbolicLink() ? "symlink" : stats.isDirectory() ? "directory" : stats.isFile() ? "file" : "other"

/** Creates a stat without permission bits: Windows keeps only one, and Node has no call for access rights. */
export const toStat = (path: FsPath, stats: WindowsStats): FileStat =>
  statOf(path, kindOf(stats), Number(stats.size), Number(stats.birthtimeMs), Number(stats.mtimeMs))

export const stat = (walker: Walker, path: FsPath): FileStat | undefined | Fault => {
  const found = path === root ? walker.directory(root) : spotOf(walker, path)
  if (!isFault(found)) return found.stats && toStat(path, found.stats)
  return absent(found)._tag === "NotFound" ? undefined : found
}

const changed = new Set(["EISDIR", "ENOENT", "ELOOP"])

export const openFile = (walker: Walker, path: FsPath, flags: number): Opened | Fault => {
  if (path === root) return notAFile
  const { disk } = walker
  return stably(() => {
    const spot = spotOf(walker, path)
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
  return isFault(opened) ? absent(opened) : opened
}

export const open = (walker: Walker, handles: Handles, path: FsPath): Effect.Effect<Handle, Fault, Scope.Scope> =>
  handles.open(
    path,
    (stats) => toStat(path, stats),
    () => openToRead(walker, path)
  )

export const whole = (walker: Walker, path: FsPath, maxBytes: number): Effect.Effect<Whole | undefined, Fault> =>
  attempt(() => {
    const opened = openToRead(walker, path)
    if (isFault(opened)) return opened
    const { descriptor, stats } = opened
    try {
      if (stats.size > BigInt(Math.min(maxBytes, inlineBytes))) return undefined
      const bytes = allocate(Number(stats.size))
      const length = readSync(walker.disk, descriptor, bytes, 0)
      const read = length === bytes.length ? bytes : bytes.slice(0, length)
      return { stat: { ...toStat(path, stats), sizeBytes: length }, bytes: read }
    } finally {
      closeQuietly(walker.disk, descriptor)
    }
  })

/** Inspects links, because a listing reports every file that is stored elsewhere or in another form as a link. */
const kindIn = (walker: Walker, place: Place, entry: WindowsEntry): Kind => {
  if (!entry.isSymbolicLink()) return kindOf(entry)
  const stats = walker.look(place.at(entry.name))
  return stats === undefined ? "symlink" : kindOf(stats)
}

/** Opens a directory. Fails with NotADirectory only for the entry itself, and with NotFound below a non-directory. */
const openDirectory = (walker: Walker, path: FsPath): Place | Fault => {
  const place = walker.directory(path)
  if (!isFault(place) || place._tag !== "NotADirectory" || path === root) return place
  const above = walker.directory(parent(path))
  return isFault(above) ? notFound : place
}

export const childrenNow = (walker: Walker, place: Place): ReadonlyArray<Child> =>
  walker.disk
    .readdirSync(place.directory, { withFileTypes: true })
    .map((entry) => childOf(entry.name, kindIn(walker, place, entry)))

const children = (walker: Walker, place: Place): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  Effect.flatMap(
    patiently(awaited<Array<WindowsEntry>>((end) => walker.disk.readdir(place.directory, { withFileTypes: true }, end))),
    (entries) => attempt(() => entries.map((entry) => childOf(entry.name, kindIn(walker, place, entry))))
  )

const isGone = (fault: Fault): boolean => fault._tag === "NotFound" || fault._tag === "NotADirectory"

const swept = (walker: Walker, place: Place, found: ReadonlyArray<Child>): ReadonlyArray<Child> =>
  found.filter(({ name }) => !sweep(walker, place.at(name), name))

export const list = (walker: Walker, path: FsPath, sweeps: boolean): Effect.Effect<ReadonlyArray<Child>, Fault> => {
  const listing = (left: number): Effect.Effect<ReadonlyArray<Child>, Fault> =>
    Effect.flatMap(
      attempt(() => openDirectory(walker, path)),
      (place) =>
        Effect.matchEffect(children(walker, place), {
          onSuccess: (found) =>
            Effect.flatMap(
              attempt(() => place.isSame()),
              (isSame): Effect.Effect<ReadonlyArray<Child>, Fault> =>
                isSame ? Effect.succeed(sweeps ? swept(walker, place, found) : found) : again(left)
            ),
          onFailure: (fault) => (isGone(fault) ? again(left) : Effect.fail(fault))
        })
    )
  const again = (left: number): Effect.Effect<ReadonlyArray<Child>, Fault> =>
    left === 0 ? Effect.fail(unstable) : listing(left - 1)
  return listing(maxLooks)
}
