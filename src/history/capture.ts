/**
 * Captures the content of many files in threads.
 *
 * If a file is missing or its stamp differs from the listing, the thread skips the file. The caller then reads the file
 * again or fails.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { FsPath } from "../model/FsPath.ts"
import type { DirectoryHistory, LentDirectory, StampedChild } from "../port/history.ts"
import { writeStamp } from "./stamps.ts"
import type { Threads } from "./threads/pool.ts"
import { type CaptureReport, type Place, stampLength } from "./threads/orders.ts"

const controlPattern = /[\u0000-\u001f\u007f]/

/**
 * Tests whether a segment has no control character. Threads receive the names of a comparison as lines, so a name must not
 * contain a newline. The key of a name that is not text begins with a NUL and does not exist on the disk.
 */
export const isPlainSegment = (segment: string): boolean => !controlPattern.test(segment)

export interface Listed {
  readonly segment: string
  readonly stamp: StampedChild
  /** The id that the file had when it was last stored, if any. A file that still has this id is not encoded again. */
  readonly knownId: string | undefined
}

export interface Captured {
  readonly id: string
  /** The object in the format of a git pack. `undefined` if the id is `knownId`, or if files are only hashed. */
  readonly encoded: Uint8Array | undefined
  /** The CRC-32 of `encoded`. */
  readonly crc: number
}

/** A directory, and the files in it to capture. `take` is called for each captured file. */
export interface Source<F extends Listed> {
  readonly path: FsPath
  readonly files: ReadonlyArray<F>
  readonly take: (file: F, captured: Captured) => void
}

interface Part<F extends Listed> extends Source<F> {
  readonly from: number
  readonly end: number
}

/** The numbers of files and of bytes at which an order to a thread is complete. An order takes about ten milliseconds. */
const [filesPerOrder, bytesPerOrder] = [128, 1024 * 1024] as const

const split = <F extends Listed>(sources: ReadonlyArray<Source<F>>): ReadonlyArray<ReadonlyArray<Part<F>>> => {
  const orders: Array<ReadonlyArray<Part<F>>> = []
  let parts: Array<Part<F>> = []
  let [files, bytes] = [0, 0]
  for (const source of sources) {
    for (let from = 0, end = 0; end < source.files.length; from = end) {
      while (end < source.files.length && files < filesPerOrder && bytes < bytesPerOrder) {
        bytes += source.files[end++]!.stamp.sizeBytes
        files++
      }
      if (end > from) parts.push({ ...source, from, end })
      if (files < filesPerOrder && bytes < bytesPerOrder) continue
      orders.push(parts)
      parts = []
      files = bytes = 0
    }
  }
  if (parts.length > 0) orders.push(parts)
  return orders
}

const deliver = <F extends Listed>(parts: ReadonlyArray<Part<F>>, { bytes, crcs, ends, ids }: CaptureReport): void => {
  let index = 0
  for (const { end, files, from, take } of parts) {
    for (let at = from; at < end; at++, index++) {
      const id = ids[index]!
      if (id === "") continue
      const start = index === 0 ? 0 : ends[index - 1]!
      const stop = ends[index]!
      take(files[at]!, { id, encoded: stop > start ? bytes.subarray(start, stop) : undefined, crc: crcs[index]! })
    }
  }
}

export interface Options {
  readonly lend: NonNullable<DirectoryHistory["lend"]>
  readonly threads: Threads
  readonly isEncoding: boolean
}

const captureParts = Effect.fnUntraced(function* <F extends Listed>(
  parts: ReadonlyArray<Part<F>>,
  { isEncoding, lend, threads }: Options
) {
  const places: Array<Place> = []
  const lent: Array<Part<F>> = []
  let last: LentDirectory | undefined
  for (const part of parts) {
    // Skip a directory that cannot be opened, for example because no descriptor is free. The caller then reads the files of
    // the directory and reports the reason.
    const found = yield* Effect.exit(lend(part.path))
    if (!Exit.isSuccess(found)) continue
    last = found.value
    const { base } = last
    const names = part.files
      .slice(part.from, part.end)
      .map(({ segment }) => segment)
      .join("/")
    places.push({ base, names })
    lent.push(part)
  }
  const files = lent.flatMap(({ end, files, from }) => files.slice(from, end))
  if (last === undefined || files.length === 0) return
  const { countBytes, refusesHardlinks } = last
  const stamps = new Float64Array(stampLength * files.length)
  for (const [index, { stamp }] of files.entries()) writeStamp(stamps, stampLength * index, stamp)
  const knownIds = files.map(({ knownId = "" }) => knownId)
  const report = yield* threads.run({ _tag: "Capture", places, stamps, knownIds, refusesHardlinks, isEncoding })
  if (report?._tag !== "Captured") return
  deliver(lent, report)
  const read = files.reduce((sum, { stamp }, index) => sum + (report.ids[index] === "" ? 0 : stamp.sizeBytes), 0)
  if (countBytes !== undefined) yield* countBytes("read", read)
}, Effect.scoped)

/** Captures the files of all sources in several threads. `done` runs after each order to a thread. */
export const capture = <F extends Listed>(
  sources: ReadonlyArray<Source<F>>,
  options: Options,
  done: Effect.Effect<void>
): Effect.Effect<void> =>
  Effect.forEach(split(sources), (parts) => Effect.andThen(captureParts(parts, options), done), {
    concurrency: options.threads.concurrency,
    discard: true
  })
