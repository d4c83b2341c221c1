import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import { JournalError } from "../errors.ts"
import {
  type Chain,
  continueChain,
  checkGroup,
  type Line,
  maxHeaderBytes,
  parseHeader,
  parseLine,
  checkTail
} from "./format.ts"
import { attempt, readAt } from "./system.ts"

/** A place between two groups. */
export interface Point {
  /** The position of the last entry before it. */
  readonly position: number
  /** The offset in bytes. */
  readonly offset: number
  readonly chain: Chain
}

export interface LocatedLine extends Line {
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

const initialReadBytes = 512 * 1024

/** The largest length of a line in bytes, enough for the largest append. */
const maxLineBytes = 768 * 1024 * 1024

const tooLongError = (position: number): JournalError =>
  new JournalError({ operation, reason: "corrupt", position, detail: `entry ${position} is longer than any that is written` })

/** Returns the point after the header; `undefined` if the header is incomplete. */
export const readStart = (
  descriptor: number
): Effect.Effect<(Point & { readonly served: boolean }) | undefined, JournalError> =>
  Effect.flatMap(
    attempt(operation, () => {
      const bytes = Buffer.alloc(maxHeaderBytes)
      return bytes.subarray(0, readAt(descriptor, bytes, 0))
    }),
    (bytes) => {
      const header = parseHeader(bytes)
      if (header instanceof JournalError) return Effect.fail(header)
      return Effect.succeed(
        header === undefined
          ? undefined
          : { position: header.after, offset: bytes.indexOf(10) + 1, chain: header.chain, served: header.served }
      )
    }
  )

interface ScanState {
  point: Point
  /** The lines of an incomplete group. The next field is the point after these lines. */
  group: Array<LocatedLine>
  nextPoint: Point
}

const addLine = (state: ScanState, bytes: Uint8Array): JournalError | undefined => {
  const { chain, offset } = state.nextPoint
  const position = state.nextPoint.position + 1
  const followed = continueChain(bytes, position, chain)
  if (followed instanceof JournalError) return followed
  const line = parseLine(bytes, position)
  if (line instanceof JournalError) return line
  const problem = checkGroup(line, state.group.at(-1)?.more ?? 0, position)
  if (problem !== undefined) return problem
  const length = bytes.length + 1
  state.group.push({ ...line, position, offset, length })
  state.nextPoint = { position, offset: offset + length, chain: followed.chain }
  return undefined
}

/**
 * Scans from the point to the end of the file, or of its last complete group. An error that `visit` returns ends the scan. Other fibers may
 * run between two chunks.
 */
export const scan = (
  descriptor: number,
  from: Point,
  visit: (group: ReadonlyArray<LocatedLine>) => JournalError | undefined,
  maxLineLength = maxLineBytes
): Effect.Effect<Scanned, JournalError> => {
  const state: ScanState = { point: from, group: [], nextPoint: from }
  const take = (bytes: Buffer): number | JournalError => {
    let from = 0
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      const error = addLine(state, bytes.subarray(from, end))
      if (error !== undefined) return error
      from = end + 1
      if (state.group.at(-1)!.more > 0) continue
      const visitError = visit(state.group)
      if (visitError !== undefined) return visitError
      state.group = []
      state.point = state.nextPoint
    }
    return from
  }
  const next = (size: number): Effect.Effect<Scanned, JournalError> =>
    Effect.flatMap(
      attempt(operation, () => {
        const bytes = Buffer.allocUnsafe(size)
        return bytes.subarray(0, readAt(descriptor, bytes, state.nextPoint.offset))
      }),
      (bytes) => {
        const consumedBytes = take(bytes)
        if (consumedBytes instanceof JournalError) return Effect.fail(consumedBytes)
        if (consumedBytes === 0 && bytes.length >= maxLineLength) return Effect.fail(tooLongError(state.nextPoint.position + 1))
        // A line may be longer than the chunk.
        if (bytes.length === size)
          return Effect.andThen(Effect.yieldNow, next(consumedBytes === 0 ? size * 2 : initialReadBytes))
        const problem = checkTail(bytes.subarray(consumedBytes), state.nextPoint.position + 1)
        if (problem !== undefined) return Effect.fail(problem)
        const rest = state.nextPoint.offset - state.point.offset + bytes.length - consumedBytes
        return Effect.succeed({ point: state.point, rest })
      }
    )
  return Effect.suspend(() => next(initialReadBytes))
}
