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

interface MatchAt extends LineMatch {
  readonly path: FsPath
}

/**
 * Makes a match that is equal to an object literal. V8 learns from early collections that literals live long, and then allocates
 * them as old objects. Objects of a constructor are always young, and most of them die young.
 */
const MatchAt = function (
  this: { -readonly [K in keyof MatchAt]: MatchAt[K] },
  path: FsPath,
  lineNumber: number,
  lineContent: string,
  matchStart: number,
  matchEnd: number
) {
  this.path = path
  this.lineNumber = lineNumber
  this.lineContent = lineContent
  this.matchStart = matchStart
  this.matchEnd = matchEnd
} as unknown as new (path: FsPath, lineNumber: number, lineContent: string, matchStart: number, matchEnd: number) => MatchAt
MatchAt.prototype = Object.prototype

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
      : new MatchAt(path, lineNumber, lineContent, matchStart, matchEnd)
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

const emptyResult = { found: noMatches }

export const attachTexts = (
  all: ReadonlyArray<FileFound>,
  texts: ReadonlyArray<string> | undefined
): Array<{ readonly found: FileFound; readonly text?: string }> => {
  let next = 0
  return all.map((found) => {
    if (found === noMatches) return emptyResult
    return texts === undefined || typeof found === "string" ? { found } : { found, text: texts[next++]! }
  })
}
