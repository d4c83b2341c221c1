/**
 * What a process writes: read to its end, so that it never waits for us, and kept as far as it will be shown, so that it never fills
 * our memory.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

export interface Collecting {
  /** Until the stream ends. How it ends is told by the process. */
  readonly from: <E>(stream: Stream.Stream<Uint8Array, E>) => Effect.Effect<void>
  /** What has come so far, at most as much as is kept. */
  readonly bytes: () => Buffer
  readonly take: (chunk: Uint8Array) => void
}

export const collecting = (most: number): Collecting => {
  const parts: Array<Uint8Array> = []
  let length = 0
  const take = (chunk: Uint8Array): void => {
    const room = most - length
    if (room <= 0 || chunk.length === 0) return
    // A copy, since a small part would keep the whole of what it is a part of.
    parts.push(chunk.length > room ? chunk.slice(0, room) : chunk)
    length += Math.min(room, chunk.length)
  }
  return {
    from: (stream) => Effect.ignore(Stream.runForEach(stream, (chunk) => Effect.sync(() => take(chunk)))),
    bytes: () => Buffer.concat(parts),
    take
  }
}

/** The same behind a first line that is ours, to which it leads up: what stands before it is the engine's own. */
export interface Announced extends Collecting {
  /** The rest of the line that begins with the mark; `undefined` until it has come. */
  readonly line: () => string | undefined
  /** What came before it. */
  readonly before: () => string
}

const newline = 0x0a

export const announced = (mark: string, most: number): Announced => {
  const rest = collecting(most)
  const before = collecting(2 ** 16)
  let line: string | undefined
  const take = (chunk: Uint8Array): void => {
    if (line !== undefined) return rest.take(chunk)
    const head = Buffer.concat([before.bytes(), chunk])
    const at = head.indexOf(`${mark} `)
    const end = at === -1 ? -1 : head.indexOf(newline, at)
    if (end === -1) return before.take(chunk)
    line = head.toString("latin1", at + mark.length + 1, end)
    rest.take(head.subarray(end + 1))
  }
  return {
    from: (stream) => Effect.ignore(Stream.runForEach(stream, (chunk) => Effect.sync(() => take(chunk)))),
    bytes: rest.bytes,
    take,
    line: () => line,
    before: () => before.bytes().toString()
  }
}
