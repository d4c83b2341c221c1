/**
 * Reads and writes the records of a ZIP archive.
 *
 * A read compares the names, methods, sizes and checksums that an archive records several times. Unused bytes between entries
 * are an error, because two readers may interpret such bytes differently.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import { Buffer } from "../../runtime/buffer.ts"
import type { ArchiveError } from "../errors.ts"
import { refuse, tryArchive } from "./names.ts"
import type { Source } from "./spool.ts"

const signatures = {
  local: 0x04034b50,
  central: 0x02014b50,
  end: 0x06054b50,
  end64: 0x06064b50,
  locator64: 0x07064b50,
  descriptor: 0x08074b50
} as const

const max16 = 0xffff
const max32 = 0xffffffff

const flag = { encrypted: 1, descriptor: 8, patched: 0x20, strong: 0x40, utf8: 0x800, masked: 0x2000 } as const
export const stored = 0
export const deflated = 8

export const unix = 3
export const fileType = 0o100000
export const directoryType = 0o040000
export const linkType = 0o120000

/** The directory bit of MS-DOS in the low half of the attributes. Some readers recognise directories by this bit only. */
const dosDirectory = 0x10

export interface EntryRecord {
  readonly name: Buffer
  readonly method: number
  /** The file type and permission bits. `undefined` if the entry has no mode. */
  readonly mode: number | undefined
  readonly isDirectory: boolean
  /** True if the sizes and the checksum follow the data. */
  readonly hasDescriptor: boolean
  readonly mayNeed64Bits: boolean
  readonly offset: number
  crc: number
  packed: number
  size: number
}

/** The range of times that the format supports: 1980 to 2107, in milliseconds since 1970. */
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
    this.#bytes = Buffer.allocUnsafe(length)
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

export interface CentralEntry {
  readonly name: string
  readonly rawName: Uint8Array
  readonly host: number
  readonly flags: number
  readonly method: number
  readonly crc: number
  readonly packed: number
  readonly size: number
  /** The external attributes. For a Unix host the upper half contains the file type and the mode. */
  readonly attributes: number
  readonly offset: number
}

export interface CentralDirectory {
  readonly entries: ReadonlyArray<CentralEntry>
  readonly offset: number
  readonly comment: string
}

const corrupt = (detail: string, entry?: string) => refuse("corrupt", detail, entry)

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)

const readUint64 = (bytes: Buffer, at: number): number => {
  const value = bytes.readBigUInt64LE(at)
  if (value > BigInt(Number.MAX_SAFE_INTEGER))
    throw corrupt("the archive has a 64-bit field with a value that is too large for any file")
  return Number(value)
}

export class Window {
  readonly #source: Source
  #block: Buffer = Buffer.alloc(0)
  #start = 0

  constructor(source: Source) {
    this.#source = source
  }

  bytes(offset: number, length: number): Effect.Effect<Buffer, ArchiveError | Fault> {
    if (offset + length > this.#source.size) return Effect.fail(corrupt("the archive is truncated"))
    const at = offset - this.#start
    if (at >= 0 && at + length <= this.#block.length) return Effect.succeed(this.#block.subarray(at, at + length))
    const ahead = Math.min(Math.max(length, blockBytes), this.#source.size - offset)
    return Effect.map(this.#source.read(offset, ahead), (bytes) => {
      this.#block = bufferOf(bytes)
      this.#start = offset
      return this.#block.subarray(0, length)
    })
  }
}

const blockBytes = 256 * 1024

interface End {
  readonly count: number
  readonly size: number
  readonly offset: number
  readonly comment: string
}

const endLength = 22
const locatorLength = 20
const end64Length = 56

/** Finds the end record. The comment in the record must reach the end of the file, so that nothing follows the archive. */
const findEndRecord = (tail: Buffer): number => {
  let at = tail.length - endLength
  while (at >= 0 && tail.readUInt32LE(at) !== signatures.end) at--
  if (at < 0) throw corrupt("the file is not a ZIP archive, or it is truncated")
  const end = at + endLength + tail.readUInt16LE(at + 20)
  if (end > tail.length) throw corrupt("the comment at the end of the archive is truncated")
  if (end < tail.length) throw corrupt("the archive has bytes after its end")
  return at
}

const parseEnd = (end: Buffer): End & { readonly disks: ReadonlyArray<number> } => ({
  disks: [end.readUInt16LE(4), end.readUInt16LE(6)],
  count: end.readUInt16LE(10),
  size: end.readUInt32LE(12),
  offset: end.readUInt32LE(16),
  comment: end.toString("latin1", endLength)
})

const checkSingleDisk = (disks: ReadonlyArray<number>, counts: readonly [number, number]): void => {
  if (disks.some((disk) => disk !== 0) || counts[0] !== counts[1]) {
    throw refuse("unsupported", "the file is one part of a split archive, which is not supported")
  }
}

const checkAgreement = (small: number, sentinel: number, large: number): void => {
  if (small !== sentinel && small !== large) throw corrupt("the two end records of the archive disagree")
}

const end64 = (record: Buffer, small: End): End => {
  if (record.readUInt32LE(0) !== signatures.end64 || readUint64(record, 4) !== end64Length - 12) {
    throw corrupt("the 64-bit end record is missing or invalid")
  }
  const found = {
    count: readUint64(record, 32),
    size: readUint64(record, 40),
    offset: readUint64(record, 48),
    comment: small.comment
  }
  checkSingleDisk([record.readUInt32LE(16), record.readUInt32LE(20)], [readUint64(record, 24), found.count])
  checkAgreement(small.count, max16, found.count)
  checkAgreement(small.size, max32, found.size)
  checkAgreement(small.offset, max32, found.offset)
  return found
}

const findEnd = Effect.fnUntraced(function* (source: Source): Effect.fn.Return<End, ArchiveError | Fault> {
  const length = Math.min(source.size, endLength + max16 + locatorLength + end64Length)
  const start = source.size - length
  const tail = bufferOf(yield* source.read(start, length))
  const at = yield* tryArchive(() => {
    if (length < endLength) throw corrupt("the file is not a ZIP archive, or it is truncated")
    return findEndRecord(tail)
  })
  return yield* tryArchive(() => {
    const { disks, ...small } = parseEnd(tail.subarray(at))
    const isWide = at >= locatorLength && tail.readUInt32LE(at - locatorLength) === signatures.locator64
    if (!isWide) {
      checkSingleDisk(disks, [tail.readUInt16LE(at + 8), small.count])
      if (small.offset + small.size !== start + at) throw corrupt("the central directory is not at the recorded offset")
      return small
    }
    const locator = tail.subarray(at - locatorLength)
    const record = at - locatorLength - end64Length
    if (locator.readUInt32LE(4) !== 0 || locator.readUInt32LE(16) > 1) checkSingleDisk([1], [0, 0])
    if (record < 0 || readUint64(locator, 8) !== start + record)
      throw corrupt("the 64-bit end record is not at the recorded offset")
    const found = end64(tail.subarray(record), small)
    if (found.offset + found.size !== start + record) throw corrupt("the central directory is not at the recorded offset")
    return found
  })
})

const codePage437High =
  "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0"

/** Decodes code page 437, which is the encoding of names without the UTF-8 flag. */
const decodeCodePage437 = (bytes: Uint8Array): string => {
  let text = ""
  for (const byte of bytes) text += byte < 128 ? String.fromCharCode(byte) : codePage437High[byte - 128]
  return text
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

export const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

const nameOf = (bytes: Uint8Array, flags: number): string => {
  const name = (flags & flag.utf8) === 0 ? decodeCodePage437(bytes) : textOf(bytes)
  if (name === undefined) throw refuse("name", "the name is marked as UTF-8 but is not valid UTF-8", decodeCodePage437(bytes))
  return name
}

const extraOf = (extra: Buffer, wanted: number, entry: string): Buffer | undefined => {
  let found: Buffer | undefined
  for (let at = 0; at < extra.length;) {
    const end = at + 4 <= extra.length ? at + 4 + extra.readUInt16LE(at + 2) : Number.POSITIVE_INFINITY
    if (end > extra.length) throw corrupt("the extra fields are malformed", entry)
    if (extra.readUInt16LE(at) === wanted) {
      if (found !== undefined) throw corrupt("the entry has the same extra field twice", entry)
      found = extra.subarray(at + 4, end)
    }
    at = end
  }
  return found
}

/** Replaces each 32-bit sentinel by its 64-bit value. The format defines the order of the values. */
const widenFields = (extra: Buffer, fields: ReadonlyArray<number>, entry: string): ReadonlyArray<number> => {
  const wanted = fields.filter((value) => value === max32).length
  if (wanted === 0) return fields
  const found = extraOf(extra, 1, entry)
  if (found === undefined || found.length < 8 * wanted) throw corrupt("a 64-bit size or offset is missing", entry)
  let next = 0
  return fields.map((value) => (value === max32 ? readUint64(found, 8 * next++) : value))
}

const checkMethod = (flags: number, method: number, name: string): void => {
  if ((flags & (flag.encrypted | flag.strong | flag.masked)) !== 0 || method === 99) {
    throw refuse("encrypted", "the entry is encrypted", name)
  }
  if ((flags & flag.patched) !== 0) throw refuse("unsupported", "the entry contains patch data, which is not supported", name)
  if (method !== stored && method !== deflated) {
    throw refuse(
      "unsupported",
      `the entry uses compression method ${method}; only 0 (stored) and 8 (deflate) are supported`,
      name
    )
  }
}

const headerLength = 46

const parseCentralEntry = (header: Buffer, rest: Buffer): CentralEntry => {
  const nameLength = header.readUInt16LE(28)
  const flags = header.readUInt16LE(8)
  const rawName = new Uint8Array(rest.subarray(0, nameLength))
  const name = nameOf(rawName, flags)
  const method = header.readUInt16LE(10)
  checkMethod(flags, method, name)
  if (header.readUInt16LE(34) !== 0)
    throw refuse("unsupported", "the entry is in another part of a split archive, which is not supported", name)
  const extra = rest.subarray(nameLength, nameLength + header.readUInt16LE(30))
  const fields = [header.readUInt32LE(24), header.readUInt32LE(20), header.readUInt32LE(42)]
  const [size, packed, offset] = widenFields(extra, fields, name) as [number, number, number]
  return {
    name,
    rawName,
    host: header.readUInt16LE(4) >> 8,
    flags,
    method,
    crc: header.readUInt32LE(16),
    packed,
    size,
    attributes: header.readUInt32LE(38),
    offset
  }
}

const entriesPerYield = 1024

export const readCentralDirectory = Effect.fnUntraced(function* (
  source: Source,
  maxEntries: number
): Effect.fn.Return<CentralDirectory, ArchiveError | Fault> {
  const end = yield* findEnd(source)
  if (end.count > maxEntries)
    return yield* Effect.fail(
      refuse(
        "tooLarge",
        `the archive has ${end.count} entries, but at most ${maxEntries} are allowed; raise maxArchiveEntries to accept it`
      )
    )
  const window = new Window(source)
  const entries: Array<CentralEntry> = []
  let at = end.offset
  for (let i = 1; i <= end.count; i++) {
    if (i % entriesPerYield === 0) yield* Effect.yieldNow
    const header = Buffer.from(yield* window.bytes(at, headerLength))
    if (header.readUInt32LE(0) !== signatures.central) return yield* Effect.fail(corrupt("the central directory is damaged"))
    const length = header.readUInt16LE(28) + header.readUInt16LE(30) + header.readUInt16LE(32)
    const rest = yield* window.bytes(at + headerLength, length)
    entries.push(yield* tryArchive(() => parseCentralEntry(header, rest)))
    at += headerLength + length
  }
  if (at !== end.offset + end.size) return yield* Effect.fail(corrupt("the central directory is damaged"))
  return { entries, offset: end.offset, comment: end.comment }
})

const localLength = 30

const meaningfulFlags = flag.encrypted | flag.descriptor | flag.patched | flag.strong | flag.utf8 | flag.masked

const sameName = (bytes: Buffer, { rawName }: CentralEntry): boolean => bytes.equals(rawName)

/** Checks the local header against the central directory. Returns the offset of the data. */
export const checkLocal = Effect.fnUntraced(function* (
  window: Window,
  entry: CentralEntry
): Effect.fn.Return<number, ArchiveError | Fault> {
  const header = Buffer.from(yield* window.bytes(entry.offset, localLength))
  if (header.readUInt32LE(0) !== signatures.local)
    return yield* Effect.fail(corrupt("the entry is not at the recorded offset", entry.name))
  const nameLength = header.readUInt16LE(26)
  const extraLength = header.readUInt16LE(28)
  const rest = yield* window.bytes(entry.offset + localLength, nameLength + extraLength)
  yield* tryArchive(() => {
    if (!sameName(rest.subarray(0, nameLength), entry))
      throw corrupt("the local header has another name than the central directory", entry.name)
    const isSame = ((header.readUInt16LE(6) ^ entry.flags) & meaningfulFlags) === 0 && header.readUInt16LE(8) === entry.method
    if (!isSame) throw corrupt("the local header does not match the central directory", entry.name)
    const fields = [header.readUInt32LE(22), header.readUInt32LE(18)]
    const [size, packed] = widenFields(rest.subarray(nameLength), fields, entry.name) as [number, number]
    const isLater = (entry.flags & flag.descriptor) !== 0
    const agrees = (said: number, is: number): boolean => said === is || (isLater && said === 0)
    if (!agrees(header.readUInt32LE(14), entry.crc) || !agrees(packed, entry.packed) || !agrees(size, entry.size)) {
      throw corrupt("the local header does not match the central directory", entry.name)
    }
  })
  return entry.offset + localLength + nameLength + extraLength
})

/** The layouts of a data descriptor by its length: with or without a signature, with 32-bit or 64-bit sizes. */
const descriptors: Readonly<Record<number, readonly [signed: boolean, isWide: boolean]>> = {
  12: [false, false],
  16: [true, false],
  20: [false, true],
  24: [true, true]
}

export const checkGap = (
  window: Window,
  entry: CentralEntry,
  end: number,
  next: number
): Effect.Effect<void, ArchiveError | Fault> => {
  const length = next - end
  if (length < 0) return Effect.fail(corrupt("the entry overlaps another entry", entry.name))
  const layout = (entry.flags & flag.descriptor) === 0 ? undefined : descriptors[length]
  if (layout === undefined) {
    return length === 0 && (entry.flags & flag.descriptor) === 0
      ? Effect.void
      : Effect.fail(corrupt("the archive has unused bytes after this entry", entry.name))
  }
  return Effect.flatMap(window.bytes(end, length), (bytes) =>
    tryArchive(() => {
      const [signed, isWide] = layout
      const at = signed ? 4 : 0
      const sizes = isWide
        ? [readUint64(bytes, at + 4), readUint64(bytes, at + 12)]
        : [bytes.readUInt32LE(at + 4), bytes.readUInt32LE(at + 8)]
      const isSame = bytes.readUInt32LE(at) === entry.crc && sizes[0] === entry.packed && sizes[1] === entry.size
      if (!isSame || (signed && bytes.readUInt32LE(0) !== signatures.descriptor)) {
        throw corrupt("the data descriptor does not match the central directory", entry.name)
      }
    })
  )
}
