/**
 * Deflate and inflate, by the zlib of Node or, without Node, by `webCodec.ts`.
 *
 * Small inputs are processed synchronously, because a round trip through the thread pool costs more than the work.
 * Large inputs go through the pool in pieces, so that neither memory nor the event loop depends on the size of the
 * output.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Zlib from "node:zlib"
import { isSystemError } from "../../model/realms.ts"
import { isNode, zlib } from "../../runtime/node.ts"
import * as Web from "./webCodec.ts"

export const compressionLevel = 6

/** The best ratio that deflate can reach. A larger claimed size is invalid. */
export const maxDeflateRatio = 1032

/** Bytes of input per step. The output of a step is at most about a thousand times as large. */
const inputChunkBytes = 16 * 1024

type Transform = Zlib.DeflateRaw | Zlib.InflateRaw | Zlib.Gunzip

/** The failure of a transformer on invalid input; `detail` is zlib's message. */
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
  /** The bytes of input used. Less than the given input if the format ends earlier. */
  readonly consumed: number
  readonly close: () => void
}

export const identity: Transformer = {
  push: (bytes) => Effect.succeed([bytes]),
  finish: Effect.succeed([])
}

/** A zlib transform, fed step by step. Supports one caller at a time. */
export class ZlibPump implements Pumping {
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

export const makePump = (make: () => Transform): Effect.Effect<Pumping, never, Scope.Scope> =>
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

/** Pipes a stream through a transformer. `whenDone` runs at the end and can still fail the stream. */
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
 * The largest ratio of packed to original size, measured at the beginning of a large file, for which the file is
 * compressed.
 */
const maxWorthwhileRatio = 0.97

export const isWorthwhile = (packed: number, size: number): boolean => packed < size * maxWorthwhileRatio

/** Returns a chunk size that holds the whole output. By default zlib allocates 16 KiB per file. */
const outputChunkSize = (size: number): number => Math.max(size, 64)

export const deflate = (bytes: Uint8Array): Effect.Effect<Uint8Array> =>
  isNode
    ? Effect.sync(() => zlib().deflateRawSync(bytes, { level: compressionLevel, chunkSize: outputChunkSize(bytes.length) }))
    : Web.deflate(bytes)

const inflateSync = (packed: Uint8Array, size: number): Uint8Array | undefined => {
  try {
    const options = { maxOutputLength: Math.max(size, 1), chunkSize: outputChunkSize(size), info: true }
    const done = zlib().inflateRawSync(packed, options) as unknown as {
      readonly buffer: Uint8Array
      readonly engine: { readonly bytesWritten: number }
    }
    return done.buffer.length === size && done.engine.bytesWritten === packed.length ? new Uint8Array(done.buffer) : undefined
  } catch (error) {
    // An error of zlib has a code. Any other error is a defect.
    if (!isSystemError(error)) throw error
    return undefined
  }
}

/** Inflates `packed`. Returns `undefined` unless the input is used completely and gives exactly `size` bytes. */
export const inflate = (packed: Uint8Array, size: number): Effect.Effect<Uint8Array | undefined> =>
  isNode ? Effect.sync(() => inflateSync(packed, size)) : Web.inflate(packed, size)

export const crc32 = (bytes: Uint8Array, before = 0): number =>
  isNode ? zlib().crc32(bytes, before) : Web.crc32(bytes, before)
