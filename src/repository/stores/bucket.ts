/**
 * Stores in a bucket of an S3-compatible store.
 *
 * A blob is the object `blobs/HASH`. A head is the object `heads/NAME`, where NAME is the name of the workspace as hexadecimal
 * UTF-8. A write of a head has a condition: the object is absent, or is the object that was read. A deleted head becomes an
 * object of one byte, because not every store supports conditional deletes.
 */
import type * as Redacted from "effect/Redacted"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { absent, maxParts, noCondition, type Objects, type Part, type Stored } from "../../backends/bucket/objects.ts"
import { type OpenObjects, openConditional, type Tuning } from "../../backends/bucket/open.ts"
import type { Fault } from "../../model/Fault.ts"
import { Buffer, concatenate } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"
import { StoreError } from "../errors.ts"
import * as Blobs from "./blobs.ts"
import * as Heads from "./heads.ts"
import * as Spool from "./spool.ts"
import type { Stores } from "./stores.ts"
import * as Wakes from "./wakes.ts"

export interface BucketOptions {
  readonly bucket: string
  /** The prefix of all keys. If the prefix is not empty and does not end in a slash, a slash is added. @default "" */
  readonly prefix?: string | undefined
  /** The address of the store, such as `http://127.0.0.1:9000`. @default AWS S3 in the region */
  readonly endpoint?: string | undefined
  /** @default "us-east-1" */
  readonly region?: string | undefined
  /**
   * The keys that sign the requests. Without keys, requests are not signed.
   * @default the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the configuration
   */
  readonly credentials?:
    | {
        readonly accessKeyId: string
        readonly secretAccessKey: Redacted.Redacted
        readonly sessionToken?: Redacted.Redacted | undefined
      }
    | undefined
}

const chunkBytes = 8 * 1024 * 1024
/** The smallest part of a large object. Content of at most this size is sent in one request. */
const minPartBytes = 16 * 1024 * 1024
/** The size of the largest object of S3, 5 TiB. */
const maxObjectBytes = 5 * 1024 ** 4
const concurrency = 16
const pollTime = "1 second"
/** The maximum number of attempts of a write. A store may refuse the condition although the head is as expected. */
const maxTries = 10
/** The maximum length of the prefix in bytes. With such a prefix, the longest workspace name still fits into a key. */
const maxPrefixBytes = 400

const tombstone = "-"

const answer =
  (what: string) =>
  <A>(run: Effect.Effect<A, Fault>): Effect.Effect<A, StoreError> =>
    Effect.mapError(run, (fault) => {
      const detail = "detail" in fault && typeof fault.detail === "string" ? fault.detail : fault._tag
      const reason = fault._tag === "DiskFull" ? "full" : fault._tag === "PathTooLong" ? "invalid" : "unavailable"
      return new StoreError({ reason, detail: `${what}: ${detail}` })
    })

const keysBelow = (objects: Objects, what: string, prefix: string) =>
  Stream.paginate(undefined as string | undefined, (after) =>
    Effect.map(
      answer(what)(objects.list({ prefix, after })),
      ({ next, objects: found }) =>
        [
          found.map((object) => ({ ...object, name: object.key.slice(prefix.length) })),
          next === undefined ? Option.none() : Option.some<string | undefined>(next)
        ] as const
    )
  )

const makeBlobs = ({ objects, prefix, support }: OpenObjects) => {
  const top = `${prefix}blobs/`
  /** Reads the bytes of a range of a blob, in requests of at most 8 MiB. Returns `undefined` if the blob does not exist. */
  const read = (key: string, offset: number, length: number): Effect.Effect<Uint8Array | undefined, Fault> =>
    Effect.gen(function* () {
      const chunks: Array<Uint8Array> = []
      for (let at = offset, end = offset + length; at < end;) {
        const found = yield* objects.get(key, at, Math.min(chunkBytes, end - at))
        if (found === undefined) return undefined
        if (found === "changed") {
          // The blob has no bytes at this offset, or another program has deleted the blob.
          if ((yield* objects.head(key)) === undefined) return undefined
          break
        }
        chunks.push(found.bytes)
        at += found.bytes.length
        end = Math.min(end, found.head.sizeBytes)
        if (found.bytes.length === 0) break
      }
      return chunks.length === 1 ? chunks[0]! : concatenate(chunks)
    })
  const settled =
    (what: string) =>
    ({ _tag }: Stored): Effect.Effect<void, StoreError> =>
      _tag === "Stored"
        ? Effect.void
        : Effect.fail(
            new StoreError({ reason: "unavailable", detail: `${what}: the store refused the write; try again later` })
          )

  const put = (hash: string, bytes: Uint8Array): Effect.Effect<void, StoreError> => {
    const what = `put of the blob ${hash}`
    return Effect.flatMap(answer(what)(objects.put(top + hash, bytes, hash, noCondition, support.form)), settled(what))
  }

  /** Sends the parts one after another, so that one of them is in memory at a time. */
  const putSource = (hash: string, { read, size }: Spool.Source): Effect.Effect<void, StoreError> => {
    if (size <= minPartBytes) return Effect.flatMap(read(0, size), (bytes) => put(hash, bytes))
    const what = `put of the blob ${hash}`
    const partBytes = Math.max(minPartBytes, Math.ceil(size / maxParts))
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(answer(what)(objects.startUpload(top + hash)), (upload) =>
        Effect.gen(function* () {
          const parts: Array<Part> = []
          for (let at = 0; at < size; at += partBytes) {
            const bytes = yield* read(at, Math.min(partBytes, size - at))
            parts.push(yield* answer(what)(objects.putPart(upload, parts.length + 1, bytes)))
          }
          yield* settled(what)(yield* answer(what)(objects.complete(upload, parts, noCondition, support.form)))
        }).pipe(
          restore,
          Effect.onError(() => objects.abandon(upload))
        )
      )
    )
  }

  const sizeOf: Blobs.Contents["sizeOf"] = (hash) =>
    Effect.map(answer(`look at the blob ${hash}`)(objects.head(top + hash)), (found) => found?.sizeBytes)

  return Blobs.make({
    put,
    putStream: Spool.spooled(sizeOf, putSource),
    sizeOf,
    get: (hash, range) =>
      answer(`get of the blob ${hash}`)(
        range?.length === 0 || (range !== undefined && range.offset >= maxObjectBytes)
          ? Effect.map(objects.head(top + hash), (found) => found && new Uint8Array())
          : Effect.map(
              read(top + hash, range?.offset ?? 0, Math.min(range?.length ?? Blobs.maxBlobBytes, Blobs.maxBlobBytes)),
              (bytes) => bytes && new Uint8Array(bytes)
            )
      ),
    has: (hashes) => Effect.filter(hashes, (hash) => Effect.map(sizeOf(hash), (size) => size !== undefined), { concurrency }),
    delete: (hashes) =>
      answer("delete of blobs")(
        Effect.forEach(hashes, (hash) => objects.remove(top + hash, noCondition, support.form), { concurrency, discard: true })
      ),
    deleteOlder: (hashes, millis) =>
      Effect.map(
        answer("delete of old blobs")(
          Effect.filter(
            hashes,
            (hash) =>
              Effect.flatMap(objects.head(top + hash), (found) =>
                found === undefined || (found.modifiedMillis ?? 0) >= millis
                  ? Effect.succeed(false)
                  : Effect.as(objects.remove(top + hash, noCondition, support.form), true)
              ),
            { concurrency }
          )
        ),
        (deleted) => deleted.length
      ),
    list: Stream.map(keysBelow(objects, "list of the blobs", top), ({ modifiedMillis, name }) => ({
      hash: name,
      storedAt: DateTime.makeUnsafe(modifiedMillis ?? 0)
    }))
  })
}

const makeHeads = ({ objects, prefix, support }: OpenObjects) => {
  const top = `${prefix}heads/`
  const keyOf = (workspace: string): string => top + Heads.toHex(workspace)
  const wakes = Wakes.make()

  const read = (what: string, workspace: string) =>
    Effect.map(answer(what)(objects.get(keyOf(workspace), 0, Heads.maxHeadBytes + 1)), (found) => {
      if (found === undefined) return { text: undefined, condition: absent }
      // An empty object is no head. The text "" differs from the text of every head.
      if (found === "changed") return { text: "", condition: absent }
      const text = new TextDecoder().decode(found.bytes)
      return { text: text === tombstone ? undefined : text, condition: { _tag: "Match", etag: found.head.etag } as const }
    })

  return Heads.make({
    read: (workspace) => Effect.map(read("get of a head", workspace), ({ text }) => text),
    swap: (workspace, expected, next) =>
      Effect.gen(function* () {
        const what = next === undefined ? "delete of a head" : "compareAndSet"
        const bytes = Buffer.from(next ?? tombstone)
        for (let tries = 0; tries < maxTries; tries++) {
          const { condition, text } = yield* read(what, workspace)
          if (text !== expected) return false
          const stored: Stored = yield* answer(what)(
            objects.put(keyOf(workspace), bytes, sha256(bytes), condition, support.form)
          )
          if (stored._tag === "Stored") {
            wakes.wake(workspace)
            return true
          }
        }
        const detail = `${what}: the store refused the write ${maxTries} times, although the head is as expected; try again later`
        return yield* new StoreError({ reason: "unavailable", detail })
      }),
    list: keysBelow(objects, "list of the heads", top).pipe(
      Stream.filter(({ sizeBytes }) => sizeBytes !== tombstone.length),
      Stream.map(({ name }) => Heads.nameOf(name))
    ),
    wakes: (workspace) => Stream.merge(wakes.stream(workspace), Stream.tick(pollTime))
  })
}

export const open = (options: BucketOptions, tuning?: Tuning): Effect.Effect<Stores, StoreError> =>
  Effect.gen(function* () {
    if (Buffer.byteLength(options.prefix ?? "") > maxPrefixBytes) {
      return yield* new StoreError({ reason: "invalid", detail: `the prefix is longer than ${maxPrefixBytes} bytes` })
    }
    const opened = yield* Effect.mapError(
      openConditional(options, tuning),
      (error) =>
        new StoreError({
          reason: error._tag === "InvalidArgument" ? "invalid" : "unavailable",
          detail: `opening the bucket: ${error.message}`
        })
    )
    return { blobs: makeBlobs(opened), heads: makeHeads(opened) }
  })
