/**
 * What a search has found, in few buffers that go from thread to thread without being copied. Strings are made of it as late as
 * possible, and many at a time: one text is cut in pieces faster than many are decoded.
 */
import type * as NodeBuffer from "node:buffer"
import type { FsPath } from "../model/FsPath.ts"
import type { Found, Unsearched } from "../model/search.ts"

export interface Packed {
  /** Per file: lines with a match, or -1 binary, -2 tooLarge, -3 unreadable, -4 gone. Fewer than were asked for after a withdrawal. */
  readonly files: Int32Array<ArrayBuffer>
  /** Per match: line number, matchStart, matchEnd, where in `bytes` its line ends. */
  readonly meta: Int32Array<ArrayBuffer>
  /** The lines' contents one after another, in UTF-8. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly isAscii: boolean
  /** One per file that has matches, in order. */
  readonly texts: ReadonlyArray<string> | undefined
}

export type FileFound = ReadonlyArray<Found> | Unsearched

const reasons = ["binary", "tooLarge", "unreadable", "gone"] as const

const nothing: ReadonlyArray<Found> = []

/** Bytes decoded at a time: longer strings are many times slower to make. */
const decoded = 2 ** 15

/** The making of strings and matches, some at a time. */
export interface Unpacking {
  /** At most about so many matches more; whether that was all. */
  readonly step: (most: number) => boolean
  /** Per file what became of it. */
  readonly all: Array<FileFound>
}

/** Every match has the path that `pathOf` gives for its file, where that is given. */
export const unpacking = (packed: Packed, pathOf?: (file: number) => FsPath): Unpacking => {
  const { files, meta } = packed
  const { isAscii } = process.getBuiltinModule("node:buffer") as typeof NodeBuffer
  const bytes = Buffer.from(packed.bytes.buffer, packed.bytes.byteOffset, packed.bytes.byteLength)
  const all: Array<FileFound> = []
  let match = 0
  /** Lines up to the match `known` are in `text`, which begins at the byte `origin`. */
  let known = 0
  let text: string | undefined
  let origin = 0
  let start = 0
  let path: FsPath | undefined
  /** Of the file that has been begun. */
  let found: Array<Found> = []
  let left = 0

  /** Decodes the lines from the next one on, if they are ASCII. */
  const decode = (): void => {
    origin = start
    do known += 4
    while (known < meta.length && meta[known + 3]! - origin <= decoded)
    const end = meta[known - 1]!
    const together = packed.isAscii || isAscii(bytes.subarray(origin, end))
    text = together ? bytes.toString("latin1", origin, end) : undefined
  }
  const next = (): Found => {
    if (match === known) decode()
    const end = meta[match + 3]!
    const lineContent = text === undefined ? bytes.toString("utf8", start, end) : text.slice(start - origin, end - origin)
    start = end
    const lineNumber = meta[match]!
    const matchStart = meta[match + 1]!
    const matchEnd = meta[match + 2]!
    match += 4
    return path === undefined
      ? { lineNumber, lineContent, matchStart, matchEnd }
      : ({ path, lineNumber, lineContent, matchStart, matchEnd } as Found)
  }
  const begin = (file: number): void => {
    const count = files[file]!
    if (count <= 0) all.push(count === 0 ? nothing : reasons[-1 - count]!)
    else {
      path = pathOf?.(file)
      left = count
      all.push((found = []))
    }
  }
  return {
    all,
    step: (most) => {
      for (let room = most; room > 0 && (left > 0 || all.length < files.length);) {
        if (left === 0) begin(all.length)
        else {
          found.push(next())
          left--
          room--
        }
      }
      return left === 0 && all.length === files.length
    }
  }
}

export const found = (packed: Packed): Array<FileFound> => {
  const { all, step } = unpacking(packed)
  step(Number.POSITIVE_INFINITY)
  return all
}

/** Most files have nothing. */
const nothingFound = { found: nothing }

/** With the text of each file that has matches, where that was asked for. */
export const withTexts = (
  all: ReadonlyArray<FileFound>,
  texts: ReadonlyArray<string> | undefined
): Array<{ readonly found: FileFound; readonly text?: string }> => {
  let next = 0
  return all.map((found) => {
    if (found === nothing) return nothingFound
    return texts === undefined || typeof found === "string" ? { found } : { found, text: texts[next++]! }
  })
}
