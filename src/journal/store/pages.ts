/**
 * Reads the entries of a file by position. The index contains the offset of each block. The entries of the most recently used
 * blocks are cached.
 */
import { Buffer } from "../../runtime/buffer.ts"
import type { Recorded } from "../model.ts"
import { JournalError } from "../errors.ts"
import { parseLine, type Point } from "./format.ts"
import { readAt } from "../../runtime/host.ts"

/** The largest number of entries and of bytes in a block. */
const blockLimits = { entries: 256, bytes: 256 * 1024 } as const

const maxCachedBlocks = 16

export interface Pages<E> {
  /**
   * Adds the next entry, which has `length` bytes and follows the last entry. Without `recorded`, the entry is read from the
   * file when it is needed.
   */
  readonly add: (length: number, recorded?: Recorded<E>) => void
  readonly last: () => number
  /** Returns the result of `Store.read` synchronously. Throws system errors. */
  readonly read: (after: number, limit: number) => ReadonlyArray<Recorded<E>> | JournalError
  readonly readBackward: (before: number, limit: number) => ReadonlyArray<Recorded<E>> | JournalError
}

export type Decode<E> = (json: unknown, position: number) => E | JournalError

/** The cached first entries of a block, and the offset after these entries. */
interface CachedBlock<E> {
  readonly entries: Array<Recorded<E>>
  end: number
}

/**
 * Returns the error for a read within the removed entries. Only a read after 0 skips the removed entries, because a reader at
 * a later position would miss entries.
 */
const compactedError = (after: number, last: number): JournalError =>
  new JournalError({
    operation: "Journal.read",
    reason: "compacted",
    position: after + 1,
    detail: `the journal was compacted: the entries up to ${last} were removed; read after ${last}, or after 0 to begin at the first remaining entry`
  })

export const make = <E>(descriptor: number, from: Point, decode: Decode<E>): Pages<E> => {
  /** The position of the first entry of each block. `offsets` contains the offset of the same entry in the file. */
  const firstPositions: Array<number> = []
  const offsets: Array<number> = []
  const cache = new Map<number, CachedBlock<E>>()
  let last = from.position
  let end = from.offset

  const countOf = (block: number): number => (firstPositions[block + 1] ?? last + 1) - firstPositions[block]!

  const cacheBlock = (block: number, cached: CachedBlock<E>): void => {
    cache.delete(block)
    cache.set(block, cached)
    if (cache.size > maxCachedBlocks) cache.delete(cache.keys().next().value!)
  }

  const blockOf = (position: number): number => {
    let [low, high] = [0, firstPositions.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (firstPositions[middle]! <= position) low = middle
      else high = middle - 1
    }
    return low
  }

  const loadBlock = (block: number, cached: CachedBlock<E>): JournalError | undefined => {
    const bytes = Buffer.allocUnsafe((offsets[block + 1] ?? end) - cached.end)
    const read = bytes.subarray(0, readAt(descriptor, bytes, cached.end))
    const count = countOf(block)
    for (let at = 0; cached.entries.length < count;) {
      const position = firstPositions[block]! + cached.entries.length
      const lineEnd = read.indexOf(10, at)
      const line = parseLine(read.subarray(at, Math.max(at, lineEnd)), position)
      if (line instanceof JournalError) return line
      const entry = decode(line.entry, position)
      if (entry instanceof JournalError) return entry
      cached.entries.push(Object.freeze({ position, at: line.at, entry }))
      cached.end += lineEnd + 1 - at
      at = lineEnd + 1
    }
    return undefined
  }

  const entriesOf = (block: number): ReadonlyArray<Recorded<E>> | JournalError => {
    const cached = cache.get(block) ?? { entries: [], end: offsets[block]! }
    const error = cached.entries.length < countOf(block) ? loadBlock(block, cached) : undefined
    cacheBlock(block, cached)
    return error ?? cached.entries
  }

  /** Adds the last entry to the cache, unless the cache lacks an earlier entry of the same block. */
  const addToCache = (recorded: Recorded<E>, length: number): void => {
    const block = firstPositions.length - 1
    const cached = firstPositions[block] === last ? { entries: [], end } : cache.get(block)
    if (cached?.end !== end) return
    cached.entries.push(recorded)
    cached.end += length
    cacheBlock(block, cached)
  }

  return {
    add: (length, recorded) => {
      last++
      const block = firstPositions.length - 1
      const isFull =
        block < 0 ||
        last - firstPositions[block]! >= blockLimits.entries ||
        (end > offsets[block]! && end + length - offsets[block]! > blockLimits.bytes)
      if (isFull) {
        firstPositions.push(last)
        offsets.push(end)
      }
      if (recorded !== undefined) addToCache(recorded, length)
      end += length
    },
    last: () => last,
    read: (after, limit) => {
      if (after > 0 && after < from.position) return compactedError(after, from.position)
      const first = Math.max(from.position, after) + 1
      if (first > last) return []
      const block = blockOf(first)
      const entries = entriesOf(block)
      if (entries instanceof JournalError) return entries
      const at = first - firstPositions[block]!
      return entries.slice(at, at + limit)
    },
    readBackward: (before, limit) => {
      const latest = Math.min(before - 1, last)
      if (latest <= from.position) return []
      const block = blockOf(latest)
      const entries = entriesOf(block)
      if (entries instanceof JournalError) return entries
      const to = latest - firstPositions[block]! + 1
      return entries.slice(Math.max(0, to - limit), to).reverse()
    }
  }
}
