/**
 * Reads the entries of a file by position. The index has the offset of each block, and the entries of the most recently used blocks are
 * cached.
 */
import { Buffer } from "../../runtime/buffer.ts"
import { JournalError } from "../errors.ts"
import type { Recorded } from "../Journal.ts"
import type { Point } from "./scan.ts"
import { readLine } from "./format.ts"
import { readAt } from "./system.ts"

/** The limits of a block, whichever is reached first. */
const most = { entries: 256, bytes: 256 * 1024 } as const

const kept = 16

export interface Pages<E> {
  /**
   * Adds the next entry, which has `length` bytes and follows the last one. Without `recorded`, the entry is read from the file when it is
   * needed.
   */
  readonly add: (length: number, recorded?: Recorded<E>) => void
  readonly last: () => number
  /** Reads as `Store.read` does. Throws system errors. */
  readonly read: (after: number, limit: number) => ReadonlyArray<Recorded<E>> | JournalError
  readonly readBackward: (before: number, limit: number) => ReadonlyArray<Recorded<E>> | JournalError
}

export type Decode<E> = (json: unknown, position: number) => E | JournalError

/** The first entries of a block, and the offset after them. */
interface Known<E> {
  readonly entries: Array<Recorded<E>>
  end: number
}

/**
 * Returns the error for a position in the removed part. Only a read from 0 may skip the removed part, because a reader at a later position
 * must not miss entries.
 */
const compacted = (after: number, last: number): JournalError =>
  new JournalError({
    operation: "Journal.read",
    reason: "compacted",
    position: after + 1,
    detail: `the journal was compacted, and the entries up to ${last} are gone; read it from the beginning, or from ${last} on`
  })

export const make = <E>(descriptor: number, from: Point, decode: Decode<E>): Pages<E> => {
  /** The position of the first entry of each block. `offsets` has the offset of that entry. */
  const firsts: Array<number> = []
  const offsets: Array<number> = []
  const cache = new Map<number, Known<E>>()
  let last = from.position
  let end = from.offset

  const countOf = (block: number): number => (firsts[block + 1] ?? last + 1) - firsts[block]!

  const keep = (block: number, known: Known<E>): void => {
    cache.delete(block)
    cache.set(block, known)
    if (cache.size > kept) cache.delete(cache.keys().next().value!)
  }

  const blockOf = (position: number): number => {
    let [low, high] = [0, firsts.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (firsts[middle]! <= position) low = middle
      else high = middle - 1
    }
    return low
  }

  const load = (block: number, known: Known<E>): JournalError | undefined => {
    const bytes = Buffer.allocUnsafe((offsets[block + 1] ?? end) - known.end)
    const read = bytes.subarray(0, readAt(descriptor, bytes, known.end))
    const count = countOf(block)
    for (let at = 0; known.entries.length < count;) {
      const position = firsts[block]! + known.entries.length
      const stop = read.indexOf(10, at)
      const line = readLine(read.subarray(at, Math.max(at, stop)), position)
      if (line instanceof JournalError) return line
      const entry = decode(line.entry, position)
      if (entry instanceof JournalError) return entry
      known.entries.push(Object.freeze({ position, at: line.at, entry }))
      known.end += stop + 1 - at
      at = stop + 1
    }
    return undefined
  }

  const entriesOf = (block: number): ReadonlyArray<Recorded<E>> | JournalError => {
    const known = cache.get(block) ?? { entries: [], end: offsets[block]! }
    const error = known.entries.length < countOf(block) ? load(block, known) : undefined
    keep(block, known)
    return error ?? known.entries
  }

  /** Adds the last entry to the cache, unless earlier entries of its block are missing there. */
  const note = (recorded: Recorded<E>, length: number): void => {
    const block = firsts.length - 1
    const known = firsts[block] === last ? { entries: [], end } : cache.get(block)
    if (known?.end !== end) return
    known.entries.push(recorded)
    known.end += length
    keep(block, known)
  }

  return {
    add: (length, recorded) => {
      last++
      const block = firsts.length - 1
      const isFull =
        block < 0 ||
        last - firsts[block]! >= most.entries ||
        (end > offsets[block]! && end + length - offsets[block]! > most.bytes)
      if (isFull) {
        firsts.push(last)
        offsets.push(end)
      }
      if (recorded !== undefined) note(recorded, length)
      end += length
    },
    last: () => last,
    read: (after, limit) => {
      if (after > 0 && after < from.position) return compacted(after, from.position)
      const first = Math.max(from.position, after) + 1
      if (first > last) return []
      const block = blockOf(first)
      const entries = entriesOf(block)
      if (entries instanceof JournalError) return entries
      const at = first - firsts[block]!
      return entries.slice(at, at + limit)
    },
    readBackward: (before, limit) => {
      const latest = Math.min(before - 1, last)
      if (latest <= from.position) return []
      const block = blockOf(latest)
      const entries = entriesOf(block)
      if (entries instanceof JournalError) return entries
      const to = latest - firsts[block]! + 1
      return entries.slice(Math.max(0, to - limit), to).reverse()
    }
  }
}
