/**
 * Compresses the content of one entry. All code is in one function without outside references, so that a worker can
 * run its source.
 */
import type * as Zlib from "node:zlib"

/** Compresses a content. Returns the content itself if compression does not shorten it. */
export type Deflater = (content: Uint8Array) => Uint8Array

export const makeDeflater = ({ deflateRawSync }: Pick<typeof Zlib, "deflateRawSync">): Deflater => {
  const level = 6
  /** The smallest content, in bytes, that is compressed. */
  const minBytes = 8

  return (content) => {
    const size = content.length
    if (size < minBytes) return content
    // The default size of the output buffer is 16 KiB. A compressor with a smaller window is faster to create.
    const chunkSize = Math.max(size, 64)
    const windowBits = Math.max(9, Math.min(15, 32 - Math.clz32(size - 1)))
    const packed = deflateRawSync(content, { level, windowBits, memLevel: Math.min(8, windowBits - 6), chunkSize })
    return packed.length < size ? packed : content
  }
}
