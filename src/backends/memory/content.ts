/**
 * Stores immutable file contents.
 *
 * If the buffer has room, an append creates a new content in the same buffer, after the last byte of the old content. So
 * the old content stays valid, and a thousand small appends copy only a few times as many bytes as the file has.
 */
import { Buffer } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"

export interface Content {
  /** The buffer. Only its first `length` bytes are content; the other bytes are free for appends. */
  readonly buffer: Uint8Array
  readonly length: number
  /** True until an append uses the free bytes of the buffer. */
  canAppendInPlace: boolean
  version: string | undefined
}

const make = (buffer: Uint8Array, length: number): Content => ({ buffer, length, canAppendInPlace: true, version: undefined })

export const empty: Content = make(new Uint8Array(0), 0)

/**
 * Buffers below this size in bytes come from Node's pool, because allocating a separate small buffer costs ten times as
 * much as filling it. Callers of the service never receive a pooled buffer.
 */
const maxPooledBytes = 4096

const allocate = (length: number): Uint8Array | undefined => {
  try {
    if (length >= maxPooledBytes) return new Uint8Array(length)
    const part = Buffer.allocUnsafe(length)
    return new Uint8Array(part.buffer, part.byteOffset, length)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

export const of = (bytes: Uint8Array): Content | undefined => {
  const buffer = allocate(bytes.length)
  buffer?.set(bytes)
  return buffer && make(buffer, buffer.length)
}

export const append = (self: Content, bytes: Uint8Array): Content | undefined => {
  if (bytes.length === 0) return self
  const length = self.length + bytes.length
  let buffer: Uint8Array | undefined = self.buffer
  if (self.canAppendInPlace && length <= buffer.length) self.canAppendInPlace = false
  else {
    buffer = allocate(Math.ceil(length * 1.5))
    buffer?.set(self.buffer.subarray(0, self.length))
  }
  buffer?.set(bytes, self.length)
  return buffer && make(buffer, length)
}

export const slice = (self: Content, offset: number, length: number): Uint8Array =>
  self.buffer.slice(offset, Math.min(self.length, offset + length))

/** Returns the bytes without a copy. The caller must not change these bytes. */
export const view = (self: Content): Uint8Array =>
  self.length === self.buffer.length ? self.buffer : self.buffer.subarray(0, self.length)

export const version = (self: Content): string => (self.version ??= sha256(view(self)))
