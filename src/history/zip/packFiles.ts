/**
 * Reads and compresses small files in threads.
 *
 * A thread skips a file that is missing, too large or not a regular file. The caller then reads the file itself, or reports why it
 * cannot be read.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { name, parent } from "../../model/FsPath.ts"
import type { DirectoryHistory, LentDirectory } from "../../port/history.ts"
import { isPlainSegment } from "../capture.ts"
import type { Place } from "../threads/orders.ts"
import type { Threads } from "../threads/pool.ts"
import type { Item } from "./survey.ts"

/** A compressed content, or the content itself if compression does not shorten it. */
export interface Packed {
  readonly bytes: Uint8Array
  readonly crc: number
  /** The size without compression, in bytes. */
  readonly size: number
}

export interface PackedFile extends Packed {
  readonly mode: number
}

/** The size of the largest file that is packed, in bytes. The size limits the memory and the time of an order. */
const maxBytes = 32 * 1024

/** Packs the files among the items. Returns no value for an item that is not a file or that no thread has packed. */
export const packFiles = Effect.fnUntraced(function* (
  items: ReadonlyArray<Item>,
  lend: NonNullable<DirectoryHistory["lend"]>,
  threads: Threads
) {
  const packed: Array<PackedFile | undefined> = items.map(() => undefined)
  const files = items.flatMap(({ isNonPortable, kind, path }, index) =>
    kind === "file" && isNonPortable !== true && isPlainSegment(name(path)) ? [index] : []
  )
  const places: Array<Place> = []
  const lent: Array<number> = []
  let last: LentDirectory | undefined
  for (const [directory, indices] of Map.groupBy(files, (index) => parent(items[index]!.path))) {
    const found = yield* Effect.exit(lend(directory))
    if (!Exit.isSuccess(found)) continue
    last = found.value
    places.push({ base: found.value.base, names: indices.map((index) => name(items[index]!.path)).join("/") })
    lent.push(...indices)
  }
  if (last === undefined) return packed
  const { countBytes, refusesHardlinks } = last
  const report = yield* threads.run({ _tag: "Pack", places, maxBytes, refusesHardlinks })
  if (report?._tag !== "Packed") return packed
  const { bytes, crcs, ends, modes, sizes } = report
  for (const [at, index] of lent.entries()) {
    const mode = modes[at]!
    if (mode === -1) continue
    const start = at === 0 ? 0 : ends[at - 1]!
    packed[index] = { bytes: bytes.subarray(start, ends[at]), crc: crcs[at]!, size: sizes[at]!, mode }
  }
  // The size of a file that was not packed is 0.
  if (countBytes !== undefined)
    yield* countBytes(
      "read",
      sizes.reduce((sum, size) => sum + size, 0)
    )
  return packed
}, Effect.scoped)
