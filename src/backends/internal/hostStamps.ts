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
import type { DirectoryHistory, Stamped } from "../../port/history.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Listing } from "../../runtime/lister.ts"
import { attempt, isFault } from "./attempt.ts"
import { type Confined, look, type Place } from "./confined.ts"
import { children, childrenNow, isSmall } from "./hostEntries.ts"
import { kindOf } from "./hostFile.ts"
import { openDirectory, withDirectory } from "./hostList.ts"
import { childOf, fromBytes, type HostPath, isDoubtful, isText } from "./hostNames.ts"

const slice = 1000
const kinds: ReadonlyArray<Kind> = ["file", "directory", "symlink", "other"]
const permissionBits = 0o777

const stamped = (name: string, stats: Fs.Stats): Stamped => {
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

export const ofListing = ({ kinds: codes, names, stats }: Listing): ReadonlyArray<Stamped> => {
  if (codes.length === 0 || stats === undefined) return []
  const out: Array<Stamped> = []
  const all = names.split("/")
  const isPlain = isText(names)
  for (let i = 0; i < all.length; i++) {
    const size = stats[5 * i]!
    if (Number.isNaN(size)) continue
    const kind = kinds[codes[i]!]!
    const told = {
      kind,
      sizeBytes: kind === "file" || kind === "symlink" ? size : 0,
      mode: stats[5 * i + 1]! & permissionBits,
      modified: stats[5 * i + 2]!,
      changed: stats[5 * i + 3]!,
      inode: stats[5 * i + 4]!
    }
    out.push(isPlain ? { name: all[i]!, addressable: true, ...told } : { ...childOf(all[i]!, kind), ...told })
  }
  return out
}

export const stampsOf = (place: Place, children: ReadonlyArray<Child>): ReadonlyArray<Stamped> => {
  const out: Array<Stamped> = []
  for (const { addressable, name, key = name } of children) {
    const stats = TemporaryNames.isInProgress(name) ? undefined : look(place.at(key))
    if (stats !== undefined) out.push(addressable ? stamped(name, stats) : { ...stamped(name, stats), addressable, key })
  }
  return out
}

/** Lists names without kinds, which the later stat returns anyway. */
export const namesNow = (place: Place): ReadonlyArray<Child> => {
  const names = Fs.readdirSync(place.directory)
  return names.some(isDoubtful) ? childrenNow(place) : names.map((name) => childOf(name, "other"))
}

const now = (confined: Confined, path: FsPath): ReadonlyArray<Stamped> | undefined | Fault => {
  const place = openDirectory(confined, path)
  if (isFault(place)) return place
  try {
    if (!isSmall(place)) return undefined
    const stamps = stampsOf(place, namesNow(place))
    return place.held() ? stamps : undefined
  } finally {
    place.release()
  }
}

export const stampsIn = (place: Place): Effect.Effect<ReadonlyArray<Stamped>, Fault> =>
  Effect.flatMap(children(place), (found) => {
    const out: Array<ReadonlyArray<Stamped>> = []
    const next = (from: number): Effect.Effect<ReadonlyArray<Stamped>, Fault> =>
      Effect.flatMap(
        attempt(() => stampsOf(place, found.slice(from, from + slice))),
        (stamps) => {
          out.push(stamps)
          return from + slice < found.length
            ? Effect.andThen(
                Effect.yieldNow,
                Effect.suspend(() => next(from + slice))
              )
            : Effect.succeed(out.flat())
        }
      )
    return next(0)
  })

const inSlices = (confined: Confined, path: FsPath): Effect.Effect<ReadonlyArray<Stamped>, Fault> =>
  withDirectory(confined, path, stampsIn)

export const stamps = (confined: Confined, path: FsPath): Effect.Effect<ReadonlyArray<Stamped>, Fault> =>
  Effect.matchEffect(
    attempt(() => now(confined, path)),
    {
      onSuccess: (stamps) => (stamps === undefined ? inSlices(confined, path) : Effect.succeed(stamps)),
      // The directory may have been replaced while it was read.
      onFailure: (fault) => (fault._tag === "NotFound" ? inSlices(confined, path) : Effect.fail(fault))
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
    ? { _tag: "Directory", root: real, stamps: (path) => stamps(confined, path), explore }
    : undefined
}
