/** Stores for tests: in memory, with a log of the calls. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Operations as Blobs } from "../../src/repository/BlobStore.ts"
import { StoreError } from "../../src/repository/BlobStore.ts"
import { sha256 } from "../../src/runtime/hash.ts"

export interface MemoryBlobs extends Blobs {
  readonly all: Map<string, { bytes: Uint8Array; storedAt: DateTime.Utc }>
  readonly counts: { puts: number; gets: number; bytes: number }
}

/** Makes a store of blobs that shows its content, so that tests can forge it. */
export const makeBlobs = (): MemoryBlobs => {
  const all: MemoryBlobs["all"] = new Map()
  const counts = { puts: 0, gets: 0, bytes: 0 }
  return {
    all,
    counts,
    put: (bytes) =>
      Effect.map(DateTime.now, (storedAt) => {
        const hash = sha256(bytes)
        counts.puts++
        counts.bytes += bytes.length
        all.set(hash, { bytes: bytes.slice(), storedAt })
        return hash
      }),
    get: (hash, range) =>
      Effect.suspend(() => {
        counts.gets++
        const found = all.get(hash)
        if (found === undefined)
          return Effect.fail(new StoreError({ reason: "missing", detail: `the blob ${hash} is missing` }))
        return Effect.succeed(
          range === undefined ? found.bytes.slice() : found.bytes.slice(range.offset, range.offset + range.length)
        )
      }),
    has: (hashes) => Effect.sync(() => new Set(hashes.filter((hash) => all.has(hash)))),
    delete: (hashes) => Effect.sync(() => hashes.forEach((hash) => all.delete(hash))),
    list: Stream.suspend(() => Stream.fromIterable([...all].map(([hash, { storedAt }]) => ({ hash, storedAt }))))
  }
}
