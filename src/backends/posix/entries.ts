/** Lists host directories, removes the leftovers in them, and reads the stamps of their entries. */
import * as Effect from "effect/Effect"
import type { Kind } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, parent, root } from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import type { Child } from "../../port/Backend.ts"
import type { DirectoryHistory, LentDirectory, ListedDirectory, StampedChild } from "../../port/history.ts"
import type { Listing } from "../../runtime/lister.ts"
import { Fs } from "../../runtime/node.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { attempt, retryTransient } from "./errors.ts"
import { awaitCall } from "../../runtime/host.ts"
import { is as isFault, notFound } from "../../model/Fault.ts"
import {
  childOf,
  type Confined,
  fromBytes,
  type HostDirectory,
  type HostPath,
  isPlainText,
  lstatEntry,
  maxAttempts,
  mayBeLossy
} from "./place.ts"
import { directoriesKeepChanging } from "../faults.ts"
import { kindOf } from "./read.ts"

// Lists directories. One call in the thread pool reads a directory.
//
// A large directory, recognized by its own size in bytes, is read synchronously in slices, so that the program never
// blocks for long. Names are read as text, which is fast. If a name may not be valid text, all names are read again as
// bytes.

/**
 * The size in bytes, as the disk reports it, above which a directory is read in slices. A directory of this size has a
 * few thousand entries.
 */
const largeDirectoryBytes = 64 * 1024
const entriesPerSlice = 1000

/** An entry of a listing. Bun returns a name without a kind if names are requested as bytes (oven-sh/bun#27914). */
type Entry = Fs.Dirent | Fs.Dirent<Buffer> | Buffer

const readInSlices = (place: HostDirectory, encoding: "utf8" | "buffer"): Effect.Effect<ReadonlyArray<Entry>, Fault> =>
  Effect.acquireUseRelease(
    attempt(() =>
      Fs.opendirSync(place.directory as string, { encoding: encoding as BufferEncoding, bufferSize: entriesPerSlice })
    ),
    (directory) => {
      const entries: Array<Entry> = []
      const next: Effect.Effect<ReadonlyArray<Entry>, Fault> = Effect.flatMap(
        attempt(() => {
          for (let left = entriesPerSlice; left > 0; left--) {
            const entry = directory.readSync()
            if (entry === null) return false
            entries.push(entry)
          }
          return true
        }),
        (more) => (more ? Effect.andThen(Effect.yieldNow, next) : Effect.succeed(entries))
      )
      return next
    },
    (directory) => Effect.sync(() => directory.closeSync())
  )

const readAtOnce = (place: HostDirectory, encoding: "utf8" | "buffer"): Effect.Effect<ReadonlyArray<Entry>, Fault> =>
  retryTransient(
    awaitCall<Array<Entry>>((end) =>
      Fs.readdir(place.directory, { withFileTypes: true, encoding: encoding as "utf8" }, end as (error: Error | null) => void)
    )
  )

const entriesOf = (place: HostDirectory, encoding: "utf8" | "buffer"): Effect.Effect<ReadonlyArray<Entry>, Fault> =>
  Effect.flatMap(
    attempt(() => place.stats.size > largeDirectoryBytes),
    (isLarge) => (isLarge ? readInSlices(place, encoding) : readAtOnce(place, encoding))
  )

const childAt = (place: HostDirectory, name: Buffer): Child | undefined => {
  const child = childOf(fromBytes(name), "other")
  const stats = lstatEntry(place.at(child.key ?? child.name))
  return stats && { ...child, kind: kindOf(stats) }
}

const toChildren = (place: HostDirectory, entries: ReadonlyArray<Entry>): Array<Child> | undefined => {
  const children: Array<Child> = []
  for (const entry of entries) {
    if (isBytes(entry)) {
      const child = childAt(place, entry)
      if (child !== undefined) children.push(child)
      continue
    }
    const name = typeof entry.name === "string" ? entry.name : fromBytes(entry.name)
    if (typeof entry.name === "string" && mayBeLossy(entry.name)) return undefined
    children.push(childOf(name, kindOf(entry)))
  }
  return children
}

export const children = (place: HostDirectory): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  Effect.flatMap(entriesOf(place, "utf8"), (entries) => {
    const children = toChildren(place, entries)
    return children === undefined
      ? Effect.flatMap(entriesOf(place, "buffer"), (entries) => attempt(() => toChildren(place, entries) ?? []))
      : Effect.succeed(children)
  })

/** Tests whether a directory is so small (a few hundred entries) that it can be read without the thread pool. */
export const isSmall = (place: HostDirectory): boolean => {
  try {
    return place.stats.size <= 16 * 1024
  } catch {
    // Ignore the error: the read itself reports it.
    return false
  }
}

/**
 * Lists a directory without the thread pool. A small directory is listed three times as fast, but a large directory
 * blocks the program.
 */
export const listSync = (place: HostDirectory): ReadonlyArray<Child> => {
  const read = (encoding: "utf8" | "buffer") =>
    toChildren(place, Fs.readdirSync(place.directory, { withFileTypes: true, encoding: encoding as "utf8" }))
  return read("utf8") ?? read("buffer") ?? []
}

// Removes the leftovers of killed writers: the files of processes that have provably ended. A file that is not provably
// a leftover of this library stays, even if it is old.

/** Removes a file whose name shows that it is a leftover. Returns true if the name is then free. Removes no directory. */
export const removeLeftover = (place: HostDirectory, segment: string): boolean => {
  if (!TemporaryNames.isLeftover(segment)) return false
  const at = place.at(segment)
  try {
    const found = lstatEntry(at)
    if (found === undefined) return true
    if (found.isDirectory()) return false
    Fs.unlinkSync(at)
    return true
  } catch {
    return false
  }
}

/**
 * Removes leftovers before a file is created or replaced, once per cached directory. Skips a large directory, in which
 * only a listing removes leftovers.
 */
export const removeLeftoversOnce = (place: HostDirectory): void => {
  if (place.isCleared) return
  place.isCleared = true
  try {
    if (!isSmall(place)) return
    for (const { name } of listSync(place)) removeLeftover(place, name)
  } catch {
    // Ignore the error, because a writable directory need not be readable.
  }
}

/**
 * Opens a directory. Returns NotADirectory if the entry is not a directory, and NotFound if a parent is not a directory.
 */
export const openDirectory = (confined: Confined, path: FsPath): HostDirectory | Fault => {
  const place = confined.directory(path)
  if (!isFault(place) || place._tag !== "NotADirectory" || path === root) return place
  const above = confined.directory(parent(path))
  if (isFault(above)) return notFound
  above.release()
  return place
}

const withDirectory = <A>(
  confined: Confined,
  path: FsPath,
  use: (place: HostDirectory) => Effect.Effect<A, Fault>
): Effect.Effect<A, Fault> => {
  const attemptUse = (left: number): Effect.Effect<A, Fault> =>
    Effect.flatten(
      Effect.acquireUseRelease(
        attempt(() => openDirectory(confined, path)),
        (place) =>
          Effect.map(Effect.result(use(place)), (result): Effect.Effect<A, Fault> => {
            // If an entry disappears while Node determines its kind, the listing of an existing directory can fail with
            // NotFound.
            const isGone = result._tag === "Failure" && result.failure._tag === "NotFound"
            if (!isGone && place.isReadReliable()) return Effect.fromResult(result)
            return left === 0 ? Effect.fail(directoriesKeepChanging) : attemptUse(left - 1)
          }),
        (place) => Effect.sync(() => place.release())
      )
    )
  return attemptUse(maxAttempts)
}

export const list = (confined: Confined, path: FsPath, sweeps: boolean): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  withDirectory(confined, path, (place) =>
    Effect.map(children(place), (found) => (sweeps ? found.filter(({ name }) => !removeLeftover(place, name)) : found))
  )

// Reads stamps. Because a tree can have ten thousand directories, a small directory is read synchronously. A large
// directory is read like a listing, and its entries are inspected in slices with yields in between.

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

/**
 * The entries of a directory with their stamps. `self` is the stamp of the directory, or `undefined` if `children` is
 * incomplete.
 */
export interface StampedEntries {
  readonly children: ReadonlyArray<StampedChild>
  readonly self: ListedDirectory | undefined
}

const listedDirectory = ({ ctimeMs, dev, ino, mode, mtimeMs }: Fs.Stats): ListedDirectory => ({
  device: dev,
  mode: mode & permissionBits,
  modified: mtimeMs,
  changed: ctimeMs,
  inode: ino
})

export const stampsOfListing = ({ kinds: codes, names, stats }: Listing): StampedEntries => {
  const children: Array<StampedChild> = []
  if (stats === undefined) return { children, self: undefined }
  const timesAt = (at: number) => ({
    mode: stats[at + 1]! & permissionBits,
    modified: stats[at + 2]!,
    changed: stats[at + 3]!,
    inode: stats[at + 4]!
  })
  const all = codes.length === 0 ? [] : names.split("/")
  const isPlain = isPlainText(names)
  for (let i = 0; i < all.length; i++) {
    const at = 5 * (i + 1)
    const size = stats[at]!
    if (Number.isNaN(size)) continue
    const kind = kinds[codes[i]!]!
    const stampData = { kind, sizeBytes: kind === "file" || kind === "symlink" ? size : 0, ...timesAt(at) }
    children.push(isPlain ? { name: all[i]!, addressable: true, ...stampData } : { ...childOf(all[i]!, kind), ...stampData })
  }
  return { children, self: children.length === all.length ? { device: stats[0]!, ...timesAt(0) } : undefined }
}

const stampsOf = (place: HostDirectory, children: ReadonlyArray<Child>): ReadonlyArray<StampedChild> => {
  const out: Array<StampedChild> = []
  for (const { addressable, name, key = name } of children) {
    const stats = TemporaryNames.isInProgress(name) ? undefined : lstatEntry(place.at(key))
    if (stats !== undefined) out.push(addressable ? stamped(name, stats) : { ...stamped(name, stats), addressable, key })
  }
  return out
}

/** Lists names without their kinds, because the later stat of each entry returns the kind. If a name may be lossy, lists bytes. */
const listNamesSync = (place: HostDirectory): ReadonlyArray<Child> => {
  const names = Fs.readdirSync(place.directory)
  return names.some(mayBeLossy) ? listSync(place) : names.map((name) => childOf(name, "other"))
}

export const readStampsSync = (place: HostDirectory): StampedEntries => {
  const self = listedDirectory(place.stats)
  const found = listNamesSync(place)
  const children = stampsOf(place, found)
  return { children, self: children.length === found.length ? self : undefined }
}

const readNow = (confined: Confined, path: FsPath): ReadonlyArray<StampedChild> | undefined | Fault => {
  const place = openDirectory(confined, path)
  if (isFault(place)) return place
  try {
    if (!isSmall(place)) return undefined
    const { children } = readStampsSync(place)
    return place.isReadReliable() ? children : undefined
  } finally {
    place.release()
  }
}

export const readStamps = Effect.fnUntraced(function* (place: HostDirectory): Effect.fn.Return<StampedEntries, Fault> {
  const self = yield* attempt(() => listedDirectory(place.stats))
  const found = yield* children(place)
  const out: Array<ReadonlyArray<StampedChild>> = []
  for (let from = 0; from < found.length; from += entriesPerSlice) {
    if (from > 0) yield* Effect.yieldNow
    out.push(yield* attempt(() => stampsOf(place, found.slice(from, from + entriesPerSlice))))
  }
  const stamps = out.flat()
  return { children: stamps, self: stamps.length === found.length ? self : undefined }
})

const readStampsInSlices = (confined: Confined, path: FsPath): Effect.Effect<ReadonlyArray<StampedChild>, Fault> =>
  withDirectory(confined, path, (place) => Effect.map(readStamps(place), ({ children }) => children))

export const stamps = (confined: Confined, path: FsPath): Effect.Effect<ReadonlyArray<StampedChild>, Fault> =>
  Effect.matchEffect(
    attempt(() => readNow(confined, path)),
    {
      onSuccess: (stamps) => (stamps === undefined ? readStampsInSlices(confined, path) : Effect.succeed(stamps)),
      // The directory may have been replaced while it was read.
      onFailure: (fault) => (fault._tag === "NotFound" ? readStampsInSlices(confined, path) : Effect.fail(fault))
    }
  )

const realPath = (root: string): HostPath | undefined => {
  try {
    return fromBytes(Fs.realpathSync.native(root, { encoding: "buffer" }))
  } catch {
    // The root was removed after it was opened. Every later call reports the removal.
    return undefined
  }
}

export const lend =
  (confined: Confined, how: Pick<LentDirectory, "refusesHardlinks" | "acceptsFiles">): NonNullable<DirectoryHistory["lend"]> =>
  (path) =>
    Effect.map(
      Effect.acquireRelease(
        attempt(() => openDirectory(confined, path)),
        (place) => Effect.sync(() => place.release())
      ),
      ({ directory, stats }) => ({ base: directory.toString(), device: stats.dev, ...how })
    )

/**
 * Creates the history of a root. Returns `undefined` if the path of the root is not valid text, because such a path
 * could be confused with another path.
 */
export const history = (
  confined: Confined,
  root: string,
  threads?: Pick<DirectoryHistory, "explore" | "lend">
): DirectoryHistory | undefined => {
  const real = realPath(root)
  return typeof real === "string"
    ? { _tag: "Directory", root: real, listStamped: (path) => stamps(confined, path), ...threads }
    : undefined
}
