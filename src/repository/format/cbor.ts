/**
 * The subset of CBOR (RFC 8949) that nodes use: integers, byte strings, texts, lists and null, in the deterministic encoding of
 * section 4.2.
 *
 * The decoder accepts exactly what the encoder writes, so a node need not be encoded again to check it.
 */
import { Buffer } from "../../runtime/buffer.ts"

export type Value = number | string | Uint8Array | null | ReadonlyArray<Value>

const uint = 0
const negative = 1
const byteString = 2
const textString = 3
const list = 4

const nullByte = 0xf6
/** The maximum nesting of lists. Nodes use four levels. */
const maxNesting = 8

class Writer {
  #bytes = new Uint8Array(128 * 1024)
  #length = 0

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + count))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }

  #big(value: number, count: number): void {
    let rest = value
    for (let at = this.#length + count - 1; at >= this.#length; at--) {
      this.#bytes[at] = rest % 256
      rest = Math.floor(rest / 256)
    }
    this.#length += count
  }

  #head(major: number, value: number): void {
    this.#reserve(9)
    const size = value < 24 ? 0 : value < 0x100 ? 1 : value < 0x1_0000 ? 2 : value < 0x1_0000_0000 ? 4 : 8
    this.#bytes[this.#length++] = (major << 5) | (size === 0 ? value : 24 + Math.log2(size))
    this.#big(value, size)
  }

  #text(text: string): void {
    this.#head(textString, Buffer.byteLength(text))
    this.#reserve(3 * text.length)
    const bytes = this.#bytes
    const start = this.#length
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      if (unit >= 0x80) {
        const all = Buffer.from(text)
        bytes.set(all, start)
        this.#length = start + all.length
        return
      }
      bytes[start + i] = unit
    }
    this.#length += text.length
  }

  write(value: Value): void {
    if (typeof value === "number") {
      if (!Number.isSafeInteger(value))
        throw new Error(`a node cannot contain the number ${value}: it is not a whole number of at most 53 bits`)
      if (value >= 0) this.#head(uint, value)
      else this.#head(negative, -1 - value)
    } else if (typeof value === "string") {
      this.#text(value)
    } else if (value === null) {
      this.#reserve(1)
      this.#bytes[this.#length++] = nullByte
    } else if (value instanceof Uint8Array) {
      this.#head(byteString, value.length)
      this.#reserve(value.length)
      this.#bytes.set(value, this.#length)
      this.#length += value.length
    } else {
      this.#head(list, value.length)
      for (const item of value) this.write(item)
    }
  }

  /** Returns a copy of the encoded bytes of a value. */
  encode(value: Value): Uint8Array {
    this.#length = 0
    this.write(value)
    return this.#bytes.slice(0, this.#length)
  }
}

let writer: Writer | undefined

export const encode = (value: Value): Uint8Array => (writer ??= new Writer()).encode(value)

class Reader {
  readonly #buffer: Buffer
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  get isAtEnd(): boolean {
    return this.#at === this.#buffer.length
  }

  /**
   * Returns the argument of a head, or -1 if the head is truncated, is not the shortest encoding, or has a number above 2^53 -
   * 1.
   */
  #argument(info: number): number {
    if (info < 24) return info
    const size = 2 ** (info - 24)
    if (info > 27 || this.#at + size > this.#buffer.length) return -1
    let value = 0
    for (let i = 0; i < size; i++) value = value * 256 + this.#buffer[this.#at++]!
    const least = size === 1 ? 24 : 256 ** (size / 2)
    return value < least || value > Number.MAX_SAFE_INTEGER ? -1 : value
  }

  /** Returns the next value, or `undefined` for bytes that the encoder does not write. */
  read(nesting: number): Value | undefined {
    const buffer = this.#buffer
    if (this.#at >= buffer.length) return undefined
    const first = buffer[this.#at++]!
    if (first === nullByte) return null
    const argument = this.#argument(first & 31)
    if (argument < 0) return undefined
    const start = this.#at
    switch (first >> 5) {
      case uint:
        return argument
      case negative:
        return argument === Number.MAX_SAFE_INTEGER ? undefined : -1 - argument
      case byteString:
        if (argument > buffer.length - start) return undefined
        this.#at += argument
        return new Uint8Array(buffer.buffer, buffer.byteOffset + start, argument)
      case textString: {
        if (argument > buffer.length - start) return undefined
        this.#at += argument
        const text = buffer.toString("utf8", start, this.#at)
        // Bytes that are not UTF-8 are decoded to this character, which a valid text may also contain.
        return text.includes("\ufffd") && Buffer.compare(Buffer.from(text), buffer.subarray(start, this.#at)) !== 0
          ? undefined
          : text
      }
      case list: {
        // Each item has at least one byte.
        if (argument > buffer.length - start || nesting === 0) return undefined
        const items: Array<Value> = []
        for (let i = 0; i < argument; i++) {
          const item = this.read(nesting - 1)
          if (item === undefined) return undefined
          items.push(item)
        }
        return items
      }
      default:
        return undefined
    }
  }
}

/** Decodes bytes that `encode` writes, and returns `undefined` for all other bytes. Byte strings share the memory of `bytes`. */
export const decode = (bytes: Uint8Array): Value | undefined => {
  const reader = new Reader(bytes)
  const value = reader.read(maxNesting)
  return reader.isAtEnd ? value : undefined
}
