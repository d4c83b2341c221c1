/**
 * Finds object ids in a store's packs, by a search in the sorted index files. Also encodes the index of a new pack, and marks
 * reachable objects for the garbage collection.
 *
 * A damaged index is refused, because an object that an index lists is not stored again.
 */
import * as Effect from "effect/Effect"
import { codeOf } from "../../model/realms.ts"
import { createHash, Fs, join } from "../../runtime/node.ts"
import { type StoreFault, storeFault } from "../errors.ts"
import { isId } from "./objects.ts"

// The format of a pack index of version 2: sorted ids, checksums and offsets.

const signature = 0xff744f63
const version = 2
/** The offset of the fan-out table. Entry `n` counts the ids whose first byte is at most `n`. */
const fanOutOffset = 8
const namesOffset = fanOutOffset + 256 * 4
const idBytes = 20
const bytesPerObject = idBytes + 4 + 4
const trailerBytes = 2 * idBytes

const firstWideOffset = 2 ** 31

const writeHeader = (index: Buffer): void => {
  index.writeUInt32BE(signature, 0)
  index.writeUInt32BE(version, 4)
}

const countIn = (index: Buffer): number => index.readUInt32BE(namesOffset - 4)

const isConsistent = (index: Buffer): boolean => {
  let before = 0
  for (let at = fanOutOffset; at < namesOffset; at += 4) {
    const sum = index.readUInt32BE(at)
    if (sum < before) return false
    before = sum
  }
  const wide = index.length - (namesOffset + before * bytesPerObject + trailerBytes)
  // The first object never needs a 64-bit offset.
  return wide >= 0 && wide % 8 === 0 && wide <= Math.max(0, before - 1) * 8
}

/** Returns the reason why the index cannot be searched, or `undefined` if it can. Does not check the ids and offsets. */
const findDefect = (index: Buffer): string | undefined => {
  if (index.length < namesOffset + trailerBytes) return "the index is truncated"
  if (index.readUInt32BE(0) !== signature || index.readUInt32BE(4) !== version)
    return "the file is not a pack index of version 2"
  return isConsistent(index) ? undefined : "the counts in the index are inconsistent"
}

/**
 * Returns a function that finds the position of an id, or -1. The function first compares four bytes as a number, because
 * most ids differ in these bytes.
 */
const searchIn = (index: Buffer): ((id: Buffer) => number) => {
  const view = new DataView(index.buffer, index.byteOffset, index.length)
  return (id) => {
    const head = id.readUInt32BE(0)
    const first = id[0]!
    let low = first === 0 ? 0 : view.getUint32(fanOutOffset + (first - 1) * 4)
    let high = view.getUint32(fanOutOffset + first * 4)
    while (low < high) {
      const middle = (low + high) >>> 1
      const at = namesOffset + middle * idBytes
      const order = view.getUint32(at) - head || index.compare(id, 0, idBytes, at, at + idBytes)
      if (order === 0) return middle
      if (order < 0) low = middle + 1
      else high = middle
    }
    return -1
  }
}

const idAt = (index: Buffer, at: number): string =>
  index.toString("hex", namesOffset + at * idBytes, namesOffset + (at + 1) * idBytes)

/**
 * Returns the offset of each object in the pack. Returns `undefined` if an offset refers past the end of the table of 64-bit
 * offsets.
 */
const offsetsIn = (index: Buffer): Float64Array | undefined => {
  const count = countIn(index)
  const places = namesOffset + count * (idBytes + 4)
  const wide = places + count * 4
  const wides = (index.length - trailerBytes - wide) / 8
  const offsets = new Float64Array(count)
  for (let i = 0; i < count; i++) {
    const offset = index.readUInt32BE(places + i * 4)
    if (offset - firstWideOffset >= wides) return undefined
    offsets[i] = offset < firstWideOffset ? offset : Number(index.readBigUInt64BE(wide + (offset - firstWideOffset) * 8))
  }
  return offsets
}

const packChecksumIn = (index: Buffer): Buffer => index.subarray(index.length - trailerBytes, index.length - idBytes)

// The garbage collection reads the indexes of all packs, and marks the reachable objects of each pack.
//
// If several packs contain an object, the object is marked in the largest pack only.

export interface Pack {
  readonly name: string
  readonly bytes: number
  readonly count: number
  readonly find: (id: Buffer) => number
  readonly id: (at: number) => string
  /** One byte per object: 1 if the object is reachable, otherwise 0. */
  readonly reachableFlags: Uint8Array
  readonly unreachableShare: () => number
}

const corruptPack = (path: string, detail: string): StoreFault =>
  storeFault("corrupt", `the store is damaged at ${path}: ${detail}`)

const [packHeader, packTrailer] = [12, 20] as const

/** Computes the unreachable share of a pack, from 0 to 1. The size of an object is the distance to the next offset. */
const computeUnreachableShare = (offsets: Float64Array, packBytes: number, reachableFlags: Uint8Array): number => {
  if (!reachableFlags.includes(1)) return 1
  const count = offsets.length
  const sorted = offsets.slice().sort()
  const ends = new Map<number, number>()
  for (let i = 0; i < count; i++) ends.set(sorted[i]!, i + 1 < count ? sorted[i + 1]! : packBytes - packTrailer)
  let bytes = 0
  for (let i = 0; i < count; i++) if (reachableFlags[i] === 1) bytes += ends.get(offsets[i]!)! - offsets[i]!
  return 1 - bytes / (packBytes - packHeader - packTrailer)
}

const loadPack = (directory: string, name: string): Pack | undefined => {
  const path = join(directory, `${name}.idx`)
  const stats = Fs.statSync(join(directory, `${name}.pack`), { throwIfNoEntry: false })
  if (stats === undefined || !Fs.existsSync(path)) return undefined
  const index = Fs.readFileSync(path)
  const why = findDefect(index)
  if (why !== undefined) throw corruptPack(path, why)
  const offsets = offsetsIn(index)
  if (offsets === undefined) throw corruptPack(path, "the offsets in the index are inconsistent")
  const count = countIn(index)
  const reachableFlags = new Uint8Array(count)
  return {
    name,
    bytes: stats.size + index.length,
    count,
    find: searchIn(index),
    id: (at) => idAt(index, at),
    reachableFlags,
    unreachableShare: () => computeUnreachableShare(offsets, stats.size, reachableFlags)
  }
}

/** Returns the names of complete packs. Omits packs with a `.keep` or `.promisor` file, because such packs must not change. */
export const listPacks = (directory: string): ReadonlyArray<string> => {
  const all = new Set(Fs.readdirSync(directory))
  return [...all]
    .filter((file) => /^pack-[0-9a-z]+\.idx$/.test(file))
    .map((file) => file.slice(0, -4))
    .filter((name) => all.has(`${name}.pack`) && !all.has(`${name}.keep`) && !all.has(`${name}.promisor`))
}

export const read = (directory: string): Effect.Effect<ReadonlyArray<Pack>, StoreFault> =>
  Effect.try({
    try: () =>
      listPacks(directory)
        .flatMap((name) => loadPack(directory, name) ?? [])
        .sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1)),
    catch: (error) =>
      typeof error === "object" && error !== null && "_tag" in error
        ? (error as StoreFault)
        : storeFault("io", `the packs in ${directory} cannot be read: ${String(error)}`)
  })

export const markReachable = (packs: ReadonlyArray<Pack>, id: Buffer): void => {
  for (const { find, reachableFlags } of packs) {
    const at = find(id)
    if (at === -1) continue
    reachableFlags[at] = 1
    return
  }
}

interface PackIndex {
  readonly has: (id: string) => boolean
  readonly packs: () => ReadonlyArray<string>
  /** Reads the list of packs again. If the read fails, the list stays unchanged. */
  readonly refresh: Effect.Effect<void, StoreFault>
}

/** The contents of a pack as three arrays of the same length. The order of the objects is arbitrary. */
interface PackContents {
  readonly ids: ReadonlyArray<string>
  readonly offsets: ReadonlyArray<number>
  readonly crcs: ReadonlyArray<number>
}

/**
 * The numbers of objects visited and of bytes hashed between two yields to the event loop. Either takes a few milliseconds.
 */
const objectsPerYield = 4 * 1024
const bytesPerYield = 4 * 1024 * 1024

const visitInSlices = Effect.fnUntraced(function* (count: number, visit: (index: number) => void) {
  for (let next = 0; next < count;) {
    const end = Math.min(count, next + objectsPerYield)
    while (next < end) visit(next++)
    if (next < count) yield* Effect.yieldNow
  }
})

const sha1 = Effect.fnUntraced(function* (bytes: Buffer) {
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
 * Encodes the index of a pack. `checksum` is the SHA-1 at the end of the pack. Offsets of at least `wideFrom` are stored in 64
 * bits, which git requires from 2 GiB on.
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
    return yield* Effect.fail(corrupt(file, "the checksum of the index does not match"))
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

const readPackIndex = (path: string): Effect.Effect<Buffer | undefined, StoreFault> =>
  Effect.callback((resume) => {
    Fs.readFile(path, (error, bytes) => {
      if (error === null) resume(Effect.succeed(bytes))
      else resume(error.code === "ENOENT" ? Effect.succeed(undefined) : Effect.fail(unreadable(path, error)))
    })
  })

const listIndexes = (directory: string): Effect.Effect<ReadonlyArray<string>, StoreFault> =>
  Effect.try({
    try: () => {
      const all = new Set(Fs.readdirSync(directory))
      return [...all].filter((name) => /^pack-.*\.idx$/.test(name) && all.has(`${name.slice(0, -4)}.pack`))
    },
    catch: (error) => unreadable(directory, error)
  })

/**
 * Tests whether the pack ends with the checksum in its index. A truncated pack lacks objects that its index lists.
 */
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
 * The maximum number of reads of the directory. If a pack disappears during a read, because a garbage collection replaced the
 * pack, the directory is read again.
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
        const index = yield* readPackIndex(path)
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
      if (all.length === 0 || !isId(id)) return false
      wantedId.write(id, "hex")
      const at = all.findIndex((pack) => pack.has(wantedId))
      // Move the pack to the front, because the next id is usually in the same pack.
      if (at > 0) [all[0], all[at]] = [all[at]!, all[0]!]
      return at !== -1
    },
    packs: () => [...packs.keys()],
    refresh
  }
})
