/** Implements SHA-1 and SHA-256 (FIPS 180-4) for runtimes without Node, because `crypto.subtle` is asynchronous. */
import { Buffer } from "./buffer.ts"

interface Algorithm {
  readonly start: ReadonlyArray<number>
  readonly mix: (state: Uint32Array, words: Uint32Array) => void
}

const rotateLeft = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits))

const sha1: Algorithm = {
  start: [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0],
  mix: (state, w) => {
    for (let i = 16; i < 80; i++) w[i] = rotateLeft(w[i - 3]! ^ w[i - 8]! ^ w[i - 14]! ^ w[i - 16]!, 1)
    let [a, b, c, d, e] = state as unknown as [number, number, number, number, number]
    for (let i = 0; i < 80; i++) {
      const f = i < 20 ? (b & c) | (~b & d) : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d
      const k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6
      const next = (rotateLeft(a, 5) + f + e + k + w[i]!) | 0
      e = d
      d = c
      c = rotateLeft(b, 30)
      b = a
      a = next
    }
    for (const [i, word] of [a, b, c, d, e].entries()) state[i]! += word
  }
}

const isPrime = (value: number): boolean => {
  for (let divisor = 2; divisor * divisor <= value; divisor++) if (value % divisor === 0) return false
  return true
}

const makeConstants = (): Int32Array => {
  const out = new Int32Array(64)
  for (let prime = 2, i = 0; i < 64; prime++) if (isPrime(prime)) out[i++] = (Math.cbrt(prime) % 1) * 2 ** 32
  return out
}

let constants: Int32Array | undefined

const sha256: Algorithm = {
  start: [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19],
  mix: (state, w) => {
    const k = (constants ??= makeConstants())
    for (let i = 16; i < 64; i++) {
      const [p, q] = [w[i - 15]!, w[i - 2]!]
      const s0 = rotateLeft(p, 25) ^ rotateLeft(p, 14) ^ (p >>> 3)
      const s1 = rotateLeft(q, 15) ^ rotateLeft(q, 13) ^ (q >>> 10)
      w[i] = w[i - 16]! + s0 + w[i - 7]! + s1
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
    for (let i = 0; i < 64; i++) {
      const t1 = (h + (rotateLeft(e, 26) ^ rotateLeft(e, 21) ^ rotateLeft(e, 7)) + ((e & f) ^ (~e & g)) + k[i]! + w[i]!) | 0
      const t2 = (rotateLeft(a, 30) ^ rotateLeft(a, 19) ^ rotateLeft(a, 10)) + ((a & b) ^ (a & c) ^ (b & c))
      h = g
      g = f
      f = e
      e = (d + t1) | 0
      d = c
      c = b
      b = a
      a = (t1 + t2) | 0
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i]! += word
  }
}

const algorithms = { sha1, sha256 } as const

const blockBytes = 64

export class Sha {
  readonly #algorithm: Algorithm
  readonly #state: Uint32Array
  readonly #rest = new Uint8Array(blockBytes)
  readonly #words = new Uint32Array(80)
  #size = 0

  constructor(name: keyof typeof algorithms, from?: Sha) {
    this.#algorithm = algorithms[name]
    this.#state = Uint32Array.from(from === undefined ? this.#algorithm.start : from.#state)
    if (from === undefined) return
    this.#rest.set(from.#rest)
    this.#size = from.#size
  }

  update(data: string | Uint8Array): this {
    const bytes = typeof data === "string" ? Buffer.from(data) : data
    let at = 0
    const bufferedBytes = this.#size % blockBytes
    this.#size += bytes.length
    if (bufferedBytes > 0) {
      at = Math.min(blockBytes - bufferedBytes, bytes.length)
      this.#rest.set(bytes.subarray(0, at), bufferedBytes)
      if (bufferedBytes + at < blockBytes) return this
      this.#mix(this.#rest, 0)
    }
    for (; at + blockBytes <= bytes.length; at += blockBytes) this.#mix(bytes, at)
    this.#rest.set(bytes.subarray(at))
    return this
  }

  copy(): Sha {
    return new Sha(this.#algorithm === sha1 ? "sha1" : "sha256", this)
  }

  digest(_encoding: "hex"): string {
    const end = this.copy()
    const bufferedBytes = this.#size % blockBytes
    const padding = new Uint8Array((bufferedBytes < 56 ? blockBytes : 2 * blockBytes) - bufferedBytes)
    padding[0] = 0x80
    const view = new DataView(padding.buffer)
    view.setUint32(padding.length - 8, Math.floor(this.#size / 2 ** 29))
    view.setUint32(padding.length - 4, this.#size << 3)
    end.update(padding)
    let out = ""
    for (const word of end.#state) out += word.toString(16).padStart(8, "0")
    return out
  }

  #mix(bytes: Uint8Array, at: number): void {
    const words = this.#words
    for (let i = 0; i < 16; i++, at += 4) {
      words[i] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
    }
    this.#algorithm.mix(this.#state, words)
  }
}
