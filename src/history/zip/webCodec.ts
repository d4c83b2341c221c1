/**
 * Deflate, inflate and CRC-32 without Node, with the `CompressionStream` and `DecompressionStream` of the runtime.
 *
 * These streams reject bytes after the end of the compressed data.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { isError } from "../../model/realms.ts"
import { Buffer } from "../../runtime/buffer.ts"
import type { Broken, Pumping } from "./codec.ts"

type Bytes = Uint8Array<ArrayBuffer>

interface Transform {
  readonly readable: ReadableStream<Bytes>
  readonly writable: WritableStream<Bytes>
}

const transform = (make: () => unknown): Transform => make() as Transform

/** Converts an error of a stream to a fault. In Node, the errors of web streams have no message. */
const toBroken = (error: unknown): Broken => {
  const message = isError(error) ? error.message : String(error)
  return { _tag: "Broken", detail: message === "" ? "the compressed data is invalid or truncated" : message }
}

/** A pump that reads its transform continuously, so that a write never waits for a reader. */
class WebPump implements Pumping {
  readonly #writer: WritableStreamDefaultWriter<Bytes>
  readonly #reader: ReadableStreamDefaultReader<Bytes>
  readonly #ended: Promise<void>
  #out: Array<Uint8Array> = []
  consumed = 0

  constructor({ readable, writable }: Transform) {
    this.#writer = writable.getWriter()
    this.#reader = readable.getReader()
    this.#ended = this.#read()
    // Mark the promises as handled, because a caller that stops early never calls `finish`, which reports the error.
    this.#ended.catch(() => {})
    this.#writer.closed.catch(() => {})
  }

  async #read(): Promise<void> {
    for (let next = await this.#reader.read(); !next.done; next = await this.#reader.read()) this.#out.push(next.value)
  }

  readonly push = (bytes: Uint8Array): Effect.Effect<ReadonlyArray<Uint8Array>, Broken> =>
    this.#step(async () => {
      // Copy the bytes, because the caller may reuse the buffer before the write ends.
      await this.#writer.write(new Uint8Array(bytes))
      this.consumed += bytes.length
    })

  readonly finish: Effect.Effect<ReadonlyArray<Uint8Array>, Broken> = this.#step(async () => {
    await this.#writer.close()
    await this.#ended
  })

  close(): void {
    this.#reader.cancel().catch(() => {})
    this.#writer.abort().catch(() => {})
  }

  #step(work: () => Promise<void>): Effect.Effect<ReadonlyArray<Uint8Array>, Broken> {
    return Effect.map(Effect.tryPromise({ try: work, catch: toBroken }), () => {
      const out = this.#out
      this.#out = []
      return out
    })
  }
}

const pump = (make: () => unknown): Effect.Effect<Pumping, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new WebPump(transform(make))),
    (self) => Effect.sync(() => self.close())
  )

export const deflatePump = pump(() => new CompressionStream("deflate-raw"))
export const inflatePump = pump(() => new DecompressionStream("deflate-raw"))
export const gunzipPump = pump(() => new DecompressionStream("gzip"))

const inputChunkBytes = 16 * 1024

/** Returns the whole output of a pump. Returns `undefined` if the output exceeds `maxBytes` or the input is invalid. */
const runToEnd = (
  pump: Effect.Effect<Pumping, never, Scope.Scope>,
  bytes: Uint8Array,
  maxBytes: number
): Effect.Effect<Uint8Array | undefined> =>
  Effect.gen(function* () {
    const { finish, push } = yield* pump
    const parts: Array<Uint8Array> = []
    let size = 0
    const take = (out: ReadonlyArray<Uint8Array>): boolean => {
      for (const part of out) {
        parts.push(part)
        size += part.length
      }
      return size <= maxBytes
    }
    for (let at = 0; at < bytes.length; at += inputChunkBytes)
      if (!take(yield* push(bytes.subarray(at, at + inputChunkBytes)))) return undefined
    return take(yield* finish) ? Buffer.concat(parts) : undefined
  }).pipe(
    Effect.scoped,
    Effect.catch(() => Effect.succeed(undefined))
  )

export const deflate = (bytes: Uint8Array): Effect.Effect<Uint8Array> =>
  Effect.map(runToEnd(deflatePump, bytes, Number.POSITIVE_INFINITY), (packed) => packed ?? bytes)

export const inflate = (packed: Uint8Array, size: number): Effect.Effect<Uint8Array | undefined> =>
  Effect.map(runToEnd(inflatePump, packed, size), (bytes) => (bytes?.length === size ? bytes : undefined))

const makeTable = (): Uint32Array =>
  Uint32Array.from({ length: 256 }, (_, byte) => {
    let value = byte
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1
    return value
  })

let crcTable: Uint32Array | undefined

export const crc32 = (bytes: Uint8Array, before: number): number => {
  const steps = (crcTable ??= makeTable())
  let crc = ~before
  for (const byte of bytes) crc = steps[(crc ^ byte) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}
