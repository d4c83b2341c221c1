/**
 * Contents by their hash, beside a journal, which then stays small: what is stored once is there for every entry that names it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { hasher } from "../runtime/hash.ts"
import { JournalError } from "./errors.ts"
import type { ContentRef } from "./FileSystemEntry.ts"

/** @since 0.1.0 */
export interface ContentStore {
  /** Is there for good when this ends. The bytes may be changed afterwards. */
  readonly put: (bytes: Uint8Array) => Effect.Effect<ContentRef, JournalError>
  /** The same in constant memory. Nothing is stored where the stream fails. */
  readonly putStream: <E, R>(bytes: Stream.Stream<Uint8Array, E, R>) => Effect.Effect<ContentRef, JournalError | E, R>
  /** A copy. Fails with `corrupt` where it is missing or is not what its hash says. */
  readonly get: (ref: ContentRef) => Effect.Effect<Uint8Array, JournalError>
  /** The same in constant memory, in chunks of at most 64 KiB. */
  readonly stream: (ref: ContentRef) => Stream.Stream<Uint8Array, JournalError>
  readonly has: (ref: ContentRef) => Effect.Effect<boolean, JournalError>
}

const missing = (ref: ContentRef): JournalError =>
  new JournalError({ operation: "ContentStore.get", reason: "corrupt", detail: `there is no content ${ref.sha256}` })

const digestOf = (bytes: Uint8Array): string => {
  const digest = hasher()
  digest.update(bytes)
  return digest.digest()
}

const chunkSize = 65_536

const joined = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => {
  const out = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    out.set(chunk, at)
    at += chunk.length
  }
  return out
}

/**
 * In memory, for as long as it is referred to.
 *
 * @since 0.1.0
 */
export const makeMemory = (): ContentStore => {
  const held = new Map<string, Uint8Array>()
  const keep = (bytes: Uint8Array): ContentRef => {
    const sha256 = digestOf(bytes)
    if (!held.has(sha256)) held.set(sha256, bytes)
    return { sha256, size: bytes.length }
  }
  const find = (ref: ContentRef): Effect.Effect<Uint8Array, JournalError> =>
    Effect.suspend(() => {
      const bytes = held.get(ref.sha256)
      return bytes === undefined ? Effect.fail(missing(ref)) : Effect.succeed(bytes)
    })
  return {
    put: (bytes) => Effect.sync(() => keep(bytes.slice())),
    putStream: (bytes) => Effect.map(Stream.runCollect(bytes), (chunks) => keep(joined(chunks))),
    get: (ref) => Effect.map(find(ref), (bytes) => bytes.slice()),
    stream: (ref) =>
      Stream.unwrap(
        Effect.map(find(ref), (bytes) => {
          const chunks: Array<Uint8Array> = []
          for (let at = 0; at < bytes.length; at += chunkSize) chunks.push(bytes.slice(at, at + chunkSize))
          return Stream.fromIterable(chunks)
        })
      ),
    has: (ref) => Effect.sync(() => held.has(ref.sha256))
  }
}
