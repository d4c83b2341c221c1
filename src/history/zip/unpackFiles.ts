/**
 * Unpacks small files of an archive in threads, directly into their staging directories.
 *
 * A thread skips a file that is damaged or that cannot be created. The caller then stages the file itself, or reports why it
 * cannot be staged. If a thread ends, it may have created some files of its orders, so the caller removes them first.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { name, parent } from "../../model/FsPath.ts"
import { isPlainSegment } from "../capture.ts"
import type { LentDirectory } from "../../port/history.ts"
import type { Place } from "../threads/orders.ts"
import type { Threads } from "../threads/pool.ts"
import type { UnpackOptions as SharedOptions, UnstagedFile } from "../unpack.ts"
import { type CentralEntry, stored } from "./records.ts"
import type { Source } from "./spool.ts"

/** The entry of a file, with the offset of its content in the archive. */
type Located = Pick<CentralEntry, "packed" | "size" | "crc" | "method"> & { readonly data: number }

interface UnpackOptions extends SharedOptions {
  readonly threads: Threads
}

export type Unpacked = readonly [entry: Located, file: UnstagedFile]

/** The numbers of files, and of their packed and unpacked bytes, at which an order to a thread is complete. */
const [filesPerOrder, bytesPerOrder] = [64, 512 * 1024] as const

/** The largest number of bytes between two contents of an order, which are read with them. */
const maxGapBytes = 16 * 1024

/** Splits the files, sorted by their offsets, into orders. */
const split = (files: ReadonlyArray<Unpacked>): ReadonlyArray<ReadonlyArray<Unpacked>> => {
  const orders: Array<Array<Unpacked>> = []
  let order: Array<Unpacked> = []
  let [bytes, end] = [0, 0]
  for (const file of files) {
    const [{ data, packed, size }] = file
    if (order.length === filesPerOrder || bytes >= bytesPerOrder || data - end > maxGapBytes) {
      if (order.length > 0) orders.push(order)
      order = []
      bytes = 0
    }
    order.push(file)
    bytes += packed + size
    end = data + packed
  }
  if (order.length > 0) orders.push(order)
  return orders
}

const unpackOrder = Effect.fnUntraced(function* (
  source: Source,
  files: ReadonlyArray<Unpacked>,
  { isHashed, lend, onStaged, threads }: UnpackOptions
) {
  const places: Array<Place> = []
  const lent: Array<Unpacked> = []
  let countBytes: LentDirectory["countBytes"]
  for (const [directory, inside] of Map.groupBy(files, ([, { at }]) => parent(at))) {
    const found = yield* Effect.exit(lend(directory))
    if (!Exit.isSuccess(found) || !found.value.acceptsFiles) continue
    countBytes = found.value.countBytes
    places.push({ base: found.value.base, names: inside.map(([, { at }]) => name(at)).join("/") })
    lent.push(...inside)
  }
  if (lent.length === 0) return
  const start = files[0]![0].data
  const last = files.at(-1)![0]
  const read = yield* Effect.exit(source.read(start, last.data + last.packed - start))
  if (!Exit.isSuccess(read)) return
  const report = yield* threads.run({
    _tag: "Unpack",
    places,
    modes: Int32Array.from(lent, ([, { mode = -1 }]) => mode),
    // Copy the bytes, because the source may keep them, and the order transfers them to the thread.
    bytes: new Uint8Array(read.value),
    starts: Uint32Array.from(lent, ([{ data }]) => data - start),
    ends: Uint32Array.from(lent, ([{ data, packed }]) => data + packed - start),
    sizes: Uint32Array.from(lent, ([{ size }]) => size),
    crcs: Uint32Array.from(lent, ([{ crc }]) => crc),
    ids: lent.map(([, { file }]) => file.id),
    isDeflated: Uint8Array.from(lent, ([{ method }]) => (method === stored ? 0 : 1)),
    isHashed
  })
  if (report?._tag !== "Unpacked") {
    for (const [, file] of lent) file.mayExist = true
    return
  }
  let [count, bytes] = [0, 0]
  for (const [index, [{ size }, file]] of lent.entries()) {
    file.hash = report.hashes[index]
    if (file.hash === undefined) continue
    count++
    bytes += size
  }
  if (countBytes !== undefined) yield* countBytes("written", bytes)
  yield* onStaged(count)
}, Effect.scoped)

export const unpackFiles = (source: Source, files: ReadonlyArray<Unpacked>, options: UnpackOptions): Effect.Effect<void> =>
  Effect.forEach(
    split(files.filter(([, { at }]) => isPlainSegment(name(at))).sort(([a], [b]) => a.data - b.data)),
    (order) => unpackOrder(source, order, options),
    { concurrency: options.threads.concurrency, discard: true }
  )
