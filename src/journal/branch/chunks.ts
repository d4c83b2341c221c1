/** A stream of bytes in chunks of one size, which hold no more than one of them in memory. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

/**
 * Gives `put` one full chunk after another, which it may look at until it has ended, and answers what is left: at most one chunk, and
 * nothing only where the stream brought nothing.
 */
export const drain = <E, R, E2, R2>(
  content: Stream.Stream<Uint8Array, E, R>,
  size: number,
  put: (chunk: Uint8Array) => Effect.Effect<unknown, E2, R2>
): Effect.Effect<Uint8Array, E | E2, R | R2> =>
  Effect.suspend(() => {
    const buffer = new Uint8Array(size)
    let length = 0
    const take = (arrays: ReadonlyArray<Uint8Array>, index: number, from: number): Effect.Effect<void, E2, R2> =>
      Effect.suspend(() => {
        for (let i = index, at = from; i < arrays.length; i++, at = 0) {
          const bytes = arrays[i]!
          while (at < bytes.length) {
            if (length === size) {
              length = 0
              const here = at
              return Effect.flatMap(put(buffer), () => take(arrays, i, here))
            }
            const fits = Math.min(size - length, bytes.length - at)
            buffer.set(bytes.subarray(at, at + fits), length)
            length += fits
            at += fits
          }
        }
        return Effect.void
      })
    return Effect.map(
      Stream.runForEachArray(content, (arrays) => take(arrays, 0, 0)),
      () => buffer.subarray(0, length)
    )
  })
