import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import { JournalError } from "../errors.ts"
import { type Chain, follow, follows, type Line, longestHeader, readHeader, readLine, readTail } from "./format.ts"
import { attempt, readAt } from "./system.ts"

/** A place between two groups. */
export interface Point {
  /** The position of the last entry before it. */
  readonly position: number
  /** The offset in bytes. */
  readonly offset: number
  readonly chain: Chain
}

export interface Placed extends Line {
  readonly position: number
  readonly offset: number
  /** The length in bytes, including the line feed. */
  readonly length: number
}

export interface Scanned {
  readonly point: Point
  /** The number of bytes after the point, from a group that is torn or is being written. */
  readonly rest: number
}

const operation = "Journal.read"

const chunkSize = 512 * 1024

/** The largest length of a line in bytes, enough for the largest append. */
const longestLine = 768 * 1024 * 1024

const tooLong = (position: number): JournalError =>
  new JournalError({ operation, reason: "corrupt", position, detail: `entry ${position} is longer than any that is written` })

/** Returns the point after the header; `undefined` if the header is incomplete. */
export const start = (descriptor: number): Effect.Effect<(Point & { readonly served: boolean }) | undefined, JournalError> =>
  Effect.flatMap(
    attempt(operation, () => {
      const bytes = Buffer.alloc(longestHeader)
      return bytes.subarray(0, readAt(descriptor, bytes, 0))
    }),
    (bytes) => {
      const header = readHeader(bytes)
      if (header instanceof JournalError) return Effect.fail(header)
      return Effect.succeed(
        header === undefined
          ? undefined
          : { position: header.after, offset: bytes.indexOf(10) + 1, chain: header.chain, served: header.served }
      )
    }
  )

interface Going {
  point: Point
  /** The lines of an incomplete group. The next field is the point after these lines. */
  group: Array<Placed>
  ahead: Point
}

const step = (going: Going, bytes: Uint8Array): JournalError | undefined => {
  const { chain, offset } = going.ahead
  const position = going.ahead.position + 1
  const followed = follow(bytes, position, chain)
  if (followed instanceof JournalError) return followed
  const line = readLine(bytes, position)
  if (line instanceof JournalError) return line
  const odd = follows(line, going.group.at(-1)?.more ?? 0, position)
  if (odd !== undefined) return odd
  const length = bytes.length + 1
  going.group.push({ ...line, position, offset, length })
  going.ahead = { position, offset: offset + length, chain: followed.chain }
  return undefined
}

/**
 * Scans from the point to the end of the file, or of its last complete group. An error that `visit` returns ends the scan. Other fibers may
 * run between two chunks.
 */
export const scan = (
  descriptor: number,
  from: Point,
  visit: (group: ReadonlyArray<Placed>) => JournalError | undefined,
  longest = longestLine
): Effect.Effect<Scanned, JournalError> => {
  const going: Going = { point: from, group: [], ahead: from }
  const take = (bytes: Buffer): number | JournalError => {
    let from = 0
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      const error = step(going, bytes.subarray(from, end))
      if (error !== undefined) return error
      from = end + 1
      if (going.group.at(-1)!.more > 0) continue
      const refused = visit(going.group)
      if (refused !== undefined) return refused
      going.group = []
      going.point = going.ahead
    }
    return from
  }
  const next = (size: number): Effect.Effect<Scanned, JournalError> =>
    Effect.flatMap(
      attempt(operation, () => {
        const bytes = Buffer.allocUnsafe(size)
        return bytes.subarray(0, readAt(descriptor, bytes, going.ahead.offset))
      }),
      (bytes) => {
        const taken = take(bytes)
        if (taken instanceof JournalError) return Effect.fail(taken)
        if (taken === 0 && bytes.length >= longest) return Effect.fail(tooLong(going.ahead.position + 1))
        // A line may be longer than the chunk.
        if (bytes.length === size) return Effect.andThen(Effect.yieldNow, next(taken === 0 ? size * 2 : chunkSize))
        const odd = readTail(bytes.subarray(taken), going.ahead.position + 1)
        if (odd !== undefined) return Effect.fail(odd)
        const rest = going.ahead.offset - going.point.offset + bytes.length - taken
        return Effect.succeed({ point: going.point, rest })
      }
    )
  return Effect.suspend(() => next(chunkSize))
}
