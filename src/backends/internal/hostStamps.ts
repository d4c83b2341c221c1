/**
 * Reads the data that shows whether entries of a directory have changed.
 *
 * A tree can have ten thousand directories. A small one is read at once, at the cost of its system calls. A large one
 * is read like a listing, and its entries are inspected in slices with yields in between.
 */
import * as Effect from "effect/Effect"
import { Fs } from "../../runtime/node.ts"
import type { Kind } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import type { DirectoryHistory, StampedChild } from "../../port/history.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Listing } from "../../runtime/lister.ts"
import { attempt, isFault } from "./attempt.ts"
import { type Confined, lstatEntry, type HostDirectory } from "./confined.ts"
import { children, listSync, isSmall } from "./hostEntries.ts"
import { kindOf } from "./hostFile.ts"
import { openDirectory, withDirectory } from "./hostList.ts"
import { childOf, fromBytes, type HostPath, mayBeLossy, isPlainText } from "./hostNames.ts"

const entriesPerSlice = 1000
const kinds: ReadonlyArray<Kind> = ["file", "directory", "symlink", "other"]
const permissionBits = 0o777

const stamped = (name: string, stats: Fs.Stats): StampedChild => {
  const kind = kindOf(stats)
  return {
    name,
    kind,
    addressable: true,
    sizeBytes: kind === "file" || kind === "symlink" ? stats.size : 0,
    mode: stats.mode & permissionBits,
    modified: stats.mtimeMs,
    changed: stats.ctimeMs,
    inode: stats.ino
  }
}

export const stampsOfListing = ({ kinds: codes, names, stats }: Listing): ReadonlyArray<StampedChild> => {
  if (codes.length === 0 || stats === undefined) return []
  const out: Array<StampedChild> = []
  const all = names.split("/")
  const isPlain = isPlainText(names)
  for (let i = 0; i < all.length; i++) {
    const size = stats[5 * i]!
    if (Number.isNaN(size)) continue
    const kind = kinds[codes[i]!]!
    const stampData = {
      kind,
      sizeBytes: kind === "file" || kind === "symlink" ? size : 0,
      mode: stats[5 * i + 1]! & permissionBits,
      modified: stats[5 * i + 2]!,
      changed: stats[5 * i + 3]!,
      inode: stats[5 * i + 4]!
    }
    out.push(isPlain ? { name: all[i]!, addressable: true, ...stampData } : { ...childOf(all[i]!, kind), ...stampData })
  }
  return out
}

export const stampsOf = (place: HostDirectory, children: ReadonlyArray<Child>): ReadonlyArray<StampedChild> => {
  const out: Array<StampedChild> = []
  for (const { addressable, name, key = name } of children) {
    const stats = TemporaryNames.isInProgress(name) ? undefined : lstatEntry(place.at(key))
    if (stats !== undefined) out.push(addressable ? stamped(name, stats) : { ...stamped(name, stats), addressable, key })
  }
  return out
}

/** Lists names without kinds, which the later stat returns anyway. */
export const listNamesSync = (place: HostDirectory): ReadonlyArray<Child> => {
  const names = Fs.readdirSync(place.directory)
  return names.some(mayBeLossy) ? listSync(place) : names.map((name) => childOf(name, "other"))
}

const readNow = (confined: Confined, path: FsPath): ReadonlyArray<StampedChild> | undefined | Fault => {
  const place = openDirectory(confined, path)
  if (isFault(place)) return place
  try {
    if (!isSmall(place)) return undefined
    const stamps = stampsOf(place, listNamesSync(place))
    return place.isReadReliable() ? stamps : undefined
  } finally {
    place.release()
  }
}

export const readStamps = (place: HostDirectory): Effect.Effect<ReadonlyArray<StampedChild>, Fault> =>
  Effect.flatMap(children(place), (found) => {
    const out: Array<ReadonlyArray<StampedChild>> = []
    const next = (from: number): Effect.Effect<ReadonlyArray<StampedChild>, Fault> =>
      Effect.flatMap(
        attempt(() => stampsOf(place, found.slice(from, from + entriesPerSlice))),
        (stamps) => {
          out.push(stamps)
          return from + entriesPerSlice < found.length
            ? Effect.andThen(
                Effect.yieldNow,
                Effect.suspend(() => next(from + entriesPerSlice))
              )
            : Effect.succeed(out.flat())
        }
      )
    return next(0)
  })

const readInSlices = (confined: Confined, path: FsPath): Effect.Effect<ReadonlyArray<StampedChild>, Fault> =>
  withDirectory(confined, path, readStamps)

export const stamps = (confined: Confined, path: FsPath): Effect.Effect<ReadonlyArray<StampedChild>, Fault> =>
  Effect.matchEffect(
    attempt(() => readNow(confined, path)),
    {
      onSuccess: (stamps) => (stamps === undefined ? readInSlices(confined, path) : Effect.succeed(stamps)),
      // The directory may have been replaced while it was read.
      onFailure: (fault) => (fault._tag === "NotFound" ? readInSlices(confined, path) : Effect.fail(fault))
    }
  )

const realPath = (root: string): HostPath | undefined => {
  try {
    return fromBytes(Fs.realpathSync.native(root, { encoding: "buffer" }))
  } catch {
    // The root was removed after it was opened; every later call reports that.
    return undefined
  }
}

/** Creates the history of a root. A root whose path is not text has none, because it could be confused with another. */
export const history = (
  confined: Confined,
  root: string,
  explore?: DirectoryHistory["explore"]
): DirectoryHistory | undefined => {
  const real = realPath(root)
  return typeof real === "string"
    ? { _tag: "Directory", root: real, listStamped: (path) => stamps(confined, path), explore }
    : undefined
}
