/**
 * The subset of CBOR (RFC 8949) that nodes use: integers, byte strings, texts, lists and null, in the deterministic encoding of
 * section 4.2.
 *
 * The reader accepts exactly what the encoder writes, so a node need not be encoded again to check it.
 */
import { Buffer } from "../../runtime/buffer.ts"

export type Value = number | string | Uint8Array | null | ReadonlyArray<Value>

const uint = 0
const negative = 1
const byteString = 2
const textString = 3
const list = 4

const nullByte = 0xf6

const notCanonical = "it is not deterministic CBOR"

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

/** The error for bytes that `encode` does not write, or that are no node. */
export class Malformed extends Error {}

export const refuse = (detail: string): never => {
  throw new Malformed(detail)
}

/** Reads the values of a node one after another. Each method throws `Malformed` unless the next value has its type. */
export class Reader {
  readonly #buffer: Buffer
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  get isAtEnd(): boolean {
    return this.#at === this.#buffer.length
  }

  get major(): number {
    return this.#buffer[this.#at]! >> 5
  }

  /** Returns the argument of a head, which must have the shortest encoding. */
  #argument(first: number): number {
    const info = first & 31
    if (info < 24) return info
    const size = 2 ** (info - 24)
    if (info > 27 || this.#at + size > this.#buffer.length) return refuse(notCanonical)
    let value = 0
    for (let i = 0; i < size; i++) value = value * 256 + this.#buffer[this.#at++]!
    const least = size === 1 ? 24 : 256 ** (size / 2)
    return value < least || value > Number.MAX_SAFE_INTEGER ? refuse(notCanonical) : value
  }

  #head(major: number): number {
    if (this.#at >= this.#buffer.length) return refuse(notCanonical)
    const first = this.#buffer[this.#at]!
    if (first >> 5 !== major) return refuse("a value has the wrong type")
    this.#at++
    return this.#argument(first)
  }

  /** Returns the start of the next bytes or text, and moves to its end. */
  #span(major: number, maxBytes: number): number {
    const length = this.#head(major)
    const start = this.#at
    if (length > this.#buffer.length - start) return refuse(notCanonical)
    if (length > maxBytes) return refuse("a value is too long")
    this.#at += length
    return start
  }

  /** Skips a null, and returns true. Returns false for any other value. */
  isNull(): boolean {
    if (this.#buffer[this.#at] !== nullByte) return false
    this.#at++
    return true
  }

  /** Reads the head of a list, and returns the number of its items. */
  list(): number {
    const length = this.#head(list)
    // Each item has at least one byte.
    return length > this.#buffer.length - this.#at ? refuse(notCanonical) : length
  }

  int(): number {
    const major = this.major
    if (major !== negative) return this.#head(uint)
    const argument = this.#head(negative)
    return argument === Number.MAX_SAFE_INTEGER ? refuse(notCanonical) : -1 - argument
  }

  text(maxBytes: number): string {
    const start = this.#span(textString, maxBytes)
    const text = this.#buffer.toString("utf8", start, this.#at)
    // Bytes that are not UTF-8 are decoded to this character, which a valid text may also contain.
    return text.includes("\ufffd") && Buffer.compare(Buffer.from(text), this.#buffer.subarray(start, this.#at)) !== 0
      ? refuse(notCanonical)
      : text
  }

  /** Returns bytes that share the memory of the node. */
  bytes(maxBytes: number): Uint8Array {
    const start = this.#span(byteString, maxBytes)
    return new Uint8Array(this.#buffer.buffer, this.#buffer.byteOffset + start, this.#at - start)
  }

  /** Returns a number of bytes in hexadecimal. */
  hex(length: number): string {
    const start = this.#span(byteString, length)
    return this.#at - start === length ? this.#buffer.toString("hex", start, this.#at) : refuse("a hash has the wrong length")
  }
}
