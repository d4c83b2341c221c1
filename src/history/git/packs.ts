/**
 * The packs of a store as the collector sees them: the objects of each pack, their sizes, and marks for reachable
 * objects.
 *
 * An object in several packs is marked in the largest one only.
 */
import * as Effect from "effect/Effect"
import { Fs, join } from "../../runtime/node.ts"
import { type StoreFault, storeFault } from "../errors.ts"
import { countIn, idAt, offsetsIn, searchIn, findDefect } from "./indexFile.ts"

export interface Pack {
  readonly name: string
  readonly bytes: number
  readonly count: number
  readonly find: (id: Buffer) => number
  readonly id: (at: number) => string
  /** One byte per object: 1 if the object is reachable. */
  readonly reachableFlags: Uint8Array
  /** Returns the share, from 0 to 1, of the pack's object bytes that is unreachable. */
  readonly unreachableShare: () => number
}

const corrupt = (path: string, detail: string): StoreFault => storeFault("corrupt", `the store is damaged: ${path}: ${detail}`)

const [packHeader, packTrailer] = [12, 20] as const

/** Computes the share of unreachable bytes from the offsets. An object ends where the next one begins. */
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
  if (why !== undefined) throw corrupt(path, why)
  const offsets = offsetsIn(index)
  if (offsets === undefined) throw corrupt(path, "its offsets contradict each other")
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

/** Returns the names of complete packs. Packs marked to be kept must not change, so they are left out. */
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
