/**
 * Encodes objects in the format of a pack. All code is in one function without outside references, so that a
 * worker can run its source.
 */
import type * as Zlib from "node:zlib"

export type ObjectKind = "blob" | "tree" | "commit"

export interface Encoder {
  /** The compression level. Higher levels save little space and take several times as long. */
  readonly level: number
  /** Encodes the kind and the size of an object: four bits of the size in the first byte, then seven bits per byte. */
  readonly header: (kind: ObjectKind, size: number) => Buffer
  /** Compresses a body. A tree may be stored without compression, because its ids are not compressible. */
  readonly deflated: (body: Uint8Array, kind?: ObjectKind) => Buffer
  /** Tests whether the bytes look compressed or encrypted. Compressing such bytes takes thirty times as long as storing them. */
  readonly looksIncompressible: (bytes: Uint8Array) => boolean
}

export const makeEncoder = ({ deflateSync }: Pick<typeof Zlib, "deflateSync">): Encoder => {
  const level = 1
  const kinds: { readonly [Kind in ObjectKind]: number } = { commit: 1, tree: 2, blob: 3 }

  const header = (kind: ObjectKind, size: number): Buffer => {
    const bytes: Array<number> = []
    let next = (kinds[kind] << 4) | (size & 15)
    for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
      bytes.push(next | 0x80)
      next = rest % 128
    }
    return Buffer.from([...bytes, next])
  }

  /**
   * The largest body, in bytes, that is stored without compression. For such a body, creating a compressor costs more than
   * the compression saves.
   */
  const maxUncompressedBytes = 96
  const maxUncompressedTreeBytes = 512

  /** Returns the Adler-32 of a body that is stored without compression. The sums of so few bytes are exact without a modulus. */
  const adler32 = (bytes: Uint8Array): number => {
    let [a, b] = [1, 0]
    for (let i = 0; i < bytes.length; i++) b += a += bytes[i]!
    return (b % 65521) * 65536 + (a % 65521)
  }

  const stored = (body: Uint8Array): Buffer => {
    const size = body.length
    const out = Buffer.allocUnsafe(size + 11)
    out.set([0x78, 0x01, 1])
    out.writeUInt16LE(size, 3)
    out.writeUInt16LE(0xffff - size, 5)
    out.set(body, 7)
    out.writeUInt32BE(adler32(body), size + 7)
    return out
  }

  const sampleCount = 1024
  const byteCounts = new Uint16Array(256)
  /**
   * The expected sum of squared byte counts if all bytes are equally frequent, plus an eighth (seven standard deviations).
   */
  const denseThreshold = (sampleCount + sampleCount ** 2 / 256) * 1.125

  const looksIncompressible = (bytes: Uint8Array): boolean => {
    if (bytes.length < 4 * sampleCount) return false
    const step = bytes.length / sampleCount
    byteCounts.fill(0)
    for (let i = 0; i < sampleCount; i++) byteCounts[bytes[Math.floor(i * step)]!]!++
    let repeats = 0
    for (const count of byteCounts) repeats += count * count
    return repeats < denseThreshold
  }

  /** The compression options for bodies of up to 2^9, 2^10, … bytes. A compressor with a smaller window is faster to create. */
  const compressors: ReadonlyArray<Zlib.ZlibOptions> = [9, 10, 11, 12, 13, 14, 15].map((windowBits) => ({
    level,
    windowBits,
    memLevel: Math.min(8, windowBits - 6),
    chunkSize: 2 ** windowBits + 128
  }))

  const deflated = (body: Uint8Array, kind?: ObjectKind): Buffer => {
    const size = body.length
    if (size <= (kind === "tree" ? maxUncompressedTreeBytes : maxUncompressedBytes)) return stored(body)
    const chunkSize = size + 1024
    if (looksIncompressible(body)) return deflateSync(body, { level: 0, chunkSize })
    const bits = 32 - Math.clz32(size - 1)
    return deflateSync(body, bits > 15 ? { level, chunkSize } : compressors[Math.max(0, bits - 9)])
  }

  return { level, header, deflated, looksIncompressible }
}
