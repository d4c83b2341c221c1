/**
 * The answer to a read: one content, or several in a row. Each content is in the content store or in memory. So a file of any size is a
 * list of hashes, and its content stays as it was when it was read.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { JournalError } from "../errors.ts"
import type { Content, ContentRef } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../Journal.ts"

export interface Piece {
  readonly offset: number
  readonly content: Content
}

export interface Pieces {
  /** The sum of all pieces in bytes. */
  readonly size: number
  /** The size of the whole file in bytes, which is larger than `size` if a range was requested. */
  readonly totalSize: number
  readonly isPartial: boolean
  readonly stat: FileStat | undefined
  readonly all: ReadonlyArray<Piece>
}

const isRef = (content: Content): content is ContentRef => !isBytes(content)

export const sizeOf = (content: Content): number => (isRef(content) ? content.size : content.length)

/** Returns the hash of the whole file, if it is known without reading. */
export const versionOf = ({ all, isPartial }: Pieces): string | undefined => {
  const only = all.length === 1 && !isPartial ? all[0]!.content : undefined
  return only !== undefined && isRef(only) ? only.sha256 : undefined
}

const pieceAt = (all: ReadonlyArray<Piece>, offset: number): Piece => {
  let low = 0
  let high = all.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (all[middle]!.offset <= offset) low = middle
    else high = middle - 1
  }
  return all[low]!
}

const noBytes = Effect.sync(() => new Uint8Array(0))

/** Returns a function that reads within one piece at a time. The latest piece is cached, because small reads follow one another. */
export const makeReader = (journal: Scrivener<Entry>, { all, size }: Pieces) => {
  let latest: { readonly piece: Piece; readonly bytes: Uint8Array } | undefined
  const bytesOf = (piece: Piece): Effect.Effect<Uint8Array, JournalError> =>
    latest?.piece === piece
      ? Effect.succeed(latest.bytes)
      : Effect.map(journal.bytes(piece.content), (bytes) => {
          latest = { piece, bytes }
          return bytes
        })
  /** At most `length` bytes, fewer at the end of a piece. */
  return (offset: number, length: number): Effect.Effect<Uint8Array, JournalError> =>
    Effect.suspend(() => {
      if (offset >= size || length <= 0) return noBytes
      const piece = pieceAt(all, offset)
      const from = offset - piece.offset
      return Effect.map(bytesOf(piece), (bytes) => bytes.slice(from, from + length))
    })
}

export const readWhole = (journal: Scrivener<Entry>, { all, size }: Pieces): Effect.Effect<Uint8Array, JournalError> =>
  all.length === 1
    ? journal.bytes(all[0]!.content)
    : Effect.suspend(() => {
        const out = new Uint8Array(size)
        const put = ({ content, offset }: Piece) => Effect.map(journal.bytes(content), (bytes) => out.set(bytes, offset))
        return Effect.as(Effect.forEach(all, put, { discard: true }), out)
      })

export const streamPieces = (journal: Scrivener<Entry>, { all }: Pieces): Stream.Stream<Uint8Array, JournalError> =>
  Stream.fromPull(
    Effect.sync(() => {
      let next = 0
      return Effect.suspend((): Effect.Effect<[Uint8Array, ...Array<Uint8Array>], JournalError | Cause.Done<void>> => {
        const piece = all[next++]
        return piece === undefined ? Cause.done() : Effect.map(journal.bytes(piece.content), (bytes) => [bytes])
      })
    })
  )
