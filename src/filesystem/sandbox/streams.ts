/** Shortens program output: keeps the beginning and the end in whole characters, with a mark at the cut. */
import { codePoints } from "../../model/FsPath.ts"

export const mark = "\n[cut here]\n"

export interface Cut {
  readonly text: string
  readonly isCut: boolean
}

/** Returns the text without the mark of an earlier cut, or `undefined` if there is none. */
const unmarked = (text: string): string | undefined => {
  const at = text.indexOf(mark)
  return at === -1 ? undefined : text.slice(0, at) + text.slice(at + mark.length)
}

type Ends = readonly [first: string, last: string]

const cutting = (text: string, fits: (text: string) => boolean, ends: (text: string) => Ends): Cut => {
  if (fits(text)) return { text, isCut: false }
  const former = unmarked(text)
  if (former !== undefined && fits(former)) return { text, isCut: true }
  const [first, last] = ends(text)
  return { text: first + mark + last, isCut: true }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Returns the start of the character at or before this byte; in invalid UTF-8, the byte itself. */
const edgeBefore = (bytes: Uint8Array, at: number): number => {
  let edge = at
  while (edge > at - 4 && edge > 0 && isContinuation(bytes[edge])) edge--
  return edge > at - 4 ? edge : at
}

/** Returns the start of the next character at or after this byte; in invalid UTF-8, the byte itself. */
const edgeAfter = (bytes: Uint8Array, at: number): number => {
  let edge = at
  while (edge < at + 4 && isContinuation(bytes[edge])) edge++
  return edge < at + 4 ? edge : at
}

const encoder = new TextEncoder()
// A byte order mark is part of the output.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

export const textOf = (bytes: Uint8Array, max: number): string =>
  decoder.decode(bytes.length <= max ? bytes : bytes.subarray(0, edgeBefore(bytes, max)))

export const textOfStart = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true })

/**
 * Returns the whole characters in the last `max` bytes. `isCut` says whether bytes are missing before the first one.
 */
export const textOfEnd = (bytes: Uint8Array, max: number, isCut = bytes.length > max): string =>
  decoder.decode(isCut ? bytes.subarray(edgeAfter(bytes, Math.max(0, bytes.length - max))) : bytes)

export const halves = (max: number): readonly [first: number, last: number] => [Math.ceil(max / 2), Math.floor(max / 2)]

export const cutBytes = (text: string, max: number): Cut =>
  cutting(
    text,
    (whole) => whole.length <= max / 3 || encoder.encode(whole).length <= max,
    (whole) => {
      const bytes = encoder.encode(whole)
      const [first, last] = halves(max)
      return [textOf(bytes, first), textOfEnd(bytes, last)]
    }
  )

const firstCharacters = (text: string, max: number): string =>
  Array.from(text.slice(0, 2 * max))
    .slice(0, max)
    .join("")

const lastCharacters = (text: string, max: number): string =>
  max === 0
    ? ""
    : Array.from(text.slice(-2 * max))
        .slice(-max)
        .join("")

export const cutCharacters = (text: string, max: number): Cut =>
  cutting(
    text,
    (whole) => whole.length <= max || codePoints(whole) <= max,
    (whole) => {
      const [first, last] = halves(max)
      return [firstCharacters(whole, first), lastCharacters(whole, last)]
    }
  )

export const fitting = (
  streams: readonly [stdout: string, stderr: string],
  fits: (stdout: string, stderr: string) => boolean
): readonly [stdout: string, stderr: string] => {
  if (fits(...streams)) return streams
  let [low, high] = [0, Math.max(...streams.map(({ length }) => length))]
  const at = (max: number) => streams.map((text) => cutCharacters(text, max).text) as unknown as typeof streams
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (fits(...at(middle))) low = middle
    else high = middle - 1
  }
  return at(low)
}
