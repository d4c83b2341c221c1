/**
 * Deflate and inflate with the zlib of Node. Without Node, `webCodec.ts` is used.
 *
 * Small inputs are processed synchronously, because the thread pool would take longer. Large inputs are processed in the
 * thread pool in pieces. So neither the memory nor the delay of the event loop depends on the size of the output.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Zlib from "node:zlib"
import { isSystemError } from "../../model/realms.ts"
import { isNode, zlib } from "../../runtime/node.ts"
import { type Deflater, makeDeflater } from "./deflater.ts"
import * as Web from "./webCodec.ts"

/** The level of streamed contents. `makeDeflater` uses the same level. */
const compressionLevel = 6

/** The largest compression ratio of deflate. An entry whose recorded sizes have a larger ratio is invalid. */
export const maxDeflateRatio = 1032

/** The number of input bytes per step. The output of a step is at most about a thousand times as large. */
const inputChunkBytes = 16 * 1024

type Transform = Zlib.DeflateRaw | Zlib.InflateRaw | Zlib.Gunzip

/** The failure of a transform on invalid input. `detail` is the message of zlib. */
export interface Broken {
  readonly _tag: "Broken"
  readonly detail: string
}

const broken = (detail: string): Broken => ({ _tag: "Broken", detail })

export interface Transformer {
  readonly push: (bytes: Uint8Array) => Effect.Effect<ReadonlyArray<Uint8Array>, Broken>
  readonly finish: Effect.Effect<ReadonlyArray<Uint8Array>, Broken>
}

export interface Pumping extends Transformer {
  /** The number of input bytes that were used. Later input bytes follow the end of the compressed data. */
  readonly consumed: number
  readonly close: () => void
}

export const identity: Transformer = {
  push: (bytes) => Effect.succeed([bytes]),
  finish: Effect.succeed([])
}

/** A zlib transform that processes its input in steps. Only one caller at a time may use a pump. */
class ZlibPump implements Pumping {
  readonly #zlib: Transform
  #out: Array<Uint8Array> = []
  #failed: Broken | undefined
  #isEnded = false
  #wake: (() => void) | undefined

  constructor(zlib: Transform) {
    this.#zlib = zlib
    zlib.on("data", (bytes: Uint8Array) => this.#out.push(bytes))
    zlib.on("end", () => {
      this.#isEnded = true
      this.#wake?.()
    })
    zlib.on("error", (error: Error) => {
      this.#failed ??= broken(error.message)
      this.#wake?.()
    })
  }

  get consumed(): number {
    return this.#zlib.bytesWritten
  }

  readonly push = (bytes: Uint8Array): Effect.Effect<ReadonlyArray<Uint8Array>, Broken> =>
    this.#step((done) => this.#zlib.write(bytes, () => done()))

  readonly finish: Effect.Effect<ReadonlyArray<Uint8Array>, Broken> = Effect.suspend(() =>
    this.#step((done) => {
      this.#zlib.end()
      if (this.#isEnded) done()
    })
  )

  close(): void {
    this.#zlib.destroy()
  }

  #step(start: (done: () => void) => void): Effect.Effect<ReadonlyArray<Uint8Array>, Broken> {
    return Effect.callback<ReadonlyArray<Uint8Array>, Broken>((resume) => {
      const done = (): void => {
        this.#wake = undefined
        if (this.#failed !== undefined) resume(Effect.fail(this.#failed))
        else {
          const out = this.#out
          this.#out = []
          resume(Effect.succeed(out))
        }
      }
      if (this.#failed !== undefined) return done()
      this.#wake = done
      start(done)
    })
  }
}

const makePump = (make: () => Transform): Effect.Effect<Pumping, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new ZlibPump(make())),
    (self) => Effect.sync(() => self.close())
  )

export const deflatePump = isNode ? makePump(() => zlib().createDeflateRaw({ level: compressionLevel })) : Web.deflatePump
export const inflatePump = isNode ? makePump(() => zlib().createInflateRaw()) : Web.inflatePump
export const gunzipPump = isNode ? makePump(() => zlib().createGunzip()) : Web.gunzipPump

const splitInput = (bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  if (bytes.length <= inputChunkBytes) return [bytes]
  const out: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length; at += inputChunkBytes) out.push(bytes.subarray(at, at + inputChunkBytes))
  return out
}

/** Pipes a stream through a transform. `whenDone` runs at the end and can fail the stream. */
export const pipeThrough = <E, R, E2 = never>(
  input: Stream.Stream<Uint8Array, E, R>,
  self: Transformer,
  whenDone: Effect.Effect<void, E2> = Effect.void
): Stream.Stream<Uint8Array, E | E2 | Broken, R> =>
  Stream.flattenIterable(
    Stream.concat(
      Stream.mapEffect(Stream.flattenIterable(Stream.map(input, splitInput)), self.push),
      Stream.fromEffect(Effect.tap(self.finish, () => whenDone))
    )
  )

/**
 * The largest ratio of compressed to original size at which a large file is compressed. The ratio is measured at the start of
 * the file.
 */
const maxWorthwhileRatio = 0.97

export const isWorthwhile = (packed: number, size: number): boolean => packed < size * maxWorthwhileRatio

/** Returns a size for the output buffer that fits the whole output. By default zlib allocates 16 KiB for each file. */
const outputChunkSize = (size: number): number => Math.max(size, 64)

let deflater: Deflater | undefined

/** Compresses a content. Returns the content itself if compression does not shorten it. */
export const deflate = (bytes: Uint8Array): Effect.Effect<Uint8Array> =>
  isNode
    ? Effect.sync(() => (deflater ??= makeDeflater(zlib()))(bytes))
    : Effect.map(Web.deflate(bytes), (packed) => (packed.length < bytes.length ? packed : bytes))

const inflateSync = (packed: Uint8Array, size: number): Uint8Array | undefined => {
  try {
    const options = { maxOutputLength: Math.max(size, 1), chunkSize: outputChunkSize(size), info: true }
    const done = zlib().inflateRawSync(packed, options) as unknown as {
      readonly buffer: Uint8Array
      readonly engine: { readonly bytesWritten: number }
    }
    return done.buffer.length === size && done.engine.bytesWritten === packed.length ? new Uint8Array(done.buffer) : undefined
  } catch (error) {
    // An error of zlib has a code. Any other error is a bug, so throw it again.
    if (!isSystemError(error)) throw error
    return undefined
  }
}

/** Inflates `packed`. Returns `undefined` if some input is left over or the output does not have `size` bytes. */
export const inflate = (packed: Uint8Array, size: number): Effect.Effect<Uint8Array | undefined> =>
  isNode ? Effect.sync(() => inflateSync(packed, size)) : Web.inflate(packed, size)

export const crc32 = (bytes: Uint8Array, before = 0): number =>
  isNode ? zlib().crc32(bytes, before) : Web.crc32(bytes, before)
