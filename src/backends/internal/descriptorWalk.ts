/**
 * Confinement as openat2 gives it with RESOLVE_BENEATH, from calls that Node has: every directory is held by a descriptor, and a name
 * in it is reached through `/proc/self/fd/<descriptor>/<name>`. No call of the kernel is ever given a path in which it would follow
 * what somebody else can exchange: the descriptor is ours, and the name is a single one, itself never followed. So it is `race-free`.
 *
 * Directories that were reached are kept for the next call, but never believed: the kernel is asked where a directory is now, which
 * answers from the moment of asking, and only if that is where the path says is it used. What is kept is let go every second, so that
 * an idle filesystem holds nothing but its root, and what is mounted over a directory is noticed.
 */
import { Fs } from "../../runtime/node.ts"
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
import { codeOf } from "./errno.ts"
import { below, fromBytes, type HostPath, isDoubtful } from "./hostNames.ts"

const gone: Fault = { _tag: "Unavailable", detail: "the root directory has been removed" }

/** Directories kept: each costs a descriptor, of which a process may have 1,024. */
const capacity = 128
/** Milliseconds after which all that is kept is let go. */
const lifetime = 1000
const procfs = 0x9fa0

/** By the number of this process: that takes a fifth less than `self`, which the kernel looks up anew each time. */
const ownDescriptors = (): string => {
  try {
    return `/proc/${Fs.readlinkSync("/proc/self")}/fd`
  } catch {
    return "/proc/self/fd"
  }
}

/** Not asked before a filesystem is built. */
let descriptors: string | undefined
const alias = (descriptor: number): string => `${(descriptors ??= ownDescriptors())}/${descriptor}`

/** Whether this system leads through the paths of descriptors to what they hold. */
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

const whereIs = (descriptor: number): HostPath => fromBytes(Fs.readlinkSync(alias(descriptor), { encoding: "buffer" }))

const deleted = " (deleted)"

/** The kernel's word on where a directory is now: `undefined` where that is too long to be told, and it only has not been removed. */
const isAt = (descriptor: number, expected: HostPath): boolean | undefined => {
  try {
    // Where no text says the path exactly, bytes are compared.
    if (typeof expected !== "string" || isDoubtful(expected)) {
      return Fs.readlinkSync(alias(descriptor), { encoding: "buffer" }).equals(Buffer.from(expected)) && isThere(descriptor)
    }
    // What the kernel says of a removed directory could be the name of one that is there.
    return Fs.readlinkSync(alias(descriptor)) === expected && (!expected.endsWith(deleted) || isThere(descriptor))
  } catch (error) {
    return codeOf(error) === "ENAMETOOLONG" && isThere(descriptor) ? undefined : false
  }
}

const isThere = (descriptor: number): boolean => Fs.fstatSync(descriptor).nlink > 0

const under = (path: FsPath, segment: string): FsPath => (path === root ? segment : `${path}/${segment}`) as FsPath

/** A directory that is held, for as long as anybody refers to it. */
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

/** One use of a directory. A class, since every call makes one, and an object with accessors of its own takes longer than a look. */
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

  /** A mistake here would send a call to whatever directory got the number next. */
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

/** Takes over the descriptor of the root. Without case, the kernel's spelling of a path is not the caller's, and nothing is kept. */
export const make = (descriptor: number, caseSensitive: boolean): Confined => {
  const top = hold(descriptor)
  /** Where the root is; another once it has been moved. */
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

  /** Half of it, for a while. */
  const keepAll = whenExhausted(() => {
    room = kept.size >> 1
    forgetAll()
    timer = setTimeout(renew, lifetime).unref()
  })

  /** One that is kept, and still there. */
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
      // Of a link it is said that it is none, or that it would lead on.
      if (code === "ENOTDIR" || code === "ELOOP") return notADirectory
      throw error
    }
  }

  /** Down from the deepest directory above it that is kept. It and the one above it are kept then: the others next to it are near. */
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

  /** The root may have been moved, which changes where everything in it is. */
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
