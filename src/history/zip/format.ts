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

export interface EntryRecord {
  readonly name: Buffer
  readonly method: number
  /** Type and permission bits; `undefined` if the entry has no mode. */
  readonly mode: number | undefined
  readonly isDirectory: boolean
  /** True if sizes and checksum follow after the data. */
  readonly hasDescriptor: boolean
  /** True if a size may need 64 bits. */
  readonly mayNeed64Bits: boolean
  readonly offset: number
  crc: number
  packed: number
  size: number
}

/** The range of times that the format can express: 1980 to 2107, in milliseconds since 1970. */
const minTimeMillis = 315_532_800_000
const maxTimeMillis = 4_354_819_198_000

/** Converts a time to the MS-DOS format, which has a resolution of two seconds. */
export const dosTime = (milliseconds: number): number => {
  const at = DateTime.makeUnsafe(Math.min(Math.max(milliseconds, minTimeMillis), maxTimeMillis))
  const { day, hour, minute, month, second, year } = DateTime.toPartsUtc(at)
  const date = ((year - 1980) << 9) | (month << 5) | day
  return date * 0x10000 + ((hour << 11) | (minute << 5) | (second >> 1))
}

class FieldWriter {
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

const flagsOf = ({ hasDescriptor }: EntryRecord): number => flag.utf8 | (hasDescriptor ? flag.descriptor : 0)

export const localHeader = (entry: EntryRecord, time: number): Uint8Array => {
  const { crc, mayNeed64Bits, hasDescriptor, method, name, packed, size } = entry
  const fields = new FieldWriter(30 + name.length + (mayNeed64Bits ? 20 : 0))
    .four(signatures.local)
    .two(version(mayNeed64Bits), flagsOf(entry), method)
    .four(time, hasDescriptor ? 0 : crc)
  if (mayNeed64Bits) fields.four(max32, max32)
  else fields.four(hasDescriptor ? 0 : packed, hasDescriptor ? 0 : size)
  fields.two(name.length, mayNeed64Bits ? 20 : 0).text(name)
  if (mayNeed64Bits) fields.two(1, 16).eight(hasDescriptor ? 0 : size, hasDescriptor ? 0 : packed)
  return fields.bytes
}

export const descriptor = ({ crc, mayNeed64Bits, packed, size }: EntryRecord): Uint8Array =>
  mayNeed64Bits
    ? new FieldWriter(24).four(signatures.descriptor, crc).eight(packed, size).bytes
    : new FieldWriter(16).four(signatures.descriptor, crc, packed, size).bytes

export const centralHeader = (entry: EntryRecord, time: number): Uint8Array => {
  const { crc, isDirectory, method, mode, name, offset, packed, size } = entry
  const wide = [size, packed, offset].filter((value) => value >= max32)
  const extra = wide.length === 0 ? 0 : 4 + 8 * wide.length
  const made = ((mode === undefined ? 0 : unix) << 8) | version(extra > 0 || entry.mayNeed64Bits)
  const fields = new FieldWriter(46 + name.length + extra)
    .four(signatures.central)
    .two(made, version(extra > 0 || entry.mayNeed64Bits), flagsOf(entry), method)
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
export const endRecords = (count: number, size: number, offset: number, comment = ""): Uint8Array => {
  const isWide = count >= max16 || size >= max32 || offset >= max32
  const fields = new FieldWriter((isWide ? 56 + 20 + 22 : 22) + comment.length)
  if (isWide) {
    fields.four(signatures.end64).eight(44).two(45, 45).four(0, 0).eight(count, count, size, offset)
    fields
      .four(signatures.locator64, 0)
      .eight(offset + size)
      .four(1)
  }
  const clampedCount = Math.min(count, max16)
  fields.four(signatures.end).two(0, 0, clampedCount, clampedCount).four(Math.min(size, max32), Math.min(offset, max32))
  return fields.two(comment.length).text(Buffer.from(comment, "latin1")).bytes
}
