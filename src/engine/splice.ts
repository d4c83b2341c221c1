/**
 * Applies replacements, found in the text, to the bytes of a file.
 *
 * The bytes outside the replacements are copied and never re-encoded. So the encoding, the byte order mark, the line
 * endings and the last newline cannot change.
 */
import type { Fault } from "../model/FsError.ts"
import { perItem, type Steps, stride } from "../runtime/steps.ts"
import type { Replacement } from "./diff.ts"
import { decoded, encode } from "./text.ts"

export interface Document {
  readonly bytes: Uint8Array
  readonly text: string
  readonly encode: (text: string) => Steps<Uint8Array>
  readonly width: number | undefined
}

/** Decodes UTF-8, or UTF-16 if the byte order mark says so. Returns NotText for other bytes. */
export const documentOf = function* (bytes: Uint8Array): Steps<Document | Fault> {
  const [first, second] = bytes
  // Two zero bytes after this mark make it the mark of UTF-32.
  const little = first === 0xff && second === 0xfe && !(bytes.length >= 4 && bytes[2] === 0 && bytes[3] === 0)
  const wide = little || (first === 0xfe && second === 0xff)
  const text = yield* decoded(bytes, wide ? (little ? "utf-16le" : "utf-16be") : "utf-8")
  if (typeof text !== "string") return text
  if (wide) return { bytes, text, encode: (text) => utf16(text, little), width: 2 }
  return { bytes, text, encode: utf8, width: text.length === bytes.length ? 1 : undefined }
}

const utf8 = function* (text: string): Steps<Uint8Array> {
  yield text.length
  return encode(text) as Uint8Array
}

const utf16 = function* (text: string, little: boolean): Steps<Uint8Array> {
  const bytes = new Uint8Array(text.length * 2)
  const view = new DataView(bytes.buffer)
  for (let i = 0; i < text.length; i++) {
    view.setUint16(i * 2, text.charCodeAt(i), little)
    if (i % stride === stride - 1) yield stride
  }
  yield text.length % stride
  return bytes
}

const utf8Size = function* (text: string, from: number, to: number): Steps<number> {
  let size = to - from
  for (let i = from; i < to; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0x80) size += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2
    if ((i - from) % stride === stride - 1) yield stride
  }
  return size
}

/** V8 hashes strings of 16,384 or more units by their length alone. */
const maxKey = 4096

const perCopy = 64

/** Applies replacements, which must be in order and must not overlap. */
export const splice = function* (
  { bytes, encode, text: before, width }: Document,
  replacements: ReadonlyArray<Replacement>
): Steps<Uint8Array> {
  const encoded = new Map<string, Uint8Array>()
  const puts: Array<Uint8Array> = []
  const kept = new Float64Array(replacements.length)
  const removed = new Float64Array(replacements.length)
  let length = bytes.length
  let at = 0
  let spent = 0
  for (let i = 0; i < replacements.length; i++) {
    const { end, start, text } = replacements[i]!
    // The replacements of one edit usually share one string.
    let put = i > 0 && text === replacements[i - 1]!.text ? puts[i - 1] : text.length < maxKey ? encoded.get(text) : undefined
    if (put === undefined) {
      put = yield* encode(text)
      if (text.length < maxKey) encoded.set(text, put)
    }
    puts.push(put)
    kept[i] = width === undefined ? yield* utf8Size(before, at, start) : (start - at) * width
    removed[i] = width === undefined ? yield* utf8Size(before, start, end) : (end - start) * width
    length += put.length - removed[i]!
    spent += 4 * perItem + (width === undefined ? end - at : 0)
    at = end
    if (spent > stride) {
      yield spent
      spent = 0
    }
  }
  const out = new Uint8Array(length)
  let read = 0
  let written = 0
  const keep = (count: number): void => {
    out.set(bytes.subarray(read, read + count), written)
    read += count
    written += count
  }
  for (let i = 0; i < puts.length; i++) {
    const put = puts[i]!
    keep(kept[i]!)
    out.set(put, written)
    written += put.length
    read += removed[i]!
    spent += 2 * perItem + (kept[i]! + put.length) / perCopy
    if (spent > stride) {
      yield spent
      spent = 0
    }
  }
  keep(bytes.length - read)
  return out
}
