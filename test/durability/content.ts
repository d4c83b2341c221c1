/**
 * Contents that tell by themselves whether they are whole: a file is a row of records, each with its number, length and checksum, or
 * a text that names its version at the beginning, in the middle and at the end.
 */
import { crc32 } from "node:zlib"

const headerLength = 48
/** Not a power of two, so that no page looks like another. */
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

/** `size` bytes of content behind a header. */
export const record = (id: number, size: number): Buffer => {
  const bytes = Buffer.alloc(headerLength + size, patternOf(id))
  const payload = bytes.subarray(headerLength)
  bytes.write(headerOf(id, size, checksumOf(id, payload)), 0, "latin1")
  return bytes
}

const line = (id: number, where: string): string => `${where} of version ${id}`

/** A text of `lines` lines around the three that an edit changes. */
export const text = (id: number, lines: number): string => {
  const half = Array.from({ length: lines >> 1 }, (_, n) => `line ${n} stays as it is`).join("\n")
  return `${line(id, "begin")}, ${lines} lines\n${half}\n${line(id, "middle")}\n${half}\n${line(id, "end")}\n`
}

/** From one version of a text to another. */
export const edits = (from: number, to: number): ReadonlyArray<{ readonly oldText: string; readonly newText: string }> =>
  ["begin", "middle", "end"].map((where) => ({ oldText: line(from, where), newText: line(to, where) }))

export const fileToken = (ids: ReadonlyArray<number>): string => `file ${ids.join("+")}`

export const textToken = (id: number, lines: number): string => `text ${id}/${lines}`

/** Of a file that ends within the record that was being appended to it. */
export const cut = " cut"

const headerForm = /^@(\d+) (\d+) (\d+) *\n$/

interface Parsed {
  readonly ids: ReadonlyArray<number>
  /** Bytes of whole records. */
  readonly whole: number
}

/** The whole records from the beginning. */
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
 * What a file holds, as one word: exactly whole versions, or "torn". With `tail`, the record that was being appended, a file that
 * ends within it is told apart.
 */
export const identify = (bytes: Buffer, tail?: Buffer): string => {
  const { ids, whole } = parse(bytes)
  if (whole === bytes.length) return fileToken(ids)
  const rest = bytes.subarray(whole)
  if (tail !== undefined && rest.length < tail.length && rest.equals(tail.subarray(0, rest.length))) return fileToken(ids) + cut
  return identifyText(bytes) ?? `torn after ${whole} of ${bytes.length} bytes`
}
