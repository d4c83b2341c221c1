/**
 * Collects the output of processes. The output is read to its end, so that the process never blocks, but only a bounded
 * part is kept.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

export interface Collecting {
  /** Failures are ignored, because the process reports how it ended. */
  readonly from: <E>(stream: Stream.Stream<Uint8Array, E>) => Effect.Effect<void>
  readonly bytes: () => Buffer
  readonly take: (chunk: Uint8Array) => void
}

const each = <E>(stream: Stream.Stream<Uint8Array, E>, use: (chunk: Uint8Array) => Effect.Effect<void>): Effect.Effect<void> =>
  Effect.ignore(Stream.runForEach(stream, use))

export const collecting = (most: number): Collecting => {
  const parts: Array<Uint8Array> = []
  let length = 0
  const take = (chunk: Uint8Array): void => {
    const room = most - length
    if (room <= 0 || chunk.length === 0) return
    // Copy the part, because a view would keep the whole chunk in memory.
    parts.push(chunk.length > room ? chunk.slice(0, room) : chunk)
    length += Math.min(room, chunk.length)
  }
  return {
    from: (stream) => each(stream, (chunk) => Effect.sync(() => take(chunk))),
    bytes: () => Buffer.concat(parts),
    take
  }
}

export interface Ends {
  readonly first: Buffer
  readonly last: Buffer
  readonly isCut: boolean
}

export interface CollectingEnds {
  readonly ends: () => Ends
  readonly take: (chunk: Uint8Array) => void
}

export const collectingEnds = (most: number): CollectingEnds => {
  const first = collecting(most)
  let taken = 0
  let last: Buffer = Buffer.alloc(0)
  let parts: Array<Uint8Array> = []
  let waiting = 0
  let isCut = false
  /** Joins only occasionally, so that many small chunks cost no more than a few large ones. */
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

export const following = <E>(
  stream: Stream.Stream<Uint8Array, E>,
  take: (chunk: Uint8Array) => void,
  pass: (chunk: Uint8Array) => Effect.Effect<void>
): Effect.Effect<void> => each(stream, (chunk) => Effect.suspend(() => (take(chunk), pass(chunk))))

/** The first line of ours in a stream, which begins with the mark. Text before it is the engine's. */
export interface Announcement {
  /** Absent until the line has arrived. */
  readonly line: () => string | undefined
  readonly before: () => string
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
