import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { make as makeEntry } from "../entries/kinds.ts"
import { type CreateMode, FileWriteChunk } from "../FileSystemEntry.ts"
import { recordRequest, type StepRecorder } from "./story.ts"

const chunkSize = 65_536

export interface Chunks {
  /** Passes the bytes through unchanged. All chunks are recorded before the stream ends. */
  readonly passThrough: <E, R>(source: Stream.Stream<Uint8Array, E, R>) => Stream.Stream<Uint8Array, E | Fault, R>
  /** Records that the incomplete write is cancelled; does nothing if no chunk was recorded. */
  readonly discard: Effect.Effect<void, Fault>
  /** Records an empty write if no chunk was recorded, so that a fault has a request to answer. */
  readonly ensureBegun: Effect.Effect<unknown, Fault>
  readonly size: () => number
  readonly hasEnded: () => boolean
  readonly hasFailed: () => boolean
}

export const make = (recorder: StepRecorder, id: string, path: FsPath, createMode: CreateMode): Chunks => {
  let buffer: Uint8Array | undefined
  let filled = 0
  let offset = 0
  let hasBegun = false
  let hasEnded = false
  let hasFailed = false

  const recordChunk = (data: Uint8Array, isFinal: boolean, discard = false): Effect.Effect<unknown, Fault> =>
    Effect.suspend(() => {
      const at = offset
      offset += data.length
      hasEnded = isFinal
      const chunk = { correlationId: id, offset: at, data, isFinal, discard: discard ? discard : undefined }
      const entry = hasBegun ? chunk : { ...chunk, path, createMode, createParents: false }
      hasBegun = true
      return recordRequest(recorder, makeEntry(FileWriteChunk, entry))
    })

  const flush = (isFinal: boolean): Effect.Effect<unknown, Fault> =>
    Effect.suspend(() => {
      const data = buffer?.subarray(0, filled) ?? new Uint8Array(0)
      filled = 0
      return recordChunk(data, isFinal)
    })

  const take = Effect.fnUntraced(function* (arrays: ReadonlyArray<Uint8Array>): Effect.fn.Return<void, Fault> {
    buffer ??= new Uint8Array(chunkSize)
    for (const bytes of arrays) {
      for (let at = 0; at < bytes.length;) {
        if (filled === chunkSize) yield* flush(false)
        const copiedBytes = Math.min(chunkSize - filled, bytes.length - at)
        buffer.set(bytes.subarray(at, at + copiedBytes), filled)
        filled += copiedBytes
        at += copiedBytes
      }
    }
  })

  return {
    passThrough: (source) =>
      Stream.concat(
        Stream.mapArrayEffect(
          Stream.onError(source, () => Effect.sync(() => void (hasFailed = true))),
          (arrays) => Effect.as(take(arrays), arrays)
        ),
        Stream.drain(Stream.fromEffect(Effect.suspend(() => flush(true))))
      ),
    discard: Effect.suspend(() => (hasBegun ? Effect.asVoid(recordChunk(new Uint8Array(0), true, true)) : Effect.void)),
    ensureBegun: Effect.suspend(() => (hasBegun ? Effect.void : recordChunk(new Uint8Array(0), true))),
    size: () => offset + filled,
    hasEnded: () => hasEnded,
    hasFailed: () => hasFailed
  }
}
