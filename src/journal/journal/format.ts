/**
 * The text format of a journal: a header line, then one line of JSON for each entry, `{v, pos, at, entry}`.
 *
 * The entries of one append are a group; `more` is the number of entries that follow in the group. A group without its last line was never
 * confirmed and does not count. In a chained journal, each line ends with a hash of the previous line and of its own bytes. So a changed,
 * removed, added or moved line breaks the chain. Lines that were cut off at the end are not detected by the file itself, only by comparing
 * the last hash with a copy kept elsewhere.
 */
import { Buffer } from "../../runtime/buffer.ts"
import { isUtf8 } from "../../runtime/node.ts"
import { sha256 } from "../../runtime/hash.ts"
import { JournalError } from "../errors.ts"

const version = 1

export const headerOf = (chained: boolean): string =>
  `{"format":"fs-algebra/journal","v":${version},"chained":${String(chained)}}\n`

/**
 * Returns the header of a compacted journal. Entries up to `after` are removed, and `chain` is the hash of the last of them. `served` tells
 * whether leaves worked on the journal.
 */
export const compactedHeaderOf = ({ after, chain, served }: Header): string =>
  `{"format":"fs-algebra/journal","v":2,"chained":${String(chain !== undefined)},"after":${after},"served":${String(served)}${
    chain === undefined ? "" : `,"chain":"${chain}"`
  }}\n`

/** The longest header in bytes, including those of later versions. */
export const maxHeaderBytes = 256

/** The hash of the line before; `undefined` if the journal is not chained. */
export type Chain = string | undefined

export const initialChain = (chained: boolean): Chain => (chained ? sha256(Buffer.from(headerOf(true))) : undefined)

const corruptError = (detail: string, position?: number): JournalError =>
  new JournalError({ operation: "Journal.read", reason: "corrupt", detail, ...(position === undefined ? {} : { position }) })

const laterVersionError = (position?: number): JournalError =>
  new JournalError({
    operation: "Journal.read",
    reason: "version",
    detail: "it was written by a later version of fs-algebra",
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

export interface Header {
  /** The position of the last entry that was removed; 0 if none was. */
  readonly after: number
  /** The hash that the first entry continues. */
  readonly chain: Chain
  readonly served: boolean
}

const parseCompactedHeader = ({ after, chain, served }: Record<string, unknown>, line: string): Header | undefined => {
  if (!isCount(after) || !(chain === undefined || (typeof chain === "string" && /^[0-9a-f]{64}$/.test(chain)))) return undefined
  const header = { after, chain, served: served === true }
  return line === compactedHeaderOf(header) ? header : undefined
}

/** Parses the header of a file. Returns `undefined` if the header is incomplete, so that there is no entry either. */
export const parseHeader = (start: Uint8Array): Header | undefined | JournalError => {
  const text = Buffer.from(start).toString("latin1")
  for (const chained of [false, true]) {
    const header = headerOf(chained)
    if (text.startsWith(header)) return { after: 0, chain: initialChain(chained), served: false }
    if (header.startsWith(text)) return undefined
  }
  const end = start.indexOf(10)
  const json = end < 0 ? undefined : parseJson(start.subarray(0, end))
  if (json?.["format"] !== "fs-algebra/journal") return corruptError("it is no journal of fs-algebra")
  const compacted = parseCompactedHeader(json, text.slice(0, end + 1))
  if (compacted !== undefined) return compacted
  return isLaterVersion(json["v"]) && json["v"] !== 2 ? laterVersionError() : corruptError("it is no journal of fs-algebra")
}

const chainHash = (previous: string, body: Uint8Array): string => sha256(Buffer.concat([Buffer.from(previous), body]))

const hashSuffix = (hash: string): string => `,"hash":"${hash}"}`
const hashSuffixLength = hashSuffix("0".repeat(64)).length

export interface ComposedLine {
  readonly text: string
  readonly chain: Chain
}

/** Returns a line and its chain. `entry` is JSON; `more` entries of the same group follow. */
export const composeLine = (position: number, at: number, more: number, entry: string, chain: Chain): ComposedLine => {
  const group = more === 0 ? "" : `"more":${more},`
  const body = `{"v":${version},"pos":${position},"at":${at},${group}"entry":${entry}`
  if (chain === undefined) return { text: `${body}}\n`, chain }
  const hash = chainHash(chain, Buffer.from(body))
  return { text: `${body}${hashSuffix(hash)}\n`, chain: hash }
}

export interface Line {
  readonly at: number
  readonly more: number
  readonly entry: unknown
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0

export const parseLine = (bytes: Uint8Array, position: number): Line | JournalError => {
  const json = parseJson(bytes)
  if (json === undefined) return corruptError(`entry ${position} is no JSON`, position)
  const { at, entry, more = 0, pos, v } = json
  if (isLaterVersion(v)) return laterVersionError(position)
  if (v !== version || pos !== position) return corruptError(`entry ${position} is another one, or none`, position)
  if (typeof at !== "number" || !(more === 0 || isCount(more)) || entry === undefined) {
    return corruptError(`entry ${position} is not whole`, position)
  }
  return { at, more, entry }
}

/** Returns the chain after a line, or an error if the line does not continue the chain. */
export const continueChain = (bytes: Uint8Array, position: number, chain: Chain): { readonly chain: Chain } | JournalError => {
  const bodyLength = bytes.length - hashSuffixLength
  const end = Buffer.from(bytes.subarray(Math.max(0, bodyLength))).toString("latin1")
  if (chain === undefined) {
    return /^,"hash":"[0-9a-f]{64}"\}$/.test(end)
      ? corruptError(`entry ${position} is chained, and the journal is not`, position)
      : { chain }
  }
  const hash = bodyLength < 0 ? "" : chainHash(chain, bytes.subarray(0, bodyLength))
  return end === hashSuffix(hash)
    ? { chain: hash }
    : corruptError(`entry ${position} does not fit to those before it`, position)
}

/** Checks that a line continues its group. `expected` is the `more` of the line before, 0 after the end of a group. */
export const checkGroup = (line: Line, expected: number, position: number): JournalError | undefined =>
  expected > 0 && line.more !== expected - 1
    ? corruptError(`entry ${position} is not of the append that it stands in`, position)
    : undefined

/**
 * Checks the bytes after the last line feed. A partial line was torn. A complete line followed by another byte is an error, since its line
 * feed was changed.
 */
export const checkTail = (bytes: Uint8Array, position: number): JournalError | undefined =>
  bytes.length > 0 && parseJson(bytes.subarray(0, bytes.length - 1)) !== undefined
    ? corruptError(`entry ${position} does not end as a line does`, position)
    : undefined
