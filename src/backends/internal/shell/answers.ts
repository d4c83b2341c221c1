/**
 * Splits the output of a shell into answers by the end line that the session has requested for each.
 *
 * Everything before the end line is arbitrary content: it may contain any bytes, and no length in it is trusted.
 */

const maxStatusBytes = 8

export interface Answer {
  readonly bytes: Buffer
  readonly status: number
}

export interface Answers {
  /** Starts an answer that ends with this mark. Discards earlier output. */
  readonly begin: (mark: string) => void
  /** Returns `unasked` for output without a request or after the end. */
  readonly take: (chunk: Uint8Array) => Answer | "unasked" | undefined
  readonly size: () => number
  readonly bytesSoFar: () => Buffer
}

/**
 * Creates a splitter that keeps at most `most` bytes of an answer.
 *
 * With `isAlone`, output after the end line in the same chunk is `unasked`. Otherwise it is ignored.
 */
export const make = (maxBytes: number, refusesTrailingOutput: boolean): Answers => {
  let end: Buffer | undefined
  let kept: Array<Uint8Array> = []
  let size = 0
  /** The last bytes may contain the beginning of an end line. */
  let tail: Buffer = Buffer.alloc(0)

  const keep = (chunk: Uint8Array): void => {
    const room = maxBytes - size
    if (room > 0) kept.push(chunk.length > room ? chunk.subarray(0, room) : chunk)
    size += chunk.length
  }

  const makeAnswer = (length: number, status: number): Answer => {
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
      if (newline === -1 && window.length - from <= maxStatusBytes) {
        tail = Buffer.from(window.subarray(at))
        return undefined
      }
      const status = window.toString("latin1", from, newline)
      if (refusesTrailingOutput && newline !== window.length - 1) return "unasked"
      return /^\d{1,3}$/.test(status) ? makeAnswer(before + at, Number(status)) : "unasked"
    },
    size: () => size,
    bytesSoFar: () => Buffer.concat(kept)
  }
}
