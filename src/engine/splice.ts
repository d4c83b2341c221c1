/**
 * Applies replacements, found in the text, to the bytes of a file.
 *
 * The bytes outside the replacements are copied and never re-encoded. So the encoding, the byte order mark, the line
 * endings and the last newline cannot change.
 */
import type { Fault } from "../model/FsError.ts"
import { unitsPerItem, type Steps, maxUnitsPerStep } from "../runtime/steps.ts"
import type { Replacement } from "./diff.ts"
import { decodeSteps, encode } from "./text.ts"

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
  const isLittleEndian = first === 0xff && second === 0xfe && !(bytes.length >= 4 && bytes[2] === 0 && bytes[3] === 0)
  const isUtf16 = isLittleEndian || (first === 0xfe && second === 0xff)
  const text = yield* decodeSteps(bytes, isUtf16 ? (isLittleEndian ? "utf-16le" : "utf-16be") : "utf-8")
  if (typeof text !== "string") return text
  if (isUtf16) return { bytes, text, encode: (text) => utf16(text, isLittleEndian), width: 2 }
  return { bytes, text, encode: utf8, width: text.length === bytes.length ? 1 : undefined }
}

const utf8 = function* (text: string): Steps<Uint8Array> {
  yield text.length
  return encode(text) as Uint8Array
}

const utf16 = function* (text: string, isLittleEndian: boolean): Steps<Uint8Array> {
  const bytes = new Uint8Array(text.length * 2)
  const view = new DataView(bytes.buffer)
  for (let i = 0; i < text.length; i++) {
    view.setUint16(i * 2, text.charCodeAt(i), isLittleEndian)
    if (i % maxUnitsPerStep === maxUnitsPerStep - 1) yield maxUnitsPerStep
  }
  yield text.length % maxUnitsPerStep
  return bytes
}

const utf8Size = function* (text: string, from: number, to: number): Steps<number> {
  let size = to - from
  for (let i = from; i < to; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0x80) size += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2
    if ((i - from) % maxUnitsPerStep === maxUnitsPerStep - 1) yield maxUnitsPerStep
  }
  return size
}

/** V8 hashes strings of 16,384 or more units by their length alone. */
const maxKeyLength = 4096

const bytesPerUnit = 64

/** Applies replacements, which must be in order and must not overlap. */
export const splice = function* (
  { bytes, encode, text: before, width }: Document,
  replacements: ReadonlyArray<Replacement>
): Steps<Uint8Array> {
  const encoded = new Map<string, Uint8Array>()
  const encodedTexts: Array<Uint8Array> = []
  const kept = new Float64Array(replacements.length)
  const removedSizes = new Float64Array(replacements.length)
  let length = bytes.length
  let at = 0
  let unitsSpent = 0
  for (let i = 0; i < replacements.length; i++) {
    const { end, start, text } = replacements[i]!
    // The replacements of one edit usually share one string.
    let encodedText =
      i > 0 && text === replacements[i - 1]!.text
        ? encodedTexts[i - 1]
        : text.length < maxKeyLength
          ? encoded.get(text)
          : undefined
    if (encodedText === undefined) {
      encodedText = yield* encode(text)
      if (text.length < maxKeyLength) encoded.set(text, encodedText)
    }
    encodedTexts.push(encodedText)
    kept[i] = width === undefined ? yield* utf8Size(before, at, start) : (start - at) * width
    removedSizes[i] = width === undefined ? yield* utf8Size(before, start, end) : (end - start) * width
    length += encodedText.length - removedSizes[i]!
    unitsSpent += 4 * unitsPerItem + (width === undefined ? end - at : 0)
    at = end
    if (unitsSpent > maxUnitsPerStep) {
      yield unitsSpent
      unitsSpent = 0
    }
  }
  const out = new Uint8Array(length)
  let read = 0
  let written = 0
  const copyKept = (count: number): void => {
    out.set(bytes.subarray(read, read + count), written)
    read += count
    written += count
  }
  for (let i = 0; i < encodedTexts.length; i++) {
    const encodedText = encodedTexts[i]!
    copyKept(kept[i]!)
    out.set(encodedText, written)
    written += encodedText.length
    read += removedSizes[i]!
    unitsSpent += 2 * unitsPerItem + (kept[i]! + encodedText.length) / bytesPerUnit
    if (unitsSpent > maxUnitsPerStep) {
      yield unitsSpent
      unitsSpent = 0
    }
  }
  copyKept(bytes.length - read)
  return out
}
