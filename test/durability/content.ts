/**
 * File contents that show whether they are complete. Binary content is a sequence of records, each with number, length
 * and checksum. A text contains its version at the beginning, in the middle and at the end.
 */
import { crc32 } from "node:zlib"

const headerLength = 48
/** The length of the pattern in bytes. It is not a power of two, so that no two pages are equal. */
const patternLength = 4093

const patternOf = (id: number): Buffer => {
  const pattern = Buffer.allocUnsafe(patternLength)
  let state = (id * 2654435761 + 1) >>> 0
  for (let i = 0; i < patternLength; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    pattern[i] = state >>> 24
  }
  return pattern
}

const headerOf = (id: number, length: number, checksum: number): string =>
  `${`@${id} ${length} ${checksum}`.padEnd(headerLength - 1)}\n`

const checksumOf = (id: number, payload: Uint8Array): number => crc32(payload, crc32(`${id} ${payload.length}`))

/** Returns a header followed by `size` bytes of content. */
export const record = (id: number, size: number): Buffer => {
  const bytes = Buffer.alloc(headerLength + size, patternOf(id))
  const payload = bytes.subarray(headerLength)
  bytes.write(headerOf(id, size, checksumOf(id, payload)), 0, "latin1")
  return bytes
}

const line = (id: number, where: string): string => `${where} of version ${id}`

/** Returns a text of `lines` lines around the three lines that an edit changes. */
export const text = (id: number, lines: number): string => {
  const half = Array.from({ length: lines >> 1 }, (_, n) => `line ${n} stays as it is`).join("\n")
  return `${line(id, "begin")}, ${lines} lines\n${half}\n${line(id, "middle")}\n${half}\n${line(id, "end")}\n`
}

/** Returns the edits that turn one version of a text into another. */
export const edits = (from: number, to: number): ReadonlyArray<{ readonly oldText: string; readonly newText: string }> =>
  ["begin", "middle", "end"].map((where) => ({ oldText: line(from, where), newText: line(to, where) }))

export const fileToken = (ids: ReadonlyArray<number>): string => `file ${ids.join("+")}`

export const textToken = (id: number, lines: number): string => `text ${id}/${lines}`

/** The suffix for a file that ends inside the record of an unfinished append. */
export const cut = " cut"

const headerForm = /^@(\d+) (\d+) (\d+) *\n$/

interface Parsed {
  readonly ids: ReadonlyArray<number>
  /** The number of bytes in complete records. */
  readonly whole: number
}

export const parse = (bytes: Buffer): Parsed => {
  const ids: Array<number> = []
  let at = 0
  while (at + headerLength <= bytes.length) {
    const found = headerForm.exec(bytes.toString("latin1", at, at + headerLength))
    if (found === null) break
    const [id, length, checksum] = [Number(found[1]), Number(found[2]), Number(found[3])]
    const end = at + headerLength + length
    if (end > bytes.length || checksumOf(id, bytes.subarray(at + headerLength, end)) !== checksum) break
    ids.push(id)
    at = end
  }
  return { ids, whole: at }
}

const textForm = /^begin of version (\d+), (\d+) lines\n/

const identifyText = (bytes: Buffer): string | undefined => {
  const found = textForm.exec(bytes.toString("latin1", 0, 80))
  if (found === null) return undefined
  const [id, lines] = [Number(found[1]), Number(found[2])]
  return bytes.equals(Buffer.from(text(id, lines))) ? textToken(id, lines) : undefined
}

/**
 * Returns a token for the content of a file: its complete versions, or "torn". `tail` is the record of an unfinished append: a
 * file that ends inside this record gets the suffix `cut`.
 */
export const identify = (bytes: Buffer, tail?: Buffer): string => {
  const { ids, whole } = parse(bytes)
  if (whole === bytes.length) return fileToken(ids)
  const rest = bytes.subarray(whole)
  if (tail !== undefined && rest.length < tail.length && rest.equals(tail.subarray(0, rest.length))) return fileToken(ids) + cut
  return identifyText(bytes) ?? `torn after ${whole} of ${bytes.length} bytes`
}
