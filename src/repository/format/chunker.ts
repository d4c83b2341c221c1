/**
 * Content-defined chunks (FastCDC with a gear hash). Equal parts of different files become equal chunks, because a boundary
 * depends only on the 32 bytes before it and on the start of the chunk.
 */
import { Buffer } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"
import { maxChunkBytes } from "./nodes.ts"

export const minChunkBytes = 64 * 1024
const averageChunkBytes = 256 * 1024

/** The number that each byte adds to the rolling hash: the first four bytes of the SHA-256 of a text. */
const gear = Uint32Array.from({ length: 256 }, (_, byte) =>
  Number.parseInt(sha256(Buffer.from(`fs-algebra gear ${byte}`)).slice(0, 8), 16)
)

// Before the average size a boundary is four times rarer than without normalization, and after it four times more frequent.
const maskBefore = 0xfffff000
const maskAfter = 0xffff0000

export interface Chunker {
  /** Adds bytes, and returns the chunks that are complete. The chunker copies the bytes. */
  readonly push: (bytes: Uint8Array) => ReadonlyArray<Uint8Array>
  /** Returns the remaining bytes, if any. */
  readonly end: () => Uint8Array
}

export const make = (): Chunker => {
  let buffer = new Uint8Array(minChunkBytes)
  let length = 0
  let hash = 0

  const grow = (needed: number): void => {
    if (needed <= buffer.length) return
    const larger = new Uint8Array(Math.min(maxChunkBytes, Math.max(needed, 2 * buffer.length)))
    larger.set(buffer.subarray(0, length))
    buffer = larger
  }

  return {
    push: (bytes) => {
      const chunks: Array<Uint8Array> = []
      for (let at = 0; at < bytes.length;) {
        const added = Math.min(bytes.length - at, maxChunkBytes - length)
        grow(length + added)
        buffer.set(bytes.subarray(at, at + added), length)
        // The first `minChunkBytes` bytes are not hashed, because no boundary may lie within them.
        let end = length + added
        let isBoundary = end === maxChunkBytes
        for (let i = Math.max(length, minChunkBytes); i < length + added; i++) {
          hash = ((hash << 1) + gear[buffer[i]!]!) | 0
          if ((hash & (i < averageChunkBytes ? maskBefore : maskAfter)) === 0) {
            end = i + 1
            isBoundary = true
            break
          }
        }
        at += end - length
        length = end
        if (isBoundary) {
          chunks.push(buffer.slice(0, length))
          length = 0
          hash = 0
        }
      }
      return chunks
    },
    end: () => buffer.slice(0, length)
  }
}
