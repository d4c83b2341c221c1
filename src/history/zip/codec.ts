/**
 * Deflate and its inverse by the machine's zlib, and without Node by `webCodec.ts`. What is small is done at once, since a turn through the thread pool costs more than the
 * work; what is large goes through it piece by piece, so that neither memory nor the turns of others depend on what comes out.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Zlib from "node:zlib"
import { isNode, zlib } from "../../runtime/node.ts"
import * as Web from "./webCodec.ts"

export const level = 6

/** No honest deflate packs more into a byte. */
export const bestRatio = 1032

/** What goes in at a time: at most a thousand times as much comes out. */
const piece = 16 * 1024

type Transform = Zlib.DeflateRaw | Zlib.InflateRaw | Zlib.Gunzip

/** What zlib says of bytes that it cannot take. */
export interface Broken {
  readonly _tag: "Broken"
  readonly detail: string
}

const broken = (detail: string): Broken => ({ _tag: "Broken", detail })

/** Bytes go in, and others come out. */
export interface Transformer {
  /** Answers what has come out by then. */
  readonly push: (bytes: Uint8Array) => Effect.Effect<ReadonlyArray<Uint8Array>, Broken>
  /** Answers the rest. */
  readonly finish: Effect.Effect<ReadonlyArray<Uint8Array>, Broken>
}

/** A transformer that knows what it has taken. */
export interface Pumping extends Transformer {
  /** Bytes that it has taken of those it was given: fewer where its format says that there are no more. */
  readonly consumed: number
  readonly close: () => void
}

export const identity: Transformer = {
  push: (bytes) => Effect.succeed([bytes]),
  finish: Effect.succeed([])
}

/** A transform of zlib, fed step by step. One caller at a time. */
export class Pump implements Pumping {
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

export const pump = (make: () => Transform): Effect.Effect<Pumping, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new Pump(make())),
    (self) => Effect.sync(() => self.close())
  )

export const deflating = isNode ? pump(() => zlib().createDeflateRaw({ level })) : Web.deflating
export const inflating = isNode ? pump(() => zlib().createInflateRaw()) : Web.inflating
export const gunzipping = isNode ? pump(() => zlib().createGunzip()) : Web.gunzipping

const pieces = (bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  if (bytes.length <= piece) return [bytes]
  const out: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length; at += piece) out.push(bytes.subarray(at, at + piece))
  return out
}

/** Everything through it; `whenDone` may still fail at the end. */
export const through = <E, R, E2 = never>(
  input: Stream.Stream<Uint8Array, E, R>,
  self: Transformer,
  whenDone: Effect.Effect<void, E2> = Effect.void
): Stream.Stream<Uint8Array, E | E2 | Broken, R> =>
  Stream.flattenIterable(
    Stream.concat(
      Stream.mapEffect(Stream.flattenIterable(Stream.map(input, pieces)), self.push),
      Stream.fromEffect(Effect.tap(self.finish, () => whenDone))
    )
  )

/** Large files that do not become at least a thirtieth smaller at their beginning are stored. */
const worthwhile = 0.97

export const isWorthwhile = (packed: number, size: number): boolean => packed < size * worthwhile

/** Room for what comes out, at once: zlib would take 16 KiB for every file. */
const roomFor = (size: number): number => Math.max(size, 64)

export const deflate = (bytes: Uint8Array): Effect.Effect<Uint8Array> =>
  isNode ? Effect.sync(() => zlib().deflateRawSync(bytes, { level, chunkSize: roomFor(bytes.length) })) : Web.deflate(bytes)

const inflateSync = (packed: Uint8Array, size: number): Uint8Array | undefined => {
  try {
    const options = { maxOutputLength: Math.max(size, 1), chunkSize: roomFor(size), info: true }
    const done = zlib().inflateRawSync(packed, options) as unknown as {
      readonly buffer: Uint8Array
      readonly engine: { readonly bytesWritten: number }
    }
    return done.buffer.length === size && done.engine.bytesWritten === packed.length ? new Uint8Array(done.buffer) : undefined
  } catch (error) {
    // zlib gives each refusal a code. Anything else is a defect.
    if (!(error instanceof Error && "code" in error)) throw error
    return undefined
  }
}

/** `undefined` where it does not give exactly `size` bytes, of all of `packed`. */
export const inflate = (packed: Uint8Array, size: number): Effect.Effect<Uint8Array | undefined> =>
  isNode ? Effect.sync(() => inflateSync(packed, size)) : Web.inflate(packed, size)

export const crc32 = (bytes: Uint8Array, before = 0): number =>
  isNode ? zlib().crc32(bytes, before) : Web.crc32(bytes, before)
