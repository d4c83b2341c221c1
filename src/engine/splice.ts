/**
 * Replacing in the bytes what was found in the text: everything outside the replacements is copied, never written anew, so encoding,
 * byte order mark, line endings and the last newline cannot change.
 */
import type { Fault } from "../model/FsError.ts"
import type { Replacement } from "./diff.ts"
import { decode, encode } from "./text.ts"

/** Bytes as text, a byte order mark included, and the way back for its parts. */
export interface Document {
  readonly bytes: Uint8Array
  readonly text: string
  readonly encode: (text: string) => Uint8Array
  /** Bytes of the part of the text between two indices. */
  readonly size: (from: number, to: number) => number
}

/** UTF-8, or UTF-16 where its byte order mark says so; anything else is NotText. */
export const documentOf = (bytes: Uint8Array): Document | Fault => {
  const [first, second] = bytes
  // With two zero bytes behind it, this is the mark of UTF-32.
  const little = first === 0xff && second === 0xfe && !(bytes.length >= 4 && bytes[2] === 0 && bytes[3] === 0)
  const wide = little || (first === 0xfe && second === 0xff)
  const text = decode(bytes, wide ? (little ? "utf-16le" : "utf-16be") : "utf-8")
  if (typeof text !== "string") return text
  if (wide) return { bytes, text, encode: (text) => utf16(text, little), size: (from, to) => (to - from) * 2 }
  return {
    bytes,
    text,
    encode: (text) => encode(text) as Uint8Array,
    size: text.length === bytes.length ? (from, to) => to - from : (from, to) => utf8Size(text, from, to)
  }
}

const utf16 = (text: string, little: boolean): Uint8Array => {
  const bytes = new Uint8Array(text.length * 2)
  const view = new DataView(bytes.buffer)
  for (let i = 0; i < text.length; i++) view.setUint16(i * 2, text.charCodeAt(i), little)
  return bytes
}

const utf8Size = (text: string, from: number, to: number): number => {
  let size = to - from
  for (let i = from; i < to; i++) {
    const unit = text.charCodeAt(i)
    // A pair of surrogates is four bytes, two for each.
    if (unit >= 0x80) size += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2
  }
  return size
}

/** The bytes with the replacements in, which are in order and do not overlap. */
export const splice = ({ bytes, encode, size }: Document, replacements: ReadonlyArray<Replacement>): Uint8Array => {
  const encoded = new Map<string, Uint8Array>()
  let length = bytes.length
  for (const { end, start, text } of replacements) {
    let put = encoded.get(text)
    if (put === undefined) encoded.set(text, (put = encode(text)))
    length += put.length - size(start, end)
  }
  const out = new Uint8Array(length)
  let read = 0
  let written = 0
  let at = 0
  const keep = (count: number): void => {
    out.set(bytes.subarray(read, read + count), written)
    read += count
    written += count
  }
  for (const { end, start, text } of replacements) {
    keep(size(at, start))
    const put = encoded.get(text)!
    out.set(put, written)
    written += put.length
    read += size(start, end)
    at = end
  }
  keep(bytes.length - read)
  return out
}
