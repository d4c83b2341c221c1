/** What a program has written, as far as it is passed on: cut between two characters, and marked where it was. */
import { codePoints } from "../../model/FsPath.ts"

export const mark = "\n[cut here]"

export interface Cut {
  readonly text: string
  readonly isCut: boolean
}

/** Who cut it before has marked it too. */
const isMarked = (text: string): boolean => text.endsWith(mark)

const withoutMark = (text: string): string => (isMarked(text) ? text.slice(0, -mark.length) : text)

const cutting = (text: string, fits: (text: string) => boolean, cut: (text: string) => string): Cut => {
  if (fits(text)) return { text, isCut: false }
  const bare = withoutMark(text)
  return { text: (fits(bare) ? bare : cut(bare)) + mark, isCut: true }
}

/** Where a character begins, at or before this byte; the byte itself where it is in the middle of none, as in what is no text. */
const edgeBefore = (bytes: Uint8Array, at: number): number => {
  let edge = at
  while (edge > at - 4 && edge > 0 && (bytes[edge]! & 0xc0) === 0x80) edge--
  return edge > at - 4 ? edge : at
}

const encoder = new TextEncoder()
// What a program writes first is part of what it writes.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

/** The whole characters among the first `max` bytes. */
export const textOf = (bytes: Uint8Array, max: number): string =>
  decoder.decode(bytes.length <= max ? bytes : bytes.subarray(0, edgeBefore(bytes, max)))

export const cutBytes = (text: string, max: number): Cut =>
  cutting(
    text,
    (whole) => whole.length <= max / 3 || encoder.encode(whole).length <= max,
    (whole) => textOf(encoder.encode(whole), max)
  )

export const cutCharacters = (text: string, max: number): Cut =>
  cutting(
    text,
    (whole) => whole.length <= max || codePoints(whole) <= max,
    (whole) =>
      Array.from(whole.slice(0, 2 * max))
        .slice(0, max)
        .join("")
  )

/** As much of both as keeps the message that they are shown in within what is allowed. */
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
