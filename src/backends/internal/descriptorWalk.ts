/**
 * Confines paths like openat2 with RESOLVE_BENEATH, using only calls that Node has.
 *
 * Every directory is held by a descriptor, and a name in it is reached through `/proc/self/fd/<descriptor>/<name>`. The
 * kernel never receives a path in which it would follow something that others can replace. The descriptor is ours, and
 * the single name is never followed. So the level is `race-free`.
 *
 * Reached directories are cached but never trusted: the kernel is asked for the current path of the directory, and it
 * is used only if that path is the expected one. The cache is cleared every second, so that an idle filesystem holds
 * only its root, and a mount over a directory is noticed.
 */
import { Fs, readLinkBytes } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, parent, root } from "../../model/FsPath.ts"
import { isFault, whenExhausted } from "./attempt.ts"
import {
  closed,
  type Confined,
  holding,
  hostPath,
  isSameFile,
  maxLooks,
  notADirectory,
  notFound,
  type Place,
  unstable
} from "./confined.ts"
import { codeOf } from "../../model/systemError.ts"
import { below, fromBytes, type HostPath, isDoubtful } from "./hostNames.ts"

const gone: Fault = { _tag: "Unavailable", detail: "the root directory has been removed" }

/** Each cached directory needs a descriptor, of which a process may have 1,024. */
const capacity = 128
/** The lifetime of the cache in milliseconds. */
const lifetime = 1000
const procfs = 0x9fa0

/**
 * Returns the descriptor directory by process number: a fifth faster than `self`, which the kernel resolves each time.
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

export const isPossible = (descriptor: number): boolean => {
  if (process.platform !== "linux") return false
  try {
    return (
      Fs.statfsSync(ownDescriptors()).type === procfs &&
      isSameFile(Fs.fstatSync(descriptor), Fs.statSync(`${alias(descriptor)}/.`)) &&
      whereIs(descriptor).length > 0
    )
  } catch {
    return false
  }
}

const whereIs = (descriptor: number): HostPath => fromBytes(readLinkBytes(alias(descriptor)))

const deleted = " (deleted)"

/**
 * Asks the kernel whether a directory is at the expected path. Returns `undefined` for an existing one whose path is
 * too long.
 */
const isAt = (descriptor: number, expected: HostPath): boolean | undefined => {
  try {
    if (typeof expected !== "string" || isDoubtful(expected)) {
      return readLinkBytes(alias(descriptor)).equals(Buffer.from(expected)) && isThere(descriptor)
    }
    // The kernel's suffix for a removed directory could also be the name of an existing one.
    return Fs.readlinkSync(alias(descriptor)) === expected && (!expected.endsWith(deleted) || isThere(descriptor))
  } catch (error) {
    return codeOf(error) === "ENAMETOOLONG" && isThere(descriptor) ? undefined : false
  }
}

const isThere = (descriptor: number): boolean => Fs.fstatSync(descriptor).nlink > 0

const under = (path: FsPath, segment: string): FsPath => (path === root ? segment : `${path}/${segment}`) as FsPath

interface Directory {
  readonly descriptor: number
  readonly base: string
  references: number
  isSwept: boolean
}

const hold = (descriptor: number): Directory => ({ descriptor, base: alias(descriptor), references: 1, isSwept: false })

const retain = (directory: Directory): Directory => {
  directory.references++
  return directory
}

const release = (directory: Directory): void => {
  if (--directory.references === 0) Fs.closeSync(directory.descriptor)
}

interface Walker {
  readonly step: (from: Directory, segment: string) => Directory | Fault
  readonly isAt: (directory: Directory, path: FsPath) => boolean
}

/** A class, because every call creates one, and an object literal with accessors is slower than a stat. */
class Lease implements Place {
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

  /** Refuses a released lease, through which a call could reach another directory with the same number. */
  #live(): Directory {
    if (this.#isReleased) throw new Error("a place was used that had been released")
    return this.#directory
  }

  get directory(): string {
    return this.#live().base
  }

  get stats(): Fs.Stats {
    return (this.#stats ??= Fs.fstatSync(this.#live().descriptor))
  }

  get isSwept(): boolean {
    return this.#directory.isSwept
  }

  set isSwept(value: boolean) {
    this.#directory.isSwept = value
  }

  at(segment: string): HostPath {
    return below(this.#live().base, segment)
  }

  enter(segment: string): Place | Fault {
    const child = this.#walker.step(this.#live(), segment)
    return isFault(child) ? child : new Lease(child, under(this.#path, segment), this.#walker)
  }

  held(): boolean {
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
 * Takes ownership of the root's descriptor. On a disk that ignores case, nothing is cached, because the kernel's
 * spelling of a path may differ from the caller's.
 */
export const make = (descriptor: number, caseSensitive: boolean): Confined => {
  const top = hold(descriptor)
  let topPath = whereIs(descriptor)
  const kept = new Map<FsPath, Directory>()
  let room = capacity
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const forget = (path: FsPath): void => {
    const directory = kept.get(path)
    if (directory === undefined) return
    kept.delete(path)
    release(directory)
  }

  const forgetAll = (): void => {
    clearTimeout(timer)
    timer = undefined
    for (const path of kept.keys()) forget(path)
  }

  const renew = (): void => {
    room = capacity
    top.isSwept = false
    forgetAll()
  }

  const keep = (path: FsPath, directory: Directory): void => {
    if (!caseSensitive) return
    forget(path)
    kept.set(path, retain(directory))
    for (const oldest of kept.keys()) {
      if (kept.size <= room) break
      forget(oldest)
    }
    timer ??= setTimeout(renew, lifetime).unref()
  }

  /** Halves the cache for a while when descriptors are exhausted. */
  const keepAll = whenExhausted(() => {
    room = kept.size >> 1
    forgetAll()
    timer = setTimeout(renew, lifetime).unref()
  })

  const recall = (path: FsPath): Directory | undefined => {
    const directory = kept.get(path)
    if (directory === undefined) return undefined
    if (isAt(directory.descriptor, hostPath(topPath, path)) !== true) {
      forget(path)
      return undefined
    }
    kept.delete(path)
    kept.set(path, directory)
    return retain(directory)
  }

  const step = (from: Directory, segment: string): Directory | Fault => {
    const at = below(from.base, segment)
    try {
      return hold(Fs.openSync(at, holding))
    } catch (error) {
      const code = codeOf(error)
      if (code === "ENOENT") return notFound
      if (code === "ENOTDIR" || code === "ELOOP") return notADirectory
      throw error
    }
  }

  /**
   * Descends from the deepest cached directory above the path. Caches the directory and its parent, because later calls
   * are likely to be nearby.
   */
  const descend = (path: FsPath): Directory | Fault => {
    let above = parent(path)
    let from: Directory | undefined
    while (above !== root && (from = recall(above)) === undefined) above = parent(above)
    let current = from ?? retain(top)
    const rest = above === root ? path : path.slice(above.length + 1)
    const segments = rest.split("/")
    let left = segments.length
    for (const segment of segments) {
      let next: Directory | Fault
      try {
        next = step(current, segment)
      } finally {
        release(current)
      }
      if (isFault(next)) return next
      current = next
      above = under(above, segment)
      if (--left < 2) keep(above, current)
    }
    return current
  }

  const isWhere = ({ descriptor }: Directory, path: FsPath): boolean =>
    caseSensitive && path !== root ? isAt(descriptor, hostPath(topPath, path)) !== false : isThere(descriptor)

  const place = (directory: Directory, path: FsPath): Place => new Lease(directory, path, walker)

  const locate = (): void => {
    const now = whereIs(descriptor)
    if (now.toString() === topPath.toString()) return
    forgetAll()
    topPath = now
  }

  const walker: Walker = {
    step: (directory, segment) => step(directory, segment),
    isAt: (directory, path) => isWhere(directory, path) || (locate(), isWhere(directory, path))
  }

  const walk = (path: FsPath): Place | Fault => {
    for (let looks = 0; looks < maxLooks; looks++) {
      const known = recall(path)
      if (known !== undefined) return place(known, path)
      const found = descend(path)
      if (isFault(found)) return isThere(descriptor) ? found : gone
      if (isWhere(found, path)) return place(found, path)
      release(found)
      forget(path)
      locate()
    }
    return unstable
  }

  return {
    level: "race-free",
    rootPath: () => {
      if (!isClosed && isAt(descriptor, topPath) === false && isThere(descriptor)) locate()
      return topPath
    },
    caseSensitive,
    directory: (path) => {
      if (isClosed) return closed
      if (path !== root) return walk(path)
      return isThere(descriptor) ? place(retain(top), root) : gone
    },
    holds: () => true,
    withdraw: () => {},
    alias,
    close: () => {
      if (isClosed) return
      isClosed = true
      keepAll()
      forgetAll()
      release(top)
    }
  }
}
