/**
 * Opens the root of a host filesystem. The root stays the same directory, even if its path later leads to another
 * directory.
 */
import { directoriesKeepChanging, filesystemClosed, rootGone } from "../faults.ts"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, parent, root } from "../../model/FsPath.ts"
import { codeOf } from "../../model/realms.ts"
import type { Info } from "../../port/Backend.ts"
import { closeQuietly } from "../../runtime/host.ts"
import { Fs, readLinkBytes } from "../../runtime/node.ts"
import { attempt, onExhausted } from "./errors.ts"
import { is as isFault, notADirectory, notFound } from "../../model/Fault.ts"
import {
  below,
  type Confined,
  fromBytes,
  holdFlags,
  type HostDirectory,
  type HostPath,
  hostPath,
  isSameFile,
  lstatEntry,
  maxAttempts,
  mayBeLossy
} from "./place.ts"

// Confines paths on systems that do not expose descriptors as files.
//
// The root is identified by its real path and inode. Every call checks each component of the directory, top down, before
// it appends a name. After a file is opened, it is checked again.
//
// Another process that may write inside the root can still replace a directory by a symlink between its check and its
// use. So the level is `best-effort`.

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = Fs.constants

const isOpenFile = (at: HostPath, descriptor: number): boolean => {
  try {
    const found = lstatEntry(at)
    return found !== undefined && isSameFile(found, Fs.fstatSync(descriptor))
  } catch {
    return false
  }
}

const withdraw: Confined["withdraw"] = (descriptor, place, segment) => {
  const at = place.at(segment)
  if (isOpenFile(at, descriptor)) Fs.unlinkSync(at)
}

/**
 * Creates the confinement, which takes ownership of the root's descriptor. The descriptor stays open so that no other
 * directory can reuse the inode.
 */
const make = (top: HostPath, descriptor: number, caseSensitive: boolean): Confined => {
  const rootIdentity = Fs.fstatSync(descriptor)
  let isClosed = false

  const rootStats = (): Fs.Stats | Fault => {
    if (isClosed) return filesystemClosed
    const stats = lstatEntry(top)
    return stats !== undefined && isSameFile(stats, rootIdentity) ? stats : rootGone
  }

  const openDirectoryAt = (path: FsPath): HostDirectory | Fault => {
    let stats: Fs.Stats | Fault | undefined = rootStats()
    if (isFault(stats) || path === root) return isFault(stats) ? stats : place(path, top, stats)
    let at = top
    for (const segment of path.split("/")) {
      at = below(at, segment)
      stats = lstatEntry(at)
      if (stats === undefined) return notFound
      if (!stats.isDirectory()) return notADirectory
    }
    return place(path, at, stats as Fs.Stats)
  }

  const place = (path: FsPath, at: HostPath, stats: Fs.Stats): HostDirectory => {
    const isSame = (): boolean => {
      const now = openDirectoryAt(path)
      return !isFault(now) && isSameFile(now.stats, stats)
    }
    return {
      directory: at,
      stats,
      at: (segment) => below(at, segment),
      openChild: (segment) => {
        const child = below(at, segment)
        const stats = lstatEntry(child)
        return stats === undefined
          ? notFound
          : stats.isDirectory()
            ? place((path === root ? segment : `${path}/${segment}`) as FsPath, child, stats)
            : notADirectory
      },
      isReadReliable: isSame,
      isSame,
      open: () => Fs.openSync(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
      release: () => {},
      // Skip the sweep for leftovers. Directories are not cached here, so the sweep would run at every write.
      isCleared: true
    }
  }

  return {
    level: "best-effort",
    rootPath: () => top,
    caseSensitive,
    directory: openDirectoryAt,
    holds: (descriptor, place, segment) => isOpenFile(place.at(segment), descriptor) && place.isSame(),
    withdraw,
    close: () => {
      if (isClosed) return
      isClosed = true
      Fs.closeSync(descriptor)
    }
  }
}

// Confines paths like openat2 with RESOLVE_BENEATH, using only calls that Node has.
//
// Every directory is open as a descriptor, and its entries are reached through `/proc/<pid>/fd/<descriptor>/<name>`.
// Other processes cannot replace the descriptor, and a symlink at the single name is never followed. So the level is
// `race-free`.
//
// Opened directories are cached but never trusted. A cached directory is used only if the kernel reports the expected
// path as its current path. The cache is cleared one second after its first entry. So an idle filesystem keeps only its
// root open, and a new mount over a directory is noticed.

/** The maximum number of cached directories. Each directory needs a descriptor, and the usual limit of a process is 1,024. */
const maxCachedDirectories = 128
const cacheLifetimeMillis = 1000
const procfsMagic = 0x9fa0

/**
 * Returns the directory of this process's descriptors with the pid in its path. The path with the pid is a fifth faster
 * than `/proc/self`, which the kernel resolves each time.
 */
const ownDescriptors = (): string => {
  try {
    return `/proc/${Fs.readlinkSync("/proc/self")}/fd`
  } catch {
    return "/proc/self/fd"
  }
}

let descriptors: string | undefined
const alias = (descriptor: number): string => `${(descriptors ??= ownDescriptors())}/${descriptor}`

const isPossible = (descriptor: number): boolean => {
  if (process.platform !== "linux") return false
  try {
    return (
      Fs.statfsSync(ownDescriptors()).type === procfsMagic &&
      isSameFile(Fs.fstatSync(descriptor), Fs.statSync(`${alias(descriptor)}/.`)) &&
      pathOfDescriptor(descriptor).length > 0
    )
  } catch {
    return false
  }
}

const pathOfDescriptor = (descriptor: number): HostPath => fromBytes(readLinkBytes(alias(descriptor)))

const deletedSuffix = " (deleted)"

/**
 * Asks the kernel whether a directory is at the expected path. Returns `undefined` if the path of the directory is too
 * long to be reported.
 */
const isAt = (descriptor: number, expected: HostPath): boolean | undefined => {
  try {
    if (typeof expected !== "string" || mayBeLossy(expected)) {
      return readLinkBytes(alias(descriptor)).equals(Buffer.from(expected)) && isLinked(descriptor)
    }
    // The kernel reports a removed directory with a suffix that could also be part of an existing name.
    return Fs.readlinkSync(alias(descriptor)) === expected && (!expected.endsWith(deletedSuffix) || isLinked(descriptor))
  } catch (error) {
    return codeOf(error) === "ENAMETOOLONG" && isLinked(descriptor) ? undefined : false
  }
}

const isLinked = (descriptor: number): boolean => Fs.fstatSync(descriptor).nlink > 0

const under = (path: FsPath, segment: string): FsPath => (path === root ? segment : `${path}/${segment}`) as FsPath

interface Directory {
  readonly descriptor: number
  readonly base: string
  references: number
  isSwept: boolean
}

const makeHeld = (descriptor: number): Directory => ({ descriptor, base: alias(descriptor), references: 1, isSwept: false })

const retain = (directory: Directory): Directory => {
  directory.references++
  return directory
}

const release = (directory: Directory): void => {
  if (--directory.references === 0) Fs.closeSync(directory.descriptor)
}

interface Walker {
  readonly openChildOf: (from: Directory, segment: string) => Directory | Fault
  readonly isAt: (directory: Directory, path: FsPath) => boolean
}

/**
 * An open directory. Every call creates an instance, so this is a class: an object literal with accessors takes longer
 * than a stat.
 */
class DirectoryLease implements HostDirectory {
  readonly #directory: Directory
  readonly #path: FsPath
  readonly #walker: Walker
  #stats: Fs.Stats | undefined
  #isReleased = false

  constructor(directory: Directory, path: FsPath, walker: Walker) {
    this.#directory = directory
    this.#path = path
    this.#walker = walker
  }

  /**
   * Returns the directory. Throws if the lease is released, because its descriptor may now belong to another directory.
   */
  #live(): Directory {
    if (this.#isReleased) throw new Error("a directory was used after its release")
    return this.#directory
  }

  get directory(): string {
    return this.#live().base
  }

  get stats(): Fs.Stats {
    return (this.#stats ??= Fs.fstatSync(this.#live().descriptor))
  }

  get isCleared(): boolean {
    return this.#directory.isSwept
  }

  set isCleared(value: boolean) {
    this.#directory.isSwept = value
  }

  at(segment: string): HostPath {
    return below(this.#live().base, segment)
  }

  openChild(segment: string): HostDirectory | Fault {
    const child = this.#walker.openChildOf(this.#live(), segment)
    return isFault(child) ? child : new DirectoryLease(child, under(this.#path, segment), this.#walker)
  }

  isReadReliable(): boolean {
    return true
  }

  isSame(): boolean {
    return this.#walker.isAt(this.#live(), this.#path)
  }

  open(): number {
    return Fs.openSync(`${this.directory}/.`, Fs.constants.O_RDONLY | Fs.constants.O_DIRECTORY)
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    release(this.#directory)
  }
}

/**
 * Creates the confinement, which takes ownership of the root's descriptor. On a case-insensitive disk, nothing is
 * cached, because the kernel may report a path in another case than the caller's.
 */
const makeDescriptorWalk = (descriptor: number, caseSensitive: boolean): Confined => {
  const top = makeHeld(descriptor)
  let topPath = pathOfDescriptor(descriptor)
  const kept = new Map<FsPath, Directory>()
  let cacheLimit = maxCachedDirectories
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const evict = (path: FsPath): void => {
    const directory = kept.get(path)
    if (directory === undefined) return
    kept.delete(path)
    release(directory)
  }

  const clearCache = (): void => {
    clearTimeout(timer)
    timer = undefined
    for (const path of kept.keys()) evict(path)
  }

  const resetCache = (): void => {
    cacheLimit = maxCachedDirectories
    top.isSwept = false
    clearCache()
  }

  const cacheDirectory = (path: FsPath, directory: Directory): void => {
    if (!caseSensitive) return
    evict(path)
    kept.set(path, retain(directory))
    for (const oldest of kept.keys()) {
      if (kept.size <= cacheLimit) break
      evict(oldest)
    }
    timer ??= setTimeout(resetCache, cacheLifetimeMillis).unref()
  }

  /** Unregisters the handler that clears the cache and halves its limit for `cacheLifetimeMillis` if no descriptor is left. */
  const stopReleasing = onExhausted(() => {
    cacheLimit = kept.size >> 1
    clearCache()
    timer = setTimeout(resetCache, cacheLifetimeMillis).unref()
  })

  const findCached = (path: FsPath): Directory | undefined => {
    const directory = kept.get(path)
    if (directory === undefined) return undefined
    if (isAt(directory.descriptor, hostPath(topPath, path)) !== true) {
      evict(path)
      return undefined
    }
    kept.delete(path)
    kept.set(path, directory)
    return retain(directory)
  }

  const openChildOf = (from: Directory, segment: string): Directory | Fault => {
    const at = below(from.base, segment)
    try {
      return makeHeld(Fs.openSync(at, holdFlags))
    } catch (error) {
      const code = codeOf(error)
      if (code === "ENOENT") return notFound
      if (code === "ENOTDIR" || code === "ELOOP") return notADirectory
      throw error
    }
  }

  /**
   * Opens a directory, starting at its deepest cached ancestor. Caches the directory and its parent, because the next
   * calls probably use them.
   */
  const openBelow = (path: FsPath): Directory | Fault => {
    let above = parent(path)
    let from: Directory | undefined
    while (above !== root && (from = findCached(above)) === undefined) above = parent(above)
    let current = from ?? retain(top)
    const rest = above === root ? path : path.slice(above.length + 1)
    const segments = rest.split("/")
    let left = segments.length
    for (const segment of segments) {
      let next: Directory | Fault
      try {
        next = openChildOf(current, segment)
      } finally {
        release(current)
      }
      if (isFault(next)) return next
      current = next
      above = under(above, segment)
      if (--left < 2) cacheDirectory(above, current)
    }
    return current
  }

  const isAtPath = ({ descriptor }: Directory, path: FsPath): boolean =>
    caseSensitive && path !== root ? isAt(descriptor, hostPath(topPath, path)) !== false : isLinked(descriptor)

  const place = (directory: Directory, path: FsPath): HostDirectory => new DirectoryLease(directory, path, walker)

  const updateRootPath = (): void => {
    const now = pathOfDescriptor(descriptor)
    if (now.toString() === topPath.toString()) return
    clearCache()
    topPath = now
  }

  const walker: Walker = {
    openChildOf: (directory, segment) => openChildOf(directory, segment),
    isAt: (directory, path) => isAtPath(directory, path) || (updateRootPath(), isAtPath(directory, path))
  }

  const walk = (path: FsPath): HostDirectory | Fault => {
    for (let looks = 0; looks < maxAttempts; looks++) {
      const known = findCached(path)
      if (known !== undefined) return place(known, path)
      const found = openBelow(path)
      if (isFault(found)) return isLinked(descriptor) ? found : rootGone
      if (isAtPath(found, path)) return place(found, path)
      release(found)
      evict(path)
      updateRootPath()
    }
    return directoriesKeepChanging
  }

  return {
    level: "race-free",
    rootPath: () => {
      if (!isClosed && isAt(descriptor, topPath) === false && isLinked(descriptor)) updateRootPath()
      return topPath
    },
    caseSensitive,
    directory: (path) => {
      if (isClosed) return filesystemClosed
      if (path !== root) return walk(path)
      return isLinked(descriptor) ? place(retain(top), root) : rootGone
    },
    holds: () => true,
    withdraw,
    descriptorPath: alias,
    close: () => {
      if (isClosed) return
      isClosed = true
      stopReleasing()
      clearCache()
      release(top)
    }
  }
}

type Level = Info["confinement"]

/** Returns the level of confinement on this machine. Needs no root, so that no root is created if the level is too low. */
export const level = (): Level => {
  // Only Linux has `/proc/self/fd`. On other systems, opening "/" for the test could fail.
  if (process.platform !== "linux") return "best-effort"
  const descriptor = Fs.openSync("/", holdFlags)
  try {
    return isPossible(descriptor) ? "race-free" : "best-effort"
  } finally {
    closeQuietly(descriptor)
  }
}

/** Opens an existing directory as a root. `confinement` may be lower than the machine's level. */
export const open = (directory: string, confinement: Level = level()): Confined | Fault => {
  const top = fromBytes(Fs.realpathSync.native(directory, { encoding: "buffer" }))
  const found = lstatEntry(top)
  if (found === undefined) return notFound
  if (!found.isDirectory()) return notADirectory
  const caseSensitive = isCaseSensitive(top)
  const descriptor = Fs.openSync(top, holdFlags)
  try {
    return confinement === "race-free" ? makeDescriptorWalk(descriptor, caseSensitive) : make(top, descriptor, caseSensitive)
  } catch (error) {
    closeQuietly(descriptor)
    throw error
  }
}

/** Opens an existing directory as a root until the scope closes. */
export const openScoped = (directory: string): Effect.Effect<Confined, Fault, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(() => open(directory)),
    ({ close }) => Effect.sync(close)
  )

const swapCase = (name: string): string =>
  name.replace(/[a-z]/gi, (letter) => (letter < "a" ? letter.toLowerCase() : letter.toUpperCase()))

/** Tests case sensitivity with an existing name, because the test must not write. */
const isCaseSensitive = (top: HostPath): boolean => {
  const sample = sampleName(top) ?? top
  if (typeof sample !== "string") return true
  const name = sample.slice(sample.lastIndexOf("/") + 1)
  const other = swapCase(name)
  if (other === name) return process.platform !== "darwin"
  const found = lstatEntry(sample)
  const otherCaseStats = lstatEntry(sample.slice(0, sample.length - name.length) + other)
  return found === undefined || otherCaseStats === undefined || !isSameFile(found, otherCaseStats)
}

const sampleName = (top: HostPath): HostPath | undefined => {
  const directory = openQuietly(top)
  if (directory === undefined) return undefined
  try {
    for (let left = 32; left > 0; left--) {
      const entry = directory.readSync()
      if (entry === null) return undefined
      if (/[a-z]/i.test(entry.name)) return below(top, entry.name)
    }
    return undefined
  } finally {
    directory.closeSync()
  }
}

/** Opens a directory for listing. Returns `undefined` on failure, because a root that cannot be listed is valid. */
const openQuietly = (top: HostPath): Fs.Dir | undefined => {
  try {
    return Fs.opendirSync(top as string)
  } catch {
    return undefined
  }
}
