import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import type { Handle } from "../port/Backend.ts"
import { type Hasher, hasher, sha256 } from "../runtime/hash.ts"

const blockSize = 512 * 1024

/** The number of bytes that are hashed between two yields to other fibers. Hashing this number of bytes takes about 4 ms. */
const bytesPerYield = 4 * 1024 * 1024

export const ofBytes: (bytes: Uint8Array) => string = sha256

export const computeVersion = (bytes: Uint8Array): Effect.Effect<string> =>
  bytes.length <= bytesPerYield
    ? Effect.sync(() => sha256(bytes))
    : Effect.suspend(() => {
        const hash = hasher()
        let at = 0
        const next: Effect.Effect<string> = Effect.suspend(() => {
          hash.update(bytes.subarray(at, (at += bytesPerYield)))
          return at < bytes.length ? Effect.andThen(Effect.yieldNow, next) : Effect.sync(hash.digest)
        })
        return next
      })

/**
 * Adds the whole content of an open file to a hasher.
 *
 * After an append, the caller can add the appended bytes to the same hasher. So the new version needs no second read of
 * the file.
 */
export const hashFile = Effect.fnUntraced(function* (handle: Handle, into: Hasher): Effect.fn.Return<void, Fault> {
  const size = handle.stat.sizeBytes
  let bytesSinceYield = 0
  for (let offset = 0; offset < size;) {
    const block = yield* handle.read(offset, Math.min(blockSize, size - offset))
    if (block.length === 0) return
    into.update(block)
    offset += block.length
    bytesSinceYield += block.length
    if (bytesSinceYield >= bytesPerYield) {
      bytesSinceYield = 0
      yield* Effect.yieldNow
    }
  }
})

const ofContent = (handle: Handle): Effect.Effect<string, Fault> =>
  Effect.suspend(() => {
    const hash = hasher()
    return Effect.map(hashFile(handle, hash), hash.digest)
  })

export const ofHandle = (handle: Handle): Effect.Effect<string, Fault> => handle.version ?? ofContent(handle)
