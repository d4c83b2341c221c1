/**
 * The ZIP records that this library writes: little-endian, names marked as UTF-8, 64-bit fields where 32 bits are too
 * small.
 */
import * as DateTime from "effect/DateTime"
import { Buffer } from "../../runtime/buffer.ts"

export const signatures = {
  local: 0x04034b50,
  central: 0x02014b50,
  end: 0x06054b50,
  end64: 0x06064b50,
  locator64: 0x07064b50,
  descriptor: 0x08074b50
} as const

export const max16 = 0xffff
export const max32 = 0xffffffff

export const flag = { encrypted: 1, descriptor: 8, patched: 0x20, strong: 0x40, utf8: 0x800, masked: 0x2000 } as const
export const stored = 0
export const deflated = 8

export const unix = 3
export const fileType = 0o100000
export const directoryType = 0o040000
export const linkType = 0o120000

/**
 * The directory bit of MS-DOS in the low half of the attributes. Some readers recognise directories only by this bit.
 */
const dosDirectory = 0x10

export interface Written {
  readonly name: Buffer
  readonly method: number
  /** Type and permission bits; `undefined` if the entry has no mode. */
  readonly mode: number | undefined
  readonly isDirectory: boolean
  /** True if sizes and checksum follow after the data. */
  readonly isStreamed: boolean
  /** True if a size may need 64 bits. */
  readonly isLarge: boolean
  readonly offset: number
  crc: number
  packed: number
  size: number
}

/** The range of times that the format can express: 1980 to 2107, in milliseconds since 1970. */
const firstTime = 315_532_800_000
const lastTime = 4_354_819_198_000

/** Converts a time to the MS-DOS format, which has a resolution of two seconds. */
export const dosTime = (milliseconds: number): number => {
  const at = DateTime.makeUnsafe(Math.min(Math.max(milliseconds, firstTime), lastTime))
  const { day, hour, minute, month, second, year } = DateTime.toPartsUtc(at)
  const date = ((year - 1980) << 9) | (month << 5) | day
  return date * 0x10000 + ((hour << 11) | (minute << 5) | (second >> 1))
}

class Fields {
  readonly #bytes: Buffer
  #at = 0

  constructor(length: number) {
    this.#bytes = Buffer.alloc(length)
  }

  two(...values: ReadonlyArray<number>): this {
    for (const value of values) this.#at = this.#bytes.writeUInt16LE(value, this.#at)
    return this
  }

  four(...values: ReadonlyArray<number>): this {
    for (const value of values) this.#at = this.#bytes.writeUInt32LE(value >>> 0, this.#at)
    return this
  }

  eight(...values: ReadonlyArray<number>): this {
    for (const value of values) this.#at = this.#bytes.writeBigUInt64LE(BigInt(value), this.#at)
    return this
  }

  text(bytes: Uint8Array): this {
    this.#bytes.set(bytes, this.#at)
    this.#at += bytes.length
    return this
  }

  get bytes(): Uint8Array {
    return this.#bytes
  }
}

const version = (is64: boolean): number => (is64 ? 45 : 20)

const flagsOf = ({ isStreamed }: Written): number => flag.utf8 | (isStreamed ? flag.descriptor : 0)

export const localHeader = (entry: Written, time: number): Uint8Array => {
  const { crc, isLarge, isStreamed, method, name, packed, size } = entry
  const fields = new Fields(30 + name.length + (isLarge ? 20 : 0))
    .four(signatures.local)
    .two(version(isLarge), flagsOf(entry), method)
    .four(time, isStreamed ? 0 : crc)
  if (isLarge) fields.four(max32, max32)
  else fields.four(isStreamed ? 0 : packed, isStreamed ? 0 : size)
  fields.two(name.length, isLarge ? 20 : 0).text(name)
  if (isLarge) fields.two(1, 16).eight(isStreamed ? 0 : size, isStreamed ? 0 : packed)
  return fields.bytes
}

export const descriptor = ({ crc, isLarge, packed, size }: Written): Uint8Array =>
  isLarge
    ? new Fields(24).four(signatures.descriptor, crc).eight(packed, size).bytes
    : new Fields(16).four(signatures.descriptor, crc, packed, size).bytes

export const centralHeader = (entry: Written, time: number): Uint8Array => {
  const { crc, isDirectory, method, mode, name, offset, packed, size } = entry
  const wide = [size, packed, offset].filter((value) => value >= max32)
  const extra = wide.length === 0 ? 0 : 4 + 8 * wide.length
  const made = ((mode === undefined ? 0 : unix) << 8) | version(extra > 0 || entry.isLarge)
  const fields = new Fields(46 + name.length + extra)
    .four(signatures.central)
    .two(made, version(extra > 0 || entry.isLarge), flagsOf(entry), method)
    .four(time, crc, Math.min(packed, max32), Math.min(size, max32))
    .two(name.length, extra, 0, 0, 0)
    .four((mode ?? 0) * 0x10000 + (isDirectory ? dosDirectory : 0), Math.min(offset, max32))
    .text(name)
  if (extra > 0) fields.two(1, extra - 4).eight(...wide)
  return fields.bytes
}

/**
 * Returns the end records of an archive whose central directory has `count` entries in `size` bytes at `offset`.
 * `comment` must be ASCII.
 */
export const ending = (count: number, size: number, offset: number, comment = ""): Uint8Array => {
  const isWide = count >= max16 || size >= max32 || offset >= max32
  const fields = new Fields((isWide ? 56 + 20 + 22 : 22) + comment.length)
  if (isWide) {
    fields.four(signatures.end64).eight(44).two(45, 45).four(0, 0).eight(count, count, size, offset)
    fields
      .four(signatures.locator64, 0)
      .eight(offset + size)
      .four(1)
  }
  const few = Math.min(count, max16)
  fields.four(signatures.end).two(0, 0, few, few).four(Math.min(size, max32), Math.min(offset, max32))
  return fields.two(comment.length).text(Buffer.from(comment, "latin1")).bytes
}
