/** Exports Node's Buffer, or without Node a replacement that has the methods that portable code uses. */

/** The number of characters per call of `String.fromCharCode`. Engines limit the number of arguments. */
const maxCharCodes = 8192

const encoder = new TextEncoder()
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })

const latin1Of = (bytes: Uint8Array): string => {
  let text = ""
  for (let at = 0; at < bytes.length; at += maxCharCodes) text += String.fromCharCode(...bytes.subarray(at, at + maxCharCodes))
  return text
}

const fromLatin1 = (text: string): Uint8Array => {
  const bytes = new Uint8Array(text.length)
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i)
  return bytes
}

const hexOf = (bytes: Uint8Array): string => {
  let text = ""
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0")
  return text
}

/** Decodes UTF-16. Keeps lone surrogates, which a TextDecoder would replace. */
const utf16Of = (bytes: Uint8Array): string => {
  let text = ""
  for (let at = 0; at + 1 < bytes.length; at += 2) text += String.fromCharCode(bytes[at]! | (bytes[at + 1]! << 8))
  return text
}

/** Decodes hexadecimal digits. Stops at the first pair that is not two digits, as Node does. */
const fromHex = (text: string): Uint8Array => {
  const pairs = /^(?:[0-9a-f]{2})*/i.exec(text)![0]
  const bytes = new Uint8Array(pairs.length / 2)
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(pairs.slice(2 * i, 2 * i + 2), 16)
  return bytes
}

/** Decodes Base64. Accepts the URL alphabet too, ignores other characters, and ends at the first "=", as Node does. */
const fromBase64 = (text: string): Uint8Array => {
  const digits = text
    .split("=", 1)[0]!
    .replaceAll("-", "+")
    .replaceAll("_", "/")
    .replaceAll(/[^A-Za-z0-9+/]/g, "")
  return fromLatin1(atob(digits.length % 4 === 1 ? digits.slice(0, -1) : digits))
}

const encodings = {
  utf8: { encode: (text: string): Uint8Array => encoder.encode(text), decode: (bytes: Uint8Array) => utf8.decode(bytes) },
  latin1: { encode: fromLatin1, decode: latin1Of },
  hex: { encode: fromHex, decode: hexOf },
  base64: { encode: fromBase64, decode: (bytes: Uint8Array) => btoa(latin1Of(bytes)) },
  utf16le: { encode: undefined, decode: utf16Of }
} as const

type Encoding = keyof typeof encodings

export class PortableBuffer extends Uint8Array {
  static override from(
    value: string | ArrayBuffer | ArrayLike<number> | Iterable<number>,
    second?: unknown,
    length?: unknown
  ): PortableBuffer {
    if (typeof value === "string") {
      const bytes = (encodings[(second as Encoding | undefined) ?? "utf8"].encode as (text: string) => Uint8Array<ArrayBuffer>)(
        value
      )
      return new PortableBuffer(bytes.buffer, bytes.byteOffset, bytes.length)
    }
    if ("byteLength" in value && !ArrayBuffer.isView(value)) {
      return new PortableBuffer(value as ArrayBuffer, second as number | undefined, length as number | undefined)
    }
    return new PortableBuffer(value as ArrayLike<number>)
  }

  static alloc(length: number): PortableBuffer {
    return new PortableBuffer(length)
  }

  static allocUnsafe(length: number): PortableBuffer {
    return new PortableBuffer(length)
  }

  static allocUnsafeSlow(length: number): PortableBuffer {
    return new PortableBuffer(length)
  }

  static byteLength(text: string, encoding: "utf8" | "base64" = "utf8"): number {
    if (encoding === "base64") return Math.floor((text.replace(/={1,2}$/, "").length * 3) / 4)
    let length = text.length
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      if (unit < 0x80) continue
      const isPair = (unit & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00
      length += unit < 0x800 ? 1 : 2
      if (isPair) i++
    }
    return length
  }

  static compare(one: Uint8Array, other: Uint8Array): -1 | 0 | 1 {
    const length = Math.min(one.length, other.length)
    for (let i = 0; i < length; i++) if (one[i] !== other[i]) return one[i]! < other[i]! ? -1 : 1
    return one.length === other.length ? 0 : one.length < other.length ? -1 : 1
  }

  static concat(parts: ReadonlyArray<Uint8Array>): PortableBuffer {
    const all = new PortableBuffer(parts.reduce((sum, { length }) => sum + length, 0))
    let end = 0
    for (const part of parts) {
      all.set(part, end)
      end += part.length
    }
    return all
  }

  get #view(): DataView {
    return new DataView(this.buffer, this.byteOffset, this.length)
  }

  override toString(encoding: Encoding = "utf8", start = 0, end = this.length): string {
    return encodings[encoding].decode(new Uint8Array(this.buffer, this.byteOffset, this.length).subarray(start, end))
  }

  equals(other: Uint8Array): boolean {
    return PortableBuffer.compare(this, other) === 0
  }

  write(text: string, at: number, encoding: "latin1"): number {
    this.set(encodings[encoding].encode(text), at)
    return text.length
  }

  readUInt16LE(at = 0): number {
    return this.#view.getUint16(at, true)
  }

  readUInt32LE(at = 0): number {
    return this.#view.getUint32(at, true)
  }

  readBigUInt64LE(at = 0): bigint {
    return this.#view.getBigUint64(at, true)
  }

  writeUInt16LE(value: number, at = 0): number {
    this.#view.setUint16(at, value, true)
    return at + 2
  }

  writeUInt32LE(value: number, at = 0): number {
    this.#view.setUint32(at, value, true)
    return at + 4
  }

  writeBigUInt64LE(value: bigint, at = 0): number {
    this.#view.setBigUint64(at, value, true)
    return at + 8
  }
}

export type Buffer<T extends ArrayBufferLike = ArrayBufferLike> = globalThis.Buffer<T>

export const Buffer: typeof globalThis.Buffer = globalThis.Buffer ?? (PortableBuffer as unknown as typeof globalThis.Buffer)

/** Returns a copy of the bytes of all chunks. A copy is necessary, because the source of a chunk may reuse its buffer. */
export const concatenate = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => {
  const out = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}
