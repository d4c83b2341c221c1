/** Shortens program output: keeps the beginning and the end in whole characters, with a mark at the cut. */
import { codePoints } from "../../model/FsPath.ts"

export const cutMark = "\n[cut here]\n"

export interface CutText {
  readonly text: string
  readonly isCut: boolean
}

/** Returns the text without the mark of an earlier cut, or `undefined` if there is none. */
const withoutMark = (text: string): string | undefined => {
  const at = text.indexOf(cutMark)
  return at === -1 ? undefined : text.slice(0, at) + text.slice(at + cutMark.length)
}

type Ends = readonly [first: string, last: string]

const cutText = (text: string, fits: (text: string) => boolean, ends: (text: string) => Ends): CutText => {
  if (fits(text)) return { text, isCut: false }
  const textWithoutMark = withoutMark(text)
  if (textWithoutMark !== undefined && fits(textWithoutMark)) return { text, isCut: true }
  const [first, last] = ends(text)
  return { text: first + cutMark + last, isCut: true }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Returns the start of the character at or before this byte; in invalid UTF-8, the byte itself. */
const characterStartBefore = (bytes: Uint8Array, at: number): number => {
  let characterStart = at
  while (characterStart > at - 4 && characterStart > 0 && isContinuation(bytes[characterStart])) characterStart--
  return characterStart > at - 4 ? characterStart : at
}

/** Returns the start of the next character at or after this byte; in invalid UTF-8, the byte itself. */
const characterStartAfter = (bytes: Uint8Array, at: number): number => {
  let characterStart = at
  while (characterStart < at + 4 && isContinuation(bytes[characterStart])) characterStart++
  return characterStart < at + 4 ? characterStart : at
}

const encoder = new TextEncoder()
// A byte order mark is part of the output.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

export const textOf = (bytes: Uint8Array, max: number): string =>
  decoder.decode(bytes.length <= max ? bytes : bytes.subarray(0, characterStartBefore(bytes, max)))

export const textOfStart = (bytes: Uint8Array): string =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true })

/**
 * Returns the whole characters in the last `max` bytes. `isCut` says whether bytes are missing before the first one.
 */
export const textOfEnd = (bytes: Uint8Array, max: number, isCut = bytes.length > max): string =>
  decoder.decode(isCut ? bytes.subarray(characterStartAfter(bytes, Math.max(0, bytes.length - max))) : bytes)

export const splitBudget = (max: number): readonly [first: number, last: number] => [Math.ceil(max / 2), Math.floor(max / 2)]

export const cutBytes = (text: string, max: number): CutText =>
  cutText(
    text,
    (whole) => whole.length <= max / 3 || encoder.encode(whole).length <= max,
    (whole) => {
      const bytes = encoder.encode(whole)
      const [first, last] = splitBudget(max)
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

export const cutCharacters = (text: string, max: number): CutText =>
  cutText(
    text,
    (whole) => whole.length <= max || codePoints(whole) <= max,
    (whole) => {
      const [first, last] = splitBudget(max)
      return [firstCharacters(whole, first), lastCharacters(whole, last)]
    }
  )

export const cutToFit = (
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
