/**
 * Content that changes in place, on a port that can only replace whole files.
 *
 * The content consists of pages of 64 KiB. Written pages are in memory; all others are read from the opened file. So
 * memory depends only on the written pages, and a write costs only the pages that it touches.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import type { Fault } from "../../model/FsError.ts"
import type { Handle } from "../../port/Backend.ts"

const pageBytes = 64 * 1024

export interface Pages {
  readonly size: () => number
  readonly read: (offset: number, length: number) => Effect.Effect<Uint8Array, Fault>
  /** Writes a copy of the bytes. A gap between the end and `offset` is filled with zeros. */
  readonly write: (offset: number, bytes: Uint8Array) => Effect.Effect<void, Fault>
  readonly truncate: (size: number) => Effect.Effect<void>
  readonly content: Stream.Stream<Uint8Array, Fault>
}

/** Creates pages over `base`, which must stay open during their use; without it, the content is empty. */
export const make = (base: Handle | undefined): Pages => {
  const writtenPages = new Map<number, Uint8Array>()
  let size = base?.stat.sizeBytes ?? 0
  /** The readable part of `base`. A part that was cut off stays zero if the content grows again. */
  let visibleBaseBytes = size

  const readBasePage = (index: number): Effect.Effect<Uint8Array, Fault> => {
    const page = new Uint8Array(pageBytes)
    const start = index * pageBytes
    const length = Math.min(pageBytes, visibleBaseBytes - start)
    return base === undefined || length <= 0
      ? Effect.succeed(page)
      : Effect.map(Read.range(base, start, length), (bytes) => {
          page.set(bytes)
          return page
        })
  }
  const pageAt = (index: number): Effect.Effect<Uint8Array, Fault> => {
    const page = writtenPages.get(index)
    return page === undefined ? readBasePage(index) : Effect.succeed(page)
  }

  const read = Effect.fnUntraced(function* (offset: number, length: number): Effect.fn.Return<Uint8Array, Fault> {
    const end = Math.min(offset + length, size)
    const out = new Uint8Array(Math.max(0, end - offset))
    for (let at = offset; at < end;) {
      const index = Math.floor(at / pageBytes)
      const start = at - index * pageBytes
      const page = yield* pageAt(index)
      const part = page.subarray(start, Math.min(pageBytes, start + end - at))
      out.set(part, at - offset)
      at += part.length
    }
    return out
  })

  const write = Effect.fnUntraced(function* (offset: number, bytes: Uint8Array): Effect.fn.Return<void, Fault> {
    if (bytes.length === 0) return
    const end = offset + bytes.length
    const last = Math.floor((end - 1) / pageBytes)
    const touchedPages: Array<readonly [index: number, page: Uint8Array]> = []
    for (let index = Math.floor(offset / pageBytes); index <= last; index++) {
      const isWhole = offset <= index * pageBytes && end >= (index + 1) * pageBytes
      touchedPages.push([index, isWhole ? (writtenPages.get(index) ?? new Uint8Array(pageBytes)) : yield* pageAt(index)])
    }
    for (const [index, page] of touchedPages) {
      const start = Math.max(0, index * pageBytes - offset)
      page.set(bytes.subarray(start, (index + 1) * pageBytes - offset), Math.max(0, offset - index * pageBytes))
      writtenPages.set(index, page)
    }
    size = Math.max(size, end)
  })

  const truncate = (length: number): Effect.Effect<void> =>
    Effect.sync(() => {
      if (length < size) {
        for (const index of writtenPages.keys()) if (index * pageBytes >= length) writtenPages.delete(index)
        writtenPages.get(Math.floor(length / pageBytes))?.fill(0, length % pageBytes)
        visibleBaseBytes = Math.min(visibleBaseBytes, length)
      }
      size = length
    })

  return {
    size: () => size,
    read: (offset, length) => Effect.suspend(() => read(offset, length)),
    write: (offset, bytes) => Effect.suspend(() => write(offset, bytes)),
    truncate,
    content: Stream.unfold(0, (at) =>
      at >= size ? Effect.undefined : Effect.map(read(at, pageBytes), (bytes) => [bytes, at + pageBytes] as const)
    )
  }
}
