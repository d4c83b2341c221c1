/**
 * Splits a large text into parts that a page shows one at a time, with line numbers. A part ends with a line, unless a single
 * line is longer than a part.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FileStat } from "../model/Entry.ts"
import type { FsError } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"

/** The start of each part: its byte offset, and the number of its first line from 1. */
export interface Index {
  readonly offsets: ReadonlyArray<number>
  readonly firstLines: ReadonlyArray<number>
  readonly totalLines: number
  readonly size: number
}

const lineFeed = 10

export const indexOf = (fs: Algebra, path: FsPath, maxPart: number): Effect.Effect<Index, FsError> =>
  Effect.suspend(() => {
    const offsets = [0]
    const firstLines = [1]
    let size = 0
    let line = 1
    let afterLine = 0
    const beginPart = (): void => {
      const begin = offsets.at(-1)!
      offsets.push(afterLine > begin ? afterLine : begin + maxPart)
      firstLines.push(line)
    }
    const take = (chunk: Uint8Array): void => {
      for (let at = 0; at < chunk.length;) {
        // Begin another part only when there are more bytes.
        if (size + at === offsets.at(-1)! + maxPart) beginPart()
        const stop = Math.min(chunk.length, offsets.at(-1)! + maxPart - size)
        for (
          let found = chunk.indexOf(lineFeed, at);
          found !== -1 && found < stop;
          found = chunk.indexOf(lineFeed, found + 1)
        ) {
          line++
          afterLine = size + found + 1
        }
        at = stop
      }
      size += chunk.length
    }
    return Effect.map(
      Stream.runForEach(fs.stream(path, { chunkSize: 2 ** 20 }), (chunk) => Effect.sync(() => take(chunk))),
      () => ({ offsets, firstLines, size, totalLines: afterLine === size ? line - 1 : line })
    )
  })

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** The largest number of bytes in a UTF-8 character after the first byte. */
const maxContinuationBytes = 3

/** Reads one part as UTF-8. A character that the end of a part cuts belongs to the next part. */
export const read = (fs: Algebra, path: FsPath, { offsets, size }: Index, part: number): Effect.Effect<string, FsError> => {
  const begin = offsets[part]!
  const end = offsets[part + 1] ?? size
  const offset = Math.max(0, begin - maxContinuationBytes)
  return Effect.map(fs.readBytes(path, { offset, limit: end + 1 - offset }), ({ content }) => {
    const boundary = (given: number): number => {
      let at = given
      while (at > 0 && given - at < maxContinuationBytes && isContinuation(content[at])) at--
      return isContinuation(content[at]) ? given : at
    }
    const bytes = content.subarray(boundary(begin - offset), boundary(Math.min(end - offset, content.length)))
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)
  })
}

interface CachedIndex {
  readonly stamp: string
  readonly index: Index
}

const maxIndexesPerTree = 16

const indexesByTree = new WeakMap<object, Map<string, CachedIndex>>()

const stampOf = ({ modifiedAt, sizeBytes }: FileStat): string => `${sizeBytes} ${modifiedAt?.epochMilliseconds ?? ""}`

/**
 * Returns the index of a file, and keeps it while the file's size and time stay the same. `tree` identifies the tree of the file, which
 * several filesystems can show.
 */
export const cachedIndexOf = (
  fs: Algebra,
  path: FsPath,
  stat: FileStat,
  maxPart: number,
  tree: object = fs
): Effect.Effect<Index, FsError> =>
  Effect.suspend(() => {
    const files = indexesByTree.get(tree) ?? new Map<string, CachedIndex>()
    indexesByTree.set(tree, files)
    const stamp = stampOf(stat)
    const cached = files.get(path)
    if (cached?.stamp === stamp) return Effect.succeed(cached.index)
    return Effect.tap(indexOf(fs, path, maxPart), (index) =>
      Effect.sync(() => {
        files.delete(path)
        if (files.size >= maxIndexesPerTree) files.delete(files.keys().next().value!)
        files.set(path, { stamp, index })
      })
    )
  })
