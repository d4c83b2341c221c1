/**
 * What a stream of a shell says is cut into answers by the line that the session itself has asked for at the end of each. What it says
 * before that is anything: every byte may be part of it, and no length is believed.
 */

/** Bytes of a status and its newline, and some to spare. */
const longest = 8

export interface Answer {
  readonly bytes: Buffer
  readonly status: number
}

export interface Answers {
  /** From now on, until the end with this mark. What came before, while nothing was asked, is left out. */
  readonly begin: (mark: string) => void
  /** `unasked` for what comes while nothing is asked, or after the end. */
  readonly take: (chunk: Uint8Array) => Answer | "unasked" | undefined
  /** Of the answer that is coming, kept or not. */
  readonly size: () => number
  /** What has come of it so far. */
  readonly soFar: () => Buffer
}

/**
 * Keeps at most `most` bytes of an answer; the rest is passed over. `isAlone`: whether what comes together with an end and behind it
 * makes that none; else it is passed over too.
 */
export const make = (most: number, isAlone: boolean): Answers => {
  let end: Buffer | undefined
  let kept: Array<Uint8Array> = []
  let size = 0
  /** The last bytes, with which an end may have begun. */
  let tail: Buffer = Buffer.alloc(0)

  const keep = (chunk: Uint8Array): void => {
    const room = most - size
    if (room > 0) kept.push(chunk.length > room ? chunk.subarray(0, room) : chunk)
    size += chunk.length
  }

  const answered = (length: number, status: number): Answer => {
    const all = Buffer.concat(kept)
    end = undefined
    kept = []
    return { bytes: all.subarray(0, length), status }
  }

  return {
    begin: (mark) => {
      end = Buffer.from(`\n${mark} `)
      kept = []
      size = 0
      tail = Buffer.alloc(0)
    },
    take: (chunk) => {
      if (end === undefined) return "unasked"
      const before = size - tail.length
      const window =
        tail.length === 0 ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length) : Buffer.concat([tail, chunk])
      keep(chunk)
      const at = window.indexOf(end)
      if (at === -1) {
        tail = Buffer.from(window.subarray(Math.max(0, window.length - end.length + 1)))
        return undefined
      }
      const from = at + end.length
      const newline = window.indexOf(10, from)
      if (newline === -1 && window.length - from <= longest) {
        tail = Buffer.from(window.subarray(at))
        return undefined
      }
      const status = window.toString("latin1", from, newline)
      if (isAlone && newline !== window.length - 1) return "unasked"
      return /^\d{1,3}$/.test(status) ? answered(before + at, Number(status)) : "unasked"
    },
    size: () => size,
    soFar: () => Buffer.concat(kept)
  }
}
