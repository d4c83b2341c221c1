/**
 * The results of a search in a few buffers that move between threads without a copy.
 *
 * Strings are made as late as possible and in bulk, because slicing one string is faster than decoding many.
 */
import type * as NodeBuffer from "node:buffer"
import type { FsPath } from "../model/FsPath.ts"
import type { LineMatch, PackedMatches, SkipReason } from "../model/search.ts"

export type { PackedMatches } from "../model/search.ts"

export type FileFound = ReadonlyArray<LineMatch> | SkipReason

const reasons = ["binary", "tooLarge", "unreadable", "gone"] as const

const noMatches: ReadonlyArray<LineMatch> = []

/** The number of bytes decoded at a time. Creating longer strings is many times slower. */
const maxDecodedBytes = 2 ** 15

export interface Unpacking {
  readonly step: (maxMatches: number) => boolean
  readonly all: Array<FileFound>
}

/** Starts an incremental conversion of packed matches. With `pathOf`, every match contains the path of its file. */
export const startUnpacking = (packed: PackedMatches, pathOf?: (file: number) => FsPath): Unpacking => {
  const { files, meta } = packed
  const { isAscii } = process.getBuiltinModule("node:buffer") as typeof NodeBuffer
  const bytes = Buffer.from(packed.bytes.buffer, packed.bytes.byteOffset, packed.bytes.byteLength)
  const all: Array<FileFound> = []
  let match = 0
  let decodedUpTo = 0
  let text: string | undefined
  let origin = 0
  let start = 0
  let path: FsPath | undefined
  /** The matches of the current file, which get an array of exact size at the end of the file. */
  const matches: Array<LineMatch> = []
  let matchCount = 0
  let remainingMatches = 0

  const decode = (): void => {
    origin = start
    do decodedUpTo += 4
    while (decodedUpTo < meta.length && meta[decodedUpTo + 3]! - origin <= maxDecodedBytes)
    const end = meta[decodedUpTo - 1]!
    const isAsciiRange = packed.isAscii || isAscii(bytes.subarray(origin, end))
    text = isAsciiRange ? bytes.toString("latin1", origin, end) : undefined
  }
  const next = (): LineMatch => {
    if (match === decodedUpTo) decode()
    const end = meta[match + 3]!
    const lineContent = text === undefined ? bytes.toString("utf8", start, end) : text.slice(start - origin, end - origin)
    start = end
    const lineNumber = meta[match]!
    const matchStart = meta[match + 1]!
    const matchEnd = meta[match + 2]!
    match += 4
    return path === undefined
      ? { lineNumber, lineContent, matchStart, matchEnd }
      : ({ path, lineNumber, lineContent, matchStart, matchEnd } as LineMatch)
  }
  const beginFile = (file: number): void => {
    const count = files[file]!
    if (count <= 0) all.push(count === 0 ? noMatches : reasons[-1 - count]!)
    else {
      path = pathOf?.(file)
      remainingMatches = count
      matchCount = 0
    }
  }
  return {
    all,
    step: (maxMatches) => {
      for (let room = maxMatches; room > 0 && (remainingMatches > 0 || all.length < files.length);) {
        if (remainingMatches === 0) beginFile(all.length)
        else {
          matches[matchCount++] = next()
          if (--remainingMatches === 0) all.push(matches.slice(0, matchCount))
          room--
        }
      }
      return remainingMatches === 0 && all.length === files.length
    }
  }
}

export const found = (packed: PackedMatches, pathOf?: (file: number) => FsPath): Array<FileFound> => {
  const { all, step } = startUnpacking(packed, pathOf)
  step(Number.POSITIVE_INFINITY)
  return all
}

/**
 * The result of a file. V8 may allocate object literals as old objects, which keep dead matches alive until the next full
 * collection; instances of a class are young.
 */
class FileResult {
  readonly found: FileFound
  readonly text: string | undefined

  constructor(found: FileFound, text: string | undefined) {
    this.found = found
    this.text = text
  }
}

const emptyResult = new FileResult(noMatches, undefined)

export const attachTexts = (
  all: ReadonlyArray<FileFound>,
  texts: ReadonlyArray<string> | undefined
): Array<{ readonly found: FileFound; readonly text: string | undefined }> => {
  let next = 0
  return all.map((found) => {
    if (found === noMatches) return emptyResult
    return new FileResult(found, typeof found === "string" ? undefined : texts?.[next++])
  })
}
