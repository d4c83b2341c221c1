/** Stores in memory. These stores end with the layer that made them. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Blobs from "./blobs.ts"
import * as Heads from "./heads.ts"
import type { Stores } from "./stores.ts"
import * as Wakes from "./wakes.ts"

export const makeBlobs = (): Blobs.OwnOperations => {
  const entries = new Map<string, { readonly bytes: Uint8Array; readonly storedAt: DateTime.Utc }>()
  const put: Blobs.Contents["put"] = (hash, bytes) =>
    Effect.map(DateTime.now, (storedAt) => void entries.set(hash, { bytes, storedAt }))
  return Blobs.make({
    put,
    putStream: Blobs.collected(put),
    sizeOf: (hash) => Effect.sync(() => entries.get(hash)?.bytes.length),
    get: (hash, range) =>
      Effect.sync(() => {
        const found = entries.get(hash)
        return found && Blobs.sliceOf(found.bytes, range)
      }),
    has: (hashes) => Effect.sync(() => hashes.filter((hash) => entries.has(hash))),
    delete: (hashes) => Effect.sync(() => hashes.forEach((hash) => entries.delete(hash))),
    deleteOlder: (hashes, millis) =>
      Effect.sync(() => {
        const isOld = (hash: string): boolean =>
          DateTime.toEpochMillis(entries.get(hash)?.storedAt ?? DateTime.makeUnsafe(millis)) < millis
        return hashes.filter((hash) => isOld(hash) && entries.delete(hash)).length
      }),
    list: Stream.suspend(() => Stream.fromIterable(Array.from(entries, ([hash, { storedAt }]) => ({ hash, storedAt }))))
  })
}

const makeHeads = () => {
  const texts = new Map<string, string>()
  const wakes = Wakes.make()
  return Heads.make({
    read: (workspace) => Effect.sync(() => texts.get(workspace)),
    swap: (workspace, expected, next) =>
      Effect.sync(() => {
        if (texts.get(workspace) !== expected) return false
        if (next === undefined) texts.delete(workspace)
        else texts.set(workspace, next)
        wakes.wake(workspace)
        return true
      }),
    list: Stream.suspend(() => Stream.fromIterable([...texts.keys()])),
    wakes: wakes.stream
  })
}

export const make: Effect.Effect<Stores> = Effect.sync(() => ({ blobs: makeBlobs(), heads: makeHeads() }))
