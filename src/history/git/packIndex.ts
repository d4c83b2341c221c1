/**
 * Which objects a store has is read from the indexes of its packs as they lie on the disk: sorted ids, searched in place. An index that
 * is not whole is refused, because what it claims to be there is not stored again.
 */
import * as Effect from "effect/Effect"
import { createHash, Fs, join } from "../../runtime/node.ts"
import { storeFault, type StoreFault } from "../errors.ts"
import {
  fanOut,
  firstWide,
  idBytes,
  names,
  packChecksumIn,
  perObject,
  searchIn,
  trailers,
  whyUnfit,
  writeHeader
} from "./indexFile.ts"
import { isId } from "./objects.ts"

export interface PackIndex {
  readonly has: (id: string) => boolean
  /** The names of their indexes. */
  readonly packs: () => ReadonlyArray<string>
  /** Takes notice of packs that have come and gone. Where it fails, nothing has changed. */
  readonly refresh: Effect.Effect<void, StoreFault>
}

/** What is in a pack, in any order; the three have the same length. */
export interface Packed {
  readonly ids: ReadonlyArray<string>
  readonly offsets: ReadonlyArray<number>
  readonly crcs: ReadonlyArray<number>
}

/** Objects looked at, and bytes hashed, between two yields to the event loop: a few milliseconds. */
const objectsAtOnce = 4 * 1024
const bytesAtOnce = 4 * 1024 * 1024

const inSlices = Effect.fnUntraced(function* (count: number, visit: (index: number) => void) {
  for (let next = 0; next < count;) {
    const end = Math.min(count, next + objectsAtOnce)
    while (next < end) visit(next++)
    if (next < count) yield* Effect.yieldNow
  }
})

export const sha1 = Effect.fnUntraced(function* (bytes: Buffer) {
  const hash = createHash("sha1")
  for (let at = 0; at < bytes.length; at += bytesAtOnce) {
    hash.update(bytes.subarray(at, at + bytesAtOnce))
    if (at + bytesAtOnce < bytes.length) yield* Effect.yieldNow
  }
  return hash.digest()
})

const byteOf = (id: string): number => Number.parseInt(id.slice(0, 2), 16)

/** The objects by id. */
const inOrder = Effect.fnUntraced(function* ({ ids }: Packed) {
  const buckets: Array<Array<number>> = Array.from({ length: 256 }, () => [])
  yield* inSlices(ids.length, (index) => void buckets[byteOf(ids[index]!)]!.push(index))
  for (let byte = 0, sorted = 0; byte < 256; byte++) {
    const bucket = buckets[byte]!.sort((a, b) => (ids[a]! < ids[b]! ? -1 : 1))
    if ((sorted += bucket.length) > objectsAtOnce) {
      sorted = 0
      yield* Effect.yieldNow
    }
  }
  return buckets
})

/** The index of a pack with this checksum. Offsets of `wideFrom` and more are written wide, which git asks for from 2 GiB on. */
export const encodeIndex = Effect.fnUntraced(function* (packed: Packed, checksum: Buffer, wideFrom: number = firstWide) {
  const { crcs, ids, offsets } = packed
  const count = ids.length
  const buckets = yield* inOrder(packed)
  const order = new Uint32Array(count)
  for (let byte = 0, at = 0; byte < 256; at += buckets[byte++]!.length) order.set(buckets[byte]!, at)
  let wide = 0
  yield* inSlices(count, (at) => {
    if (offsets[at]! >= wideFrom) wide++
  })
  const index = Buffer.allocUnsafe(names + count * perObject + wide * 8 + trailers)
  writeHeader(index)
  for (let byte = 0, sum = 0; byte < 256; byte++) index.writeUInt32BE((sum += buckets[byte]!.length), fanOut + byte * 4)
  const sums = names + count * idBytes
  const places = sums + count * 4
  const widePlaces = places + count * 4
  let wides = 0
  yield* inSlices(count, (at) => {
    const object = order[at]!
    const offset = offsets[object]!
    index.write(ids[object]!, names + at * idBytes, "hex")
    index.writeUInt32BE(crcs[object]!, sums + at * 4)
    if (offset < wideFrom) index.writeUInt32BE(offset, places + at * 4)
    else {
      index.writeUInt32BE(firstWide + wides, places + at * 4)
      index.writeBigUInt64BE(BigInt(offset), widePlaces + wides++ * 8)
    }
  })
  const end = widePlaces + wides * 8
  checksum.copy(index, end)
  ;(yield* sha1(index.subarray(0, end + idBytes))).copy(index, end + idBytes)
  return index
})

interface Loaded {
  /** Of its pack, which ends with it. */
  readonly checksum: Buffer
  readonly has: (id: Buffer) => boolean
}

const corrupt = (file: string, detail: string): StoreFault => storeFault("corrupt", `${file}: ${detail}`)

const load = Effect.fnUntraced(function* (file: string, index: Buffer): Effect.fn.Return<Loaded, StoreFault> {
  const why = whyUnfit(index)
  if (why !== undefined) return yield* Effect.fail(corrupt(file, why))
  const end = index.length - idBytes
  if (!(yield* sha1(index.subarray(0, end))).equals(index.subarray(end))) {
    return yield* Effect.fail(corrupt(file, "it differs from its checksum"))
  }
  const find = searchIn(index)
  return { checksum: packChecksumIn(index), has: (id) => find(id) !== -1 }
})

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code

const unreadable = (path: string, error: unknown): StoreFault => {
  const code = codeOf(error)
  return storeFault(
    code === "ENOENT" || code === "ENOTDIR" ? "unavailable" : "io",
    `${path} cannot be read: ${code ?? String(error)}`
  )
}

/** `undefined` for what is gone. */
const read = (path: string): Effect.Effect<Buffer | undefined, StoreFault> =>
  Effect.callback((resume) => {
    Fs.readFile(path, (error, bytes) => {
      if (error === null) resume(Effect.succeed(bytes))
      else resume(error.code === "ENOENT" ? Effect.succeed(undefined) : Effect.fail(unreadable(path, error)))
    })
  })

/** Indexes with their packs: without its pack, an index is what was left of one. */
const listed = (directory: string): Effect.Effect<ReadonlyArray<string>, StoreFault> =>
  Effect.try({
    try: () => {
      const all = new Set(Fs.readdirSync(directory))
      return [...all].filter((name) => /^pack-.*\.idx$/.test(name) && all.has(`${name.slice(0, -4)}.pack`))
    },
    catch: (error) => unreadable(directory, error)
  })

/** Whether the pack ends as it should: one that was cut off has not what its index says. */
const isWhole = (path: string, { checksum }: Loaded): boolean => {
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

/** How often the directory is read anew because packs went while they were read: where one goes, another has come. */
const maxReadings = 5

/** All objects in the packs of this directory. */
export const open = Effect.fnUntraced(function* (directory: string): Effect.fn.Return<PackIndex, StoreFault> {
  let packs: ReadonlyMap<string, Loaded> = new Map()
  let all: Array<Loaded> = []
  const wanted = Buffer.alloc(idBytes)

  const refresh = Effect.gen(function* () {
    const next = new Map(packs)
    let isSettled = false
    for (let left = maxReadings; left > 0 && !isSettled; left--) {
      isSettled = true
      const files = new Set(yield* listed(directory))
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
      if (!isWhole(join(directory, `${file.slice(0, -4)}.pack`), loaded)) next.delete(file)
    }
    packs = next
    all = [...next.values()]
  })
  yield* refresh
  return {
    has: (id) => {
      if (!isId(id)) return false
      wanted.write(id, "hex")
      const at = all.findIndex((pack) => pack.has(wanted))
      // What comes next is mostly where the last was.
      if (at > 0) [all[0], all[at]] = [all[at]!, all[0]!]
      return at !== -1
    },
    packs: () => [...packs.keys()],
    refresh
  }
})
