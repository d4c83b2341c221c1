/**
 * What a process writes: read to its end, so that it never waits for us, and kept as far as it will be shown, so that it never fills
 * our memory.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

export interface Collecting {
  /** Reads the stream until it ends. The process tells how it ended. */
  readonly from: <E>(stream: Stream.Stream<Uint8Array, E>) => Effect.Effect<void>
  /** What has come so far, at most as much as is kept. */
  readonly bytes: () => Buffer
  readonly take: (chunk: Uint8Array) => void
}

const each = <E>(stream: Stream.Stream<Uint8Array, E>, use: (chunk: Uint8Array) => Effect.Effect<void>): Effect.Effect<void> =>
  Effect.ignore(Stream.runForEach(stream, use))

/** Keeps the first bytes. */
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
    from: (stream) => each(stream, (chunk) => Effect.sync(() => take(chunk))),
    bytes: () => Buffer.concat(parts),
    take
  }
}

/** The first bytes of a stream, its last bytes, and whether there were more between them. */
export interface Ends {
  readonly first: Buffer
  readonly last: Buffer
  readonly isCut: boolean
}

export interface CollectingEnds {
  readonly ends: () => Ends
  readonly take: (chunk: Uint8Array) => void
}

/** Keeps the first `most` bytes and the last `most` of what comes after them. */
export const collectingEnds = (most: number): CollectingEnds => {
  const first = collecting(most)
  let taken = 0
  let last: Buffer = Buffer.alloc(0)
  let parts: Array<Uint8Array> = []
  let waiting = 0
  let isCut = false
  /** Joined now and then only, so that many small chunks cost no more than a few large ones. */
  const join = (): void => {
    const all = Buffer.concat([last, ...parts])
    isCut ||= all.length > most
    last = Buffer.from(all.subarray(Math.max(0, all.length - most)))
    parts = []
    waiting = 0
  }
  return {
    ends: () => {
      join()
      return { first: first.bytes(), last, isCut }
    },
    take: (chunk) => {
      const room = Math.min(chunk.length, most - taken)
      taken += room
      if (room > 0) first.take(chunk.subarray(0, room))
      if (room === chunk.length) return
      parts.push(chunk.subarray(room))
      waiting += chunk.length - room
      if (waiting > most) join()
    }
  }
}

/** Passes each chunk on as it comes. */
export const following = <E>(
  stream: Stream.Stream<Uint8Array, E>,
  take: (chunk: Uint8Array) => void,
  pass: (chunk: Uint8Array) => Effect.Effect<void>
): Effect.Effect<void> => each(stream, (chunk) => Effect.suspend(() => (take(chunk), pass(chunk))))

/** A first line that is ours, which begins with the mark; what stands before it is the engine's own. */
export interface Announcement {
  /** The rest of the line; `undefined` until it has come. */
  readonly line: () => string | undefined
  /** What came before it. */
  readonly before: () => string
  /** Returns what comes after the line. */
  readonly strip: (chunk: Uint8Array) => Uint8Array
}

const newline = 0x0a
const nothing = new Uint8Array()

export const announcement = (mark: string): Announcement => {
  const before = collecting(2 ** 16)
  let line: string | undefined
  return {
    strip: (chunk) => {
      if (line !== undefined) return chunk
      const head = Buffer.concat([before.bytes(), chunk])
      const at = head.indexOf(`${mark} `)
      const end = at === -1 ? -1 : head.indexOf(newline, at)
      if (end === -1) {
        before.take(chunk)
        return nothing
      }
      line = head.toString("latin1", at + mark.length + 1, end)
      return head.subarray(end + 1)
    },
    line: () => line,
    before: () => before.bytes().toString()
  }
}
