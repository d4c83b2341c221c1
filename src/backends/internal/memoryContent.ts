/**
 * A file's content never changes once it is made: appending makes another that goes on in the same buffer, after the last byte that
 * the first can see. So whoever holds the first reads what it was, and a thousand small appends copy as many bytes as the file has.
 */
import { Buffer } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"

export interface Content {
  /** The first `length` bytes are the content, the rest is room to append. */
  readonly buffer: Uint8Array
  readonly length: number
  /** Nothing has been appended yet, so the room is free. */
  isLast: boolean
  version: string | undefined
}

const make = (buffer: Uint8Array, length: number): Content => ({ buffer, length, isLast: true, version: undefined })

export const empty: Content = make(new Uint8Array(0), 0)

/** Smaller buffers are cut from Node's pool: a buffer to itself costs ten times what filling it does. They are never handed out. */
const pooled = 4096

/** Its bytes are to be written before they are read. `undefined` where there is no memory left for it. */
const allocate = (length: number): Uint8Array | undefined => {
  try {
    if (length >= pooled) return new Uint8Array(length)
    const part = Buffer.allocUnsafe(length)
    return new Uint8Array(part.buffer, part.byteOffset, length)
  } catch (error) {
    // The engine says so where memory is short. Anything else is a defect.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** A copy of the bytes; `undefined` where there is no memory left for it. */
export const of = (bytes: Uint8Array): Content | undefined => {
  const buffer = allocate(bytes.length)
  buffer?.set(bytes)
  return buffer && make(buffer, buffer.length)
}

/** `undefined` where there is no memory left for it. */
export const append = (self: Content, bytes: Uint8Array): Content | undefined => {
  if (bytes.length === 0) return self
  const length = self.length + bytes.length
  let buffer: Uint8Array | undefined = self.buffer
  if (self.isLast && length <= buffer.length) self.isLast = false
  else {
    buffer = allocate(Math.ceil(length * 1.5))
    buffer?.set(self.buffer.subarray(0, self.length))
  }
  buffer?.set(bytes, self.length)
  return buffer && make(buffer, length)
}

/** A copy of at most `length` bytes from `offset`. */
export const slice = (self: Content, offset: number, length: number): Uint8Array =>
  self.buffer.slice(offset, Math.min(self.length, offset + length))

/** The bytes themselves, to be read at once and not kept. */
export const view = (self: Content): Uint8Array => self.buffer.subarray(0, self.length)

/** The SHA-256 of the content in hex, computed when it is first asked for. */
export const version = (self: Content): string => (self.version ??= sha256(view(self)))
