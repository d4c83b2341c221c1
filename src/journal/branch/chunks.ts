import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

/**
 * Passes full chunks of `size` bytes to `put`, and returns the rest: at most one chunk, and empty only if the stream was empty. Holds one
 * chunk in memory. The array belongs to `put` only until `put` ends.
 */
export const splitIntoChunks = <E, R, E2, R2>(
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
              const resumeOffset = at
              return Effect.flatMap(put(buffer), () => take(arrays, i, resumeOffset))
            }
            const copiedBytes = Math.min(size - length, bytes.length - at)
            buffer.set(bytes.subarray(at, at + copiedBytes), length)
            length += copiedBytes
            at += copiedBytes
          }
        }
        return Effect.void
      })
    return Effect.map(
      Stream.runForEachArray(content, (arrays) => take(arrays, 0, 0)),
      () => buffer.subarray(0, length)
    )
  })
