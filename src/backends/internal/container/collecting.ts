/**
 * Collects the output of processes. The output is read to its end, so that the process never blocks, but only a bounded
 * part is kept.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

export interface Collector {
  /** Failures are ignored, because the process reports how it ended. */
  readonly from: <E>(stream: Stream.Stream<Uint8Array, E>) => Effect.Effect<void>
  readonly bytes: () => Buffer
  readonly take: (chunk: Uint8Array) => void
}

const forEachChunk = <E>(
  stream: Stream.Stream<Uint8Array, E>,
  use: (chunk: Uint8Array) => Effect.Effect<void>
): Effect.Effect<void> => Effect.ignore(Stream.runForEach(stream, use))

export const makeCollector = (maxBytes: number): Collector => {
  const parts: Array<Uint8Array> = []
  let length = 0
  const take = (chunk: Uint8Array): void => {
    const room = maxBytes - length
    if (room <= 0 || chunk.length === 0) return
    // Copy the part, because a view would keep the whole chunk in memory.
    parts.push(chunk.length > room ? chunk.slice(0, room) : chunk)
    length += Math.min(room, chunk.length)
  }
  return {
    from: (stream) => forEachChunk(stream, (chunk) => Effect.sync(() => take(chunk))),
    bytes: () => Buffer.concat(parts),
    take
  }
}

export interface OutputEnds {
  readonly first: Buffer
  readonly last: Buffer
  readonly isCut: boolean
}

export interface EndsCollector {
  readonly ends: () => OutputEnds
  readonly take: (chunk: Uint8Array) => void
}

export const makeEndsCollector = (maxBytes: number): EndsCollector => {
  const first = makeCollector(maxBytes)
  let firstLength = 0
  let last: Buffer = Buffer.alloc(0)
  let parts: Array<Uint8Array> = []
  let pendingBytes = 0
  let isCut = false
  /** Joins only occasionally, so that many small chunks cost no more than a few large ones. */
  const join = (): void => {
    const all = Buffer.concat([last, ...parts])
    isCut ||= all.length > maxBytes
    last = Buffer.from(all.subarray(Math.max(0, all.length - maxBytes)))
    parts = []
    pendingBytes = 0
  }
  return {
    ends: () => {
      join()
      return { first: first.bytes(), last, isCut }
    },
    take: (chunk) => {
      const room = Math.min(chunk.length, maxBytes - firstLength)
      firstLength += room
      if (room > 0) first.take(chunk.subarray(0, room))
      if (room === chunk.length) return
      parts.push(chunk.subarray(room))
      pendingBytes += chunk.length - room
      if (pendingBytes > maxBytes) join()
    }
  }
}

export const readForwarding = <E>(
  stream: Stream.Stream<Uint8Array, E>,
  take: (chunk: Uint8Array) => void,
  pass: (chunk: Uint8Array) => Effect.Effect<void>
): Effect.Effect<void> => forEachChunk(stream, (chunk) => Effect.suspend(() => (take(chunk), pass(chunk))))

/** The first line of ours in a stream, which begins with the mark. Text before it is the engine's. */
export interface Announcement {
  /** Absent until the line has arrived. */
  readonly line: () => string | undefined
  readonly before: () => string
  readonly strip: (chunk: Uint8Array) => Uint8Array
}

const newline = 0x0a
const noBytes = new Uint8Array()

export const makeAnnouncement = (mark: string): Announcement => {
  const before = makeCollector(2 ** 16)
  let line: string | undefined
  return {
    strip: (chunk) => {
      if (line !== undefined) return chunk
      const head = Buffer.concat([before.bytes(), chunk])
      const at = head.indexOf(`${mark} `)
      const end = at === -1 ? -1 : head.indexOf(newline, at)
      if (end === -1) {
        before.take(chunk)
        return noBytes
      }
      line = head.toString("latin1", at + mark.length + 1, end)
      return head.subarray(end + 1)
    },
    line: () => line,
    before: () => before.bytes().toString()
  }
}
