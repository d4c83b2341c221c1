/** The packets of the SSH file transfer protocol, version 3, with the extensions of OpenSSH. */
import { ioError } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"

export const protocolVersion = 3

export const Type = {
  init: 1,
  version: 2,
  open: 3,
  close: 4,
  read: 5,
  write: 6,
  lstat: 7,
  fstat: 8,
  setstat: 9,
  fsetstat: 10,
  opendir: 11,
  readdir: 12,
  remove: 13,
  mkdir: 14,
  rmdir: 15,
  realpath: 16,
  stat: 17,
  rename: 18,
  readlink: 19,
  symlink: 20,
  status: 101,
  handle: 102,
  data: 103,
  name: 104,
  attrs: 105,
  extended: 200,
  extendedReply: 201
} as const

export const StatusCode = {
  ok: 0,
  endOfFile: 1,
  noSuchFile: 2,
  permissionDenied: 3,
  failure: 4,
  badMessage: 5,
  unsupported: 8
} as const

export const OpenFlag = { read: 1, write: 2, append: 4, create: 8, truncate: 16, exclusive: 32 } as const

/** The flags of the attributes that a packet contains. */
const AttributeFlag = { size: 1, owner: 2, permissions: 4, times: 8, extended: 0x8000_0000 } as const

/** The attributes of an entry. A server may omit any attribute. */
export interface Attributes {
  readonly size?: number | undefined
  readonly uid?: number | undefined
  readonly gid?: number | undefined
  /** The permission bits, and the kind of the entry in the bits of `S_IFMT`. */
  readonly mode?: number | undefined
  /** The access time, in whole seconds since 1970. `modified` is the modification time. */
  readonly accessed?: number | undefined
  readonly modified?: number | undefined
}

export interface Listed {
  readonly name: Buffer
  readonly attributes: Attributes
}

export const protocolFault = (detail: string): Fault => ioError(`the server breaks the SFTP protocol: ${detail}`, "EPROTO")

/** The error for an answer that does not conform to the protocol. */
export class Malformed extends Error {}

/** The maximum length in bytes of a name or of a symlink target. Systems permit 255 bytes in a name and 4096 in a path. */
const maxNameBytes = 4 * 1024

/** Reads the fields of a packet. Throws Malformed if the packet ends within a field, or a value is too large. */
export class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  #take(length: number): number {
    const from = this.#at
    if (length > this.#bytes.length - from) throw new Malformed("a packet ends within a field")
    this.#at = from + length
    return from
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#take(1))
  }

  u32(): number {
    return this.#bytes.readUInt32BE(this.#take(4))
  }

  u64(): number {
    const value = Number(this.#bytes.readBigUInt64BE(this.#take(8)))
    if (!Number.isSafeInteger(value)) throw new Malformed("a number is larger than any file")
    return value
  }

  bytes(): Buffer {
    const length = this.u32()
    const from = this.#take(length)
    return this.#bytes.subarray(from, from + length)
  }

  attributes(): Attributes {
    const flags = this.u32()
    const size = flags & AttributeFlag.size ? this.u64() : undefined
    const hasOwner = (flags & AttributeFlag.owner) !== 0
    const uid = hasOwner ? this.u32() : undefined
    const gid = hasOwner ? this.u32() : undefined
    const mode = flags & AttributeFlag.permissions ? this.u32() : undefined
    const hasTimes = (flags & AttributeFlag.times) !== 0
    const accessed = hasTimes ? this.u32() : undefined
    const modified = hasTimes ? this.u32() : undefined
    if (flags & AttributeFlag.extended) {
      for (let left = this.u32(); left > 0; left--) {
        this.bytes()
        this.bytes()
      }
    }
    return { size, uid, gid, mode, accessed, modified }
  }

  names(): Array<Listed> {
    const out: Array<Listed> = []
    for (let left = this.u32(); left > 0; left--) {
      // Copy the name, because a view would keep the whole packet in memory.
      const bytes = this.bytes()
      if (bytes.length > maxNameBytes) throw new Malformed(`it sends a name of ${bytes.length} bytes`)
      const name = Buffer.from(bytes)
      this.bytes()
      out.push({ name, attributes: this.attributes() })
    }
    return out
  }
}

/** A field of a request: a number of 32 bits, a number of 64 bits, a string, or attributes. */
export type Field = number | bigint | string | Uint8Array | Attributes

/** The maximum size of attributes in a packet, in bytes. */
const maxAttributeBytes = 36

/** Writes attributes into a packet. Returns the end of the attributes. */
const putAttributes = (out: Buffer, start: number, attributes: Attributes): number => {
  const { accessed, gid, mode, modified, size, uid } = attributes
  let flags = 0
  let at = start + 4
  if (size !== undefined) {
    flags |= AttributeFlag.size
    at = out.writeBigUInt64BE(BigInt(size), at)
  }
  if (uid !== undefined && gid !== undefined) {
    flags |= AttributeFlag.owner
    at = out.writeUInt32BE(gid, out.writeUInt32BE(uid, at))
  }
  if (mode !== undefined) {
    flags |= AttributeFlag.permissions
    at = out.writeUInt32BE(mode, at)
  }
  if (accessed !== undefined && modified !== undefined) {
    flags |= AttributeFlag.times
    at = out.writeUInt32BE(modified, out.writeUInt32BE(accessed, at))
  }
  out.writeUInt32BE(flags, start)
  return at
}

const maxBytesOf = (field: Field): number => {
  if (typeof field === "number") return 4
  if (typeof field === "bigint") return 8
  if (typeof field === "string") return 4 + Buffer.byteLength(field)
  return field instanceof Uint8Array ? 4 + field.length : maxAttributeBytes
}

/** Writes a field into a packet. Returns the end of the field. */
const putField = (out: Buffer, at: number, field: Field): number => {
  if (typeof field === "number") return out.writeUInt32BE(field, at)
  if (typeof field === "bigint") return out.writeBigUInt64BE(field, at)
  if (typeof field === "string") {
    const length = out.write(field, at + 4)
    return out.writeUInt32BE(length, at) + length
  }
  if (!(field instanceof Uint8Array)) return putAttributes(out, at, field)
  out.set(field, at + 4)
  return out.writeUInt32BE(field.length, at) + field.length
}

/** The bytes of a packet before its fields: its length, its type and its id. */
const headerBytes = 9

/**
 * Makes a packet. `id` is the number of the request or, in the first packet, the version of the protocol. If `content` is given,
 * the packet ends with the length of the content, and the caller sends the content after the packet.
 */
export const makePacket = (type: number, id: number, fields: ReadonlyArray<Field>, content?: Uint8Array): Buffer => {
  const out = Buffer.allocUnsafe(fields.reduce<number>((sum, field) => sum + maxBytesOf(field), headerBytes + 4))
  let end = headerBytes
  for (const field of fields) end = putField(out, end, field)
  if (content !== undefined) end = out.writeUInt32BE(content.length, end)
  out.writeUInt32BE(end - 4 + (content?.length ?? 0), 0)
  out.writeUInt8(type, 4)
  out.writeUInt32BE(id, 5)
  return out.subarray(0, end)
}
