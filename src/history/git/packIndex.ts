/**
 * The objects in a store's packs, read from the pack indexes on the disk: sorted ids, searched in place.
 *
 * A damaged index is refused, because an object that an index lists is not stored again.
 */
import * as Effect from "effect/Effect"
import { createHash, Fs, join } from "../../runtime/node.ts"
import { storeFault, type StoreFault } from "../errors.ts"
import {
  fanOutOffset,
  firstWideOffset,
  idBytes,
  namesOffset,
  packChecksumIn,
  bytesPerObject,
  searchIn,
  trailerBytes,
  findDefect,
  writeHeader
} from "./indexFile.ts"
import { isId } from "./objects.ts"
import { codeOf } from "../../model/systemError.ts"

export interface PackIndex {
  readonly has: (id: string) => boolean
  readonly packs: () => ReadonlyArray<string>
  /** Updates the view after packs appeared or disappeared. If it fails, the view stays as it was. */
  readonly refresh: Effect.Effect<void, StoreFault>
}

/** The contents of a pack, in any order, as three arrays of the same length. */
export interface PackContents {
  readonly ids: ReadonlyArray<string>
  readonly offsets: ReadonlyArray<number>
  readonly crcs: ReadonlyArray<number>
}

/** Objects visited, and bytes hashed, between two yields to the event loop: a few milliseconds. */
const objectsPerYield = 4 * 1024
const bytesPerYield = 4 * 1024 * 1024

const visitInSlices = Effect.fnUntraced(function* (count: number, visit: (index: number) => void) {
  for (let next = 0; next < count;) {
    const end = Math.min(count, next + objectsPerYield)
    while (next < end) visit(next++)
    if (next < count) yield* Effect.yieldNow
  }
})

export const sha1 = Effect.fnUntraced(function* (bytes: Buffer) {
  const hash = createHash("sha1")
  for (let at = 0; at < bytes.length; at += bytesPerYield) {
    hash.update(bytes.subarray(at, at + bytesPerYield))
    if (at + bytesPerYield < bytes.length) yield* Effect.yieldNow
  }
  return hash.digest()
})

const firstByteOf = (id: string): number => Number.parseInt(id.slice(0, 2), 16)

const sortById = Effect.fnUntraced(function* ({ ids }: PackContents) {
  const buckets: Array<Array<number>> = Array.from({ length: 256 }, () => [])
  yield* visitInSlices(ids.length, (index) => void buckets[firstByteOf(ids[index]!)]!.push(index))
  for (let byte = 0, sorted = 0; byte < 256; byte++) {
    const bucket = buckets[byte]!.sort((a, b) => (ids[a]! < ids[b]! ? -1 : 1))
    if ((sorted += bucket.length) > objectsPerYield) {
      sorted = 0
      yield* Effect.yieldNow
    }
  }
  return buckets
})

/**
 * Encodes the index of a pack with this checksum. Offsets from `wideFrom` on take 64 bits; git requires 64 bits from 2
 * GiB on.
 */
export const encodeIndex = Effect.fnUntraced(function* (
  packed: PackContents,
  checksum: Buffer,
  wideFrom: number = firstWideOffset
) {
  const { crcs, ids, offsets } = packed
  const count = ids.length
  const buckets = yield* sortById(packed)
  const order = new Uint32Array(count)
  for (let byte = 0, at = 0; byte < 256; at += buckets[byte++]!.length) order.set(buckets[byte]!, at)
  let wide = 0
  yield* visitInSlices(count, (at) => {
    if (offsets[at]! >= wideFrom) wide++
  })
  const index = Buffer.allocUnsafe(namesOffset + count * bytesPerObject + wide * 8 + trailerBytes)
  writeHeader(index)
  for (let byte = 0, sum = 0; byte < 256; byte++) index.writeUInt32BE((sum += buckets[byte]!.length), fanOutOffset + byte * 4)
  const checksumTable = namesOffset + count * idBytes
  const offsetTable = checksumTable + count * 4
  const wideOffsetTable = offsetTable + count * 4
  let wideCount = 0
  yield* visitInSlices(count, (at) => {
    const object = order[at]!
    const offset = offsets[object]!
    index.write(ids[object]!, namesOffset + at * idBytes, "hex")
    index.writeUInt32BE(crcs[object]!, checksumTable + at * 4)
    if (offset < wideFrom) index.writeUInt32BE(offset, offsetTable + at * 4)
    else {
      index.writeUInt32BE(firstWideOffset + wideCount, offsetTable + at * 4)
      index.writeBigUInt64BE(BigInt(offset), wideOffsetTable + wideCount++ * 8)
    }
  })
  const end = wideOffsetTable + wideCount * 8
  checksum.copy(index, end)
  ;(yield* sha1(index.subarray(0, end + idBytes))).copy(index, end + idBytes)
  return index
})

interface LoadedIndex {
  readonly checksum: Buffer
  readonly has: (id: Buffer) => boolean
}

const corrupt = (file: string, detail: string): StoreFault => storeFault("corrupt", `${file}: ${detail}`)

const load = Effect.fnUntraced(function* (file: string, index: Buffer): Effect.fn.Return<LoadedIndex, StoreFault> {
  const why = findDefect(index)
  if (why !== undefined) return yield* Effect.fail(corrupt(file, why))
  const end = index.length - idBytes
  if (!(yield* sha1(index.subarray(0, end))).equals(index.subarray(end))) {
    return yield* Effect.fail(corrupt(file, "it differs from its checksum"))
  }
  const find = searchIn(index)
  return { checksum: packChecksumIn(index), has: (id) => find(id) !== -1 }
})

const unreadable = (path: string, error: unknown): StoreFault => {
  const code = codeOf(error)
  return storeFault(
    code === "ENOENT" || code === "ENOTDIR" ? "unavailable" : "io",
    `${path} cannot be read: ${code ?? String(error)}`
  )
}

const read = (path: string): Effect.Effect<Buffer | undefined, StoreFault> =>
  Effect.callback((resume) => {
    Fs.readFile(path, (error, bytes) => {
      if (error === null) resume(Effect.succeed(bytes))
      else resume(error.code === "ENOENT" ? Effect.succeed(undefined) : Effect.fail(unreadable(path, error)))
    })
  })

/** Lists the indexes whose pack exists. An index without its pack is a leftover. */
const listIndexes = (directory: string): Effect.Effect<ReadonlyArray<string>, StoreFault> =>
  Effect.try({
    try: () => {
      const all = new Set(Fs.readdirSync(directory))
      return [...all].filter((name) => /^pack-.*\.idx$/.test(name) && all.has(`${name.slice(0, -4)}.pack`))
    },
    catch: (error) => unreadable(directory, error)
  })

/** Tests whether the pack ends with its checksum. A truncated pack lacks objects that its index lists. */
const isPackComplete = (path: string, { checksum }: LoadedIndex): boolean => {
  try {
    const descriptor = Fs.openSync(path, "r")
    try {
      const end = Buffer.alloc(idBytes)
      const { size } = Fs.fstatSync(descriptor)
      return Fs.readSync(descriptor, end, 0, idBytes, Math.max(0, size - idBytes)) === idBytes && end.equals(checksum)
    } finally {
      Fs.closeSync(descriptor)
    }
  } catch {
    return false
  }
}

/**
 * The most times that the directory is read again because a pack disappeared meanwhile. Another pack then replaces it.
 */
const maxDirectoryReads = 5

export const open = Effect.fnUntraced(function* (directory: string): Effect.fn.Return<PackIndex, StoreFault> {
  let packs: ReadonlyMap<string, LoadedIndex> = new Map()
  let all: Array<LoadedIndex> = []
  const wantedId = Buffer.alloc(idBytes)

  const refresh = Effect.gen(function* () {
    const next = new Map(packs)
    let isSettled = false
    for (let left = maxDirectoryReads; left > 0 && !isSettled; left--) {
      isSettled = true
      const files = new Set(yield* listIndexes(directory))
      for (const file of next.keys()) if (!files.has(file)) next.delete(file)
      for (const file of files) {
        if (next.has(file)) continue
        const path = join(directory, file)
        const index = yield* read(path)
        if (index === undefined) isSettled = false
        else next.set(file, yield* load(path, index))
      }
    }
    for (const [file, loaded] of next) {
      if (!isPackComplete(join(directory, `${file.slice(0, -4)}.pack`), loaded)) next.delete(file)
    }
    packs = next
    all = [...next.values()]
  })
  yield* refresh
  return {
    has: (id) => {
      if (!isId(id)) return false
      wantedId.write(id, "hex")
      const at = all.findIndex((pack) => pack.has(wantedId))
      // The next id is usually in the same pack as the last one.
      if (at > 0) [all[0], all[at]] = [all[at]!, all[0]!]
      return at !== -1
    },
    packs: () => [...packs.keys()],
    refresh
  }
})
