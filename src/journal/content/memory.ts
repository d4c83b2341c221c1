import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { hasher, sha256 } from "../../runtime/hash.ts"
import type { ContentStore } from "../ContentStore.ts"
import type { JournalError } from "../errors.ts"
import type { ContentRef } from "../FileSystemEntry.ts"
import { chunkSize, damagedContentError, missingContentError } from "./refs.ts"

const concatenate = (chunks: ReadonlyArray<Uint8Array>, size: number): Uint8Array => {
  const out = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}

export const make = (): ContentStore => {
  const contentsByHash = new Map<string, Uint8Array>()
  /** Stores the array without a copy. */
  const storeUncopied = (sha256: string, bytes: Uint8Array): ContentRef => {
    if (!contentsByHash.has(sha256)) contentsByHash.set(sha256, bytes)
    return { sha256, size: bytes.length }
  }
  const find = (ref: ContentRef): Effect.Effect<Uint8Array, JournalError> =>
    Effect.suspend(() => {
      const bytes = contentsByHash.get(ref.sha256)
      if (bytes === undefined) return Effect.fail(missingContentError(ref))
      return bytes.length === ref.size ? Effect.succeed(bytes) : Effect.fail(damagedContentError(ref))
    })
  return {
    put: (bytes) =>
      Effect.sync(() => {
        const copy = new Uint8Array(bytes)
        return storeUncopied(sha256(copy), copy)
      }),
    putStream: (bytes) =>
      Effect.suspend(() => {
        const chunks: Array<Uint8Array> = []
        const digest = hasher()
        let size = 0
        const take = (chunk: Uint8Array): void => {
          const copy = new Uint8Array(chunk)
          digest.update(copy)
          chunks.push(copy)
          size += copy.length
        }
        return Effect.map(
          Stream.runForEachArray(bytes, (more) => Effect.sync(() => more.forEach(take))),
          () => storeUncopied(digest.digest(), concatenate(chunks, size))
        )
      }),
    get: (ref) => Effect.map(find(ref), (bytes) => bytes.slice()),
    stream: (ref) =>
      Stream.unwrap(
        Effect.map(find(ref), (bytes) =>
          Stream.unfold(0, (at) =>
            Effect.sync(() => (at < bytes.length ? ([bytes.slice(at, at + chunkSize), at + chunkSize] as const) : undefined))
          )
        )
      ),
    has: (ref) => Effect.sync(() => contentsByHash.get(ref.sha256)?.length === ref.size)
  }
}
