import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"
import { isUtf8 } from "../../runtime/node.ts"
import { JournalError } from "../errors.ts"
import { attempt } from "./systemCalls.ts"
import { readAt } from "../../runtime/host.ts"

// The text format of a journal: a header line, then one line of JSON for each entry, `{v, pos, at, entry}`.
//
// The entries of one append are a group, and `more` is the number of entries that follow in the group. A group without its last
// line was never confirmed and is ignored. In a chained journal, each line ends with a hash of the previous hash and of its own
// bytes. So a changed, removed, added or moved line breaks the chain. The file does not show whether lines were cut off at its
// end. To detect this, keep a copy of the last hash elsewhere.

const version = 1

export const headerOf = (chained: boolean): string =>
  `{"format":"fs-algebra/journal","v":${version},"chained":${String(chained)}}\n`

/**
 * Returns the header of a compacted journal. Entries up to `after` were removed, and `chain` is the hash of the last removed
 * entry. `served` is true if leaves used the journal.
 */
export const compactedHeaderOf = ({ after, chain, served }: Header): string =>
  `{"format":"fs-algebra/journal","v":2,"chained":${String(chain !== undefined)},"after":${after},"served":${String(served)}${
    chain === undefined ? "" : `,"chain":"${chain}"`
  }}\n`

/** The longest header in bytes, including the headers of later versions. */
const maxHeaderBytes = 256

/** The hash at the end of a line. `undefined` if the journal is not chained. */
type Chain = string | undefined

export const initialChain = (chained: boolean): Chain => (chained ? sha256(Buffer.from(headerOf(true))) : undefined)

const corruptError = (detail: string, position?: number): JournalError =>
  new JournalError({ operation: "Journal.read", reason: "corrupt", detail, ...(position === undefined ? {} : { position }) })

const laterVersionError = (position?: number): JournalError =>
  new JournalError({
    operation: "Journal.read",
    reason: "version",
    detail: "the journal was written by a later version of fs-algebra; upgrade fs-algebra to read it",
    ...(position === undefined ? {} : { position })
  })

const parseJson = (bytes: Uint8Array): Record<string, unknown> | undefined => {
  if (!isUtf8(bytes)) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8"))
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

const isLaterVersion = (value: unknown): boolean => typeof value === "number" && Number.isInteger(value) && value > version

interface Header {
  /** The position of the last entry that was removed, or 0 if no entry was removed. */
  readonly after: number
  /** The hash of the line before the first entry. */
  readonly chain: Chain
  readonly served: boolean
}

const parseCompactedHeader = ({ after, chain, served }: Record<string, unknown>, line: string): Header | undefined => {
  if (!isCount(after) || !(chain === undefined || (typeof chain === "string" && /^[0-9a-f]{64}$/.test(chain)))) return undefined
  const header = { after, chain, served: served === true }
  return line === compactedHeaderOf(header) ? header : undefined
}

/** Parses the header of a file. Returns `undefined` for an incomplete header, which means that the file has no entries. */
const parseHeader = (start: Uint8Array): Header | undefined | JournalError => {
  const text = Buffer.from(start).toString("latin1")
  for (const chained of [false, true]) {
    const header = headerOf(chained)
    if (text.startsWith(header)) return { after: 0, chain: initialChain(chained), served: false }
    if (header.startsWith(text)) return undefined
  }
  const end = start.indexOf(10)
  const json = end < 0 ? undefined : parseJson(start.subarray(0, end))
  if (json?.["format"] !== "fs-algebra/journal") return corruptError("the file is not a journal of fs-algebra")
  const compacted = parseCompactedHeader(json, text.slice(0, end + 1))
  if (compacted !== undefined) return compacted
  return isLaterVersion(json["v"]) && json["v"] !== 2
    ? laterVersionError()
    : corruptError("the file is not a journal of fs-algebra")
}

const chainHash = (previous: string, body: Uint8Array): string => sha256(Buffer.concat([Buffer.from(previous), body]))

const hashSuffix = (hash: string): string => `,"hash":"${hash}"}`
const hashSuffixLength = hashSuffix("0".repeat(64)).length

interface ComposedLine {
  readonly text: string
  readonly chain: Chain
}

/**
 * Composes the line of an entry, and returns the line with its hash. `chain` is the hash of the previous line, or `undefined`
 * in a journal that is not chained. `entry` is JSON. `more` is the number of entries of the same group that follow.
 */
export const composeLine = (position: number, at: number, more: number, entry: string, chain: Chain): ComposedLine => {
  const group = more === 0 ? "" : `"more":${more},`
  const body = `{"v":${version},"pos":${position},"at":${at},${group}"entry":${entry}`
  if (chain === undefined) return { text: `${body}}\n`, chain }
  const hash = chainHash(chain, Buffer.from(body))
  return { text: `${body}${hashSuffix(hash)}\n`, chain: hash }
}

interface Line {
  readonly at: number
  readonly more: number
  readonly entry: unknown
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0

export const parseLine = (bytes: Uint8Array, position: number): Line | JournalError => {
  const json = parseJson(bytes)
  if (json === undefined) return corruptError(`entry ${position} is not JSON`, position)
  const { at, entry, more = 0, pos, v } = json
  if (isLaterVersion(v)) return laterVersionError(position)
  if (v !== version || pos !== position)
    return corruptError(`the line of entry ${position} has a different position or version`, position)
  if (typeof at !== "number" || !(more === 0 || isCount(more)) || entry === undefined) {
    return corruptError(`the line of entry ${position} has a missing or an invalid field`, position)
  }
  return { at, more, entry }
}

const continueChain = (bytes: Uint8Array, position: number, chain: Chain): { readonly chain: Chain } | JournalError => {
  const bodyLength = bytes.length - hashSuffixLength
  const end = Buffer.from(bytes.subarray(Math.max(0, bodyLength))).toString("latin1")
  if (chain === undefined) {
    return /^,"hash":"[0-9a-f]{64}"\}$/.test(end)
      ? corruptError(`entry ${position} has a hash, but the journal is not chained`, position)
      : { chain }
  }
  const hash = bodyLength < 0 ? "" : chainHash(chain, bytes.subarray(0, bodyLength))
  return end === hashSuffix(hash)
    ? { chain: hash }
    : corruptError(`the hash of entry ${position} does not match the entries up to it`, position)
}

/** Checks that a line continues the append of the previous line. `expected` is the `more` of the previous line. */
const checkGroup = (line: Line, expected: number, position: number): JournalError | undefined =>
  expected > 0 && line.more !== expected - 1
    ? corruptError(`entry ${position} does not continue the append of the previous entry`, position)
    : undefined

/**
 * Checks the bytes after the last line feed. An incomplete line is allowed. A complete line that ends with another byte is an
 * error, because its line feed was changed.
 */
const checkTail = (bytes: Uint8Array, position: number): JournalError | undefined =>
  bytes.length > 0 && parseJson(bytes.subarray(0, bytes.length - 1)) !== undefined
    ? corruptError(`entry ${position} does not end with a line feed`, position)
    : undefined

/** A point in the file between two appends. */
export interface Point {
  /** The position of the last entry before the point. */
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

interface Scanned {
  readonly point: Point
  /** The number of bytes after the point. These bytes belong to an append that is incomplete or is being written. */
  readonly rest: number
}

const operation = "Journal.read"

const initialReadBytes = 512 * 1024

/** The largest length of a line in bytes, which is enough for the largest append. */
const maxLineBytes = 768 * 1024 * 1024

const tooLongError = (position: number): JournalError =>
  new JournalError({
    operation,
    reason: "corrupt",
    position,
    detail: `entry ${position} is longer than the largest possible entry`
  })

/** Returns the point after the header. Returns `undefined` if the header is incomplete. */
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
  /** The lines so far of an incomplete append. `nextPoint` is the point after these lines. */
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
 * Scans from a point to the end of the last complete append. If `visit` returns an error, the scan fails with this error.
 * Other fibers may run between two chunks.
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
        // Read twice as much if a line is longer than the chunk.
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
