/**
 * The objects that describe entries: `Stats`, `BigIntStats` and `Dirent`. On Node the objects are instances of Node's classes
 * too.
 */
import * as DateTime from "effect/DateTime"
import type { FileStat, Kind } from "../../model/Entry.ts"
import type { Buffer } from "../../runtime/buffer.ts"
import { Fs, isNode } from "../../runtime/node.ts"

const typeBits: { readonly [K in Kind]: number } = {
  file: 0o100_000,
  directory: 0o040_000,
  symlink: 0o120_000,
  other: 0o010_000
}
const typeMask = 0o170_000
const defaultMode: { readonly [K in Kind]: number } = { file: 0o644, directory: 0o755, symlink: 0o777, other: 0o644 }

const blockSize = 4096
const sectorSize = 512

/**
 * Returns a stable number for an identity: equal identities have equal numbers, on every call and in every process. The
 * number has 53 bits, so two identities practically never have the same number.
 */
export const inodeNumber = (identity: string): number => {
  let high = 0xdead_beef
  let low = 0x41c6_ce57
  for (let i = 0; i < identity.length; i++) {
    const unit = identity.charCodeAt(i)
    high = Math.imul(high ^ unit, 2_654_435_761)
    low = Math.imul(low ^ unit, 1_597_334_677)
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909)
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909)
  return 4_294_967_296 * (2_097_151 & low) + (high >>> 0)
}

abstract class Kinds {
  protected abstract readonly kindBits: number

  isFile(): boolean {
    return this.kindBits === typeBits.file
  }
  isDirectory(): boolean {
    return this.kindBits === typeBits.directory
  }
  isSymbolicLink(): boolean {
    return this.kindBits === typeBits.symlink
  }
  /** Returns true for an entry of kind `other`: the backends do not distinguish FIFOs, sockets and devices. */
  isFIFO(): boolean {
    return this.kindBits === typeBits.other
  }
  isSocket(): boolean {
    return false
  }
  isBlockDevice(): boolean {
    return false
  }
  isCharacterDevice(): boolean {
    return false
  }
}

const dateOf = (milliseconds: number): Date => DateTime.toDateUtc(DateTime.makeUnsafe(milliseconds))

export class Stats<N extends number | bigint = number> extends Kinds {
  declare readonly dev: N
  declare readonly mode: N
  declare readonly nlink: N
  declare readonly uid: N
  declare readonly gid: N
  declare readonly rdev: N
  declare readonly blksize: N
  declare readonly ino: N
  declare readonly size: N
  declare readonly blocks: N
  declare readonly atimeMs: N
  declare readonly mtimeMs: N
  declare readonly ctimeMs: N
  declare readonly birthtimeMs: N

  protected get kindBits(): number {
    return Number(this.mode) & typeMask
  }
  get atime(): Date {
    return dateOf(Number(this.atimeMs))
  }
  get mtime(): Date {
    return dateOf(Number(this.mtimeMs))
  }
  get ctime(): Date {
    return dateOf(Number(this.ctimeMs))
  }
  get birthtime(): Date {
    return dateOf(Number(this.birthtimeMs))
  }
}

export class BigIntStats extends Stats<bigint> {
  get atimeNs(): bigint {
    return this.atimeMs * 1_000_000n
  }
  get mtimeNs(): bigint {
    return this.mtimeMs * 1_000_000n
  }
  get ctimeNs(): bigint {
    return this.ctimeMs * 1_000_000n
  }
  get birthtimeNs(): bigint {
    return this.birthtimeMs * 1_000_000n
  }
}

/**
 * Returns the Stats of an entry. The backends have no owners, devices, access times and change times. So the owners are 0, the
 * device is 1, and the access and change times are the modification time.
 */
export const toStats = (stat: FileStat, isBigInt: boolean): Stats | BigIntStats => {
  const modified = stat.modifiedAt?.epochMilliseconds ?? 0
  const values = {
    dev: 1,
    mode: typeBits[stat.kind] | (stat.mode ?? defaultMode[stat.kind]),
    nlink: 1,
    uid: 0,
    gid: 0,
    rdev: 0,
    blksize: blockSize,
    ino: inodeNumber(stat.identity ?? stat.path),
    size: stat.sizeBytes,
    blocks: Math.ceil(stat.sizeBytes / sectorSize),
    atimeMs: modified,
    mtimeMs: modified,
    ctimeMs: modified,
    birthtimeMs: stat.createdAt?.epochMilliseconds ?? modified
  }
  if (!isBigInt) return Object.assign(new Stats(), values)
  return Object.assign(
    new BigIntStats(),
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, BigInt(Math.trunc(value))]))
  )
}

export class Dirent extends Kinds {
  readonly name: string | Buffer
  readonly parentPath: string
  readonly #kind: Kind

  constructor(name: string | Buffer, parentPath: string, kind: Kind) {
    super()
    this.name = name
    this.parentPath = parentPath
    this.#kind = kind
  }

  /** The former name of `parentPath`. */
  get path(): string {
    return this.parentPath
  }
  protected get kindBits(): number {
    return typeBits[this.#kind]
  }
}

// Make `entry instanceof fs.Stats` true for the class of node:fs. The methods above hide the methods of Node's classes.
if (isNode) {
  for (const name of Object.getOwnPropertyNames(Kinds.prototype)) {
    if (name === "constructor") continue
    const method = Object.getOwnPropertyDescriptor(Kinds.prototype, name)!
    Object.defineProperty(Stats.prototype, name, method)
    Object.defineProperty(Dirent.prototype, name, method)
  }
  Object.setPrototypeOf(Stats.prototype, Fs.Stats.prototype)
  Object.setPrototypeOf(Dirent.prototype, Fs.Dirent.prototype)
}
