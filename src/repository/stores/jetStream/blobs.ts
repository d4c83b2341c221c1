/**
 * Blobs in an object store of NATS, in the format that its clients read: the parts of an object are messages on one subject,
 * and a later message describes the object. An object becomes visible when its description is stored, and a new description
 * replaces the object.
 *
 * The description also lists the sequence numbers of the parts, so that any part is read in one request. Objects written by
 * other clients have no such list, so their parts are read one after another.
 */
import type { ConsumerConfig, StoredMsg } from "@nats-io/jetstream"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Buffer } from "../../../runtime/buffer.ts"
import { randomBytes } from "../../../runtime/node.ts"
import { StoreError } from "../../errors.ts"
import * as Blobs from "../blobs.ts"
import { type Source, sourceOf, spooled } from "../spool.ts"
import { type Bucket, messagesOf, refusedAs, type StoreConnection, wrongLastSequence } from "./buckets.ts"
import { isRefusal } from "./connection.ts"

const partBytes = 131_072
const reservedHeaderBytes = 1_024
const concurrency = 32
/** The number of parts that are read before they are sent: 8 MiB. */
const partsAtOnce = 64
const maxTries = 10
/** The age in milliseconds from which on parts without a description can be those of a killed program. */
const leftoverAgeMillis = 60 * 60 * 1000
/**
 * The longest time in milliseconds between two steps of a `put`. After a longer pause, a garbage collection may have removed
 * the parts as leftovers, so `put` sends them again.
 */
const stoppedPutMillis = leftoverAgeMillis / 12
/** The number of contents whose last read position is remembered. */
const maxPositions = 64
/** The maximum length of the list of sequence numbers, in characters. */
const maxRunsLength = 8_192
/** The maximum number of listed parts that are kept in memory, for a content of 16 GiB. A larger content is read part by part. */
const maxListedParts = 131_072

export const bucketOf = (name: string): Bucket => ({
  stream: `OBJ_${name}`,
  subjects: [`$O.${name}.C.>`, `$O.${name}.M.>`],
  description: "blobs of fs-algebra, version 1"
})

/**
 * Returns the settings for the object store of a journal. Any description fits, because another client may have created the
 * store.
 */
export const objectsOf = (name: string, storage: Bucket["storage"]): Bucket => ({
  ...bucketOf(name),
  description: undefined,
  storage
})

const Size = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Decodes the fields of a description that the store needs. */
const decodeDescription = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      nuid: Schema.String.check(Schema.isPattern(/^[\w-]{1,100}$/)),
      size: Size,
      chunks: Size,
      deleted: Schema.optional(Schema.Boolean),
      options: Schema.optional(Schema.Struct({ max_chunk_size: Schema.optional(Size), link: Schema.optional(Schema.Unknown) })),
      metadata: Schema.optional(Schema.Record(Schema.String, Schema.String))
    })
  )
)

interface Found {
  readonly nuid: string
  readonly size: number
  readonly partSize: number
  /** The sequence numbers of all parts in order, if the description has them. */
  readonly sequences: ReadonlyArray<number> | undefined
  /** A sequence number below those of all parts. */
  readonly after: number
}

/** Encodes increasing sequence numbers as runs: `5x3,9x1` are 5, 6, 7 and 9. */
const runsOf = (sequences: ReadonlyArray<number>): string => {
  const runs: Array<{ readonly from: number; count: number }> = []
  for (const sequence of sequences) {
    const last = runs.at(-1)
    if (last !== undefined && sequence === last.from + last.count) last.count++
    else runs.push({ from: sequence, count: 1 })
  }
  return runs.map(({ count, from }) => `${from}x${count}`).join()
}

/** Decodes runs. Returns `undefined` unless the runs contain exactly `count` sequence numbers. */
const sequencesOf = (text: string, count: number): ReadonlyArray<number> | undefined => {
  if (text.length > maxRunsLength || count > maxListedParts) return undefined
  const sequences: Array<number> = []
  for (const run of text.split(",")) {
    const [, from = 0, length = 0] = (/^(\d{1,15})x(\d{1,7})$/.exec(run) ?? []).map(Number)
    if (length === 0 || sequences.length + length > count) return undefined
    for (let n = 0; n < length; n++) sequences.push(from + n)
  }
  return sequences.length === count ? sequences : undefined
}

const parse = (hash: string, data: Uint8Array): Found | StoreError | undefined => {
  const fields = Option.getOrUndefined(decodeDescription(new TextDecoder().decode(data)))
  if (fields?.deleted === true) return undefined
  if (fields === undefined || fields.options?.link !== undefined) {
    return Blobs.corruptBlob(hash, "its description was not written by a store")
  }
  const { chunks, metadata = {}, nuid, options, size } = fields
  const partSize = options?.max_chunk_size ?? 0
  const fits = partSize > 0 && chunks === Math.ceil(size / partSize)
  const after = Number(metadata["after"] ?? 0)
  return {
    nuid,
    size,
    partSize,
    sequences: fits ? sequencesOf(metadata["parts"] ?? "", chunks) : undefined,
    after: Number.isSafeInteger(after) && after >= 0 ? after : 0
  }
}

const isStoreError = (found: unknown): found is StoreError => found instanceof StoreError

/** The failure of a read whose blob had its parts replaced or deleted meanwhile. */
class Moved {
  readonly _tag = "Moved"
}

export const make = (connection: StoreConnection, name: string): Blobs.OwnOperations => {
  const { jetstream, manager, nats, packages } = connection
  const { stream } = bucketOf(name)
  const topOfDescriptions = `$O.${name}.M.`
  const subjectOf = (hash: string): string => topOfDescriptions + Buffer.from(hash).toString("base64url").padEnd(88, "=")
  const partsOf = (nuid: string): string => `$O.${name}.C.${nuid}`

  /** Reads a description from the leader of the stream, because other servers may not have it yet. */
  const messageOf = (what: string, hash: string): Effect.Effect<StoredMsg | null, StoreError> =>
    connection.ask(what, () => manager.streams.getMessage(stream, { last_by_subj: subjectOf(hash) }))

  const describe = (what: string, hash: string): Effect.Effect<Found | StoreError | undefined, StoreError> =>
    Effect.map(messageOf(what, hash), (message) => (message === null ? undefined : parse(hash, message.data)))

  const purge = (what: string, filter: string, before?: number) =>
    connection
      .call(what, () => manager.streams.purge(stream, before === undefined ? { filter } : { filter, seq: before }))
      .pipe(refusedAs(what))

  /** Removes parts that no description names. Ignores failures, which only leave the parts in the stream. */
  const dropParts = (nuid: string): Effect.Effect<void> =>
    Effect.ignore(connection.sendOnce("purge", () => manager.streams.purge(stream, { filter: partsOf(nuid) })))

  /**
   * Sends parts, and returns their sequence numbers. Fails if an answer is lost, because a part that is sent again could be
   * stored twice.
   */
  const sendSome = (what: string, nuid: string, bytes: Uint8Array, partSize: number) =>
    Effect.forEach(
      Array.from({ length: Math.ceil(bytes.length / partSize) }, (_, n) => n),
      (n) =>
        Effect.map(
          connection.sendOnce(what, () => jetstream.publish(partsOf(nuid), bytes.subarray(n * partSize, (n + 1) * partSize))),
          ({ seq }) => seq
        ),
      { concurrency }
    )

  /** Sends all parts. A limited number of parts is in memory at a time. */
  const sendParts = (what: string, nuid: string, { read, size }: Source, partSize: number, step: Effect.Effect<void>) =>
    Effect.gen(function* () {
      const sequences: Array<number> = []
      const length = partSize * partsAtOnce
      for (let at = 0; at < size; at += length) {
        yield* step
        const bytes = yield* read(at, Math.min(length, size - at))
        for (const sequence of yield* sendSome(what, nuid, bytes, partSize)) sequences.push(sequence)
      }
      return sequences
    })

  interface Draft {
    readonly nuid: string
    readonly partSize: number
    readonly sequences: ReadonlyArray<number>
  }

  const descriptionOf = (hash: string, size: number, { nuid, partSize, sequences }: Draft, now: DateTime.Utc): string => {
    const parts = runsOf(sequences)
    return JSON.stringify({
      bucket: name,
      nuid,
      size,
      chunks: sequences.length,
      name: hash,
      description: "",
      options: { max_chunk_size: partSize },
      metadata: { after: String((sequences[0] ?? 1) - 1), ...(parts.length <= maxRunsLength && { parts }) },
      mtime: DateTime.formatIso(now),
      digest: `SHA-256=${Buffer.from(hash, "hex").toString("base64url").padEnd(44, "=")}`,
      deleted: false
    })
  }

  /** Replaces a revision of a description. Returns false if another write has already replaced that revision. */
  const publish = (what: string, hash: string, text: string, draft: Draft, revision: number) =>
    connection
      .call(what, () => {
        const headers = packages.transport.headers()
        headers.set("Nats-Rollup", "sub")
        return jetstream.publish(subjectOf(hash), text, {
          headers,
          msgID: draft.nuid,
          expect: { lastSubjectSequence: revision }
        })
      })
      .pipe(
        Effect.as(true),
        Effect.catchIf(
          (error) => isRefusal(error) && error.code === wrongLastSequence,
          // The description may have been stored although the answer was lost.
          () => Effect.map(describe(what, hash), (found) => !isStoreError(found) && found?.nuid === draft.nuid)
        ),
        refusedAs(what)
      )

  const putSource = (hash: string, source: Source): Effect.Effect<void, StoreError> => {
    const { size } = source
    const what = `put of the blob ${hash}`
    const partSize = Math.max(1, Math.min(partBytes, (nats.info?.max_payload ?? 1_048_576) - reservedHeaderBytes))
    const attempt = Effect.gen(function* () {
      const nuid = randomBytes(16).toString("hex")
      let last = yield* Clock.currentTimeMillis
      let longest = 0
      const step = Effect.map(Clock.currentTimeMillis, (now) => {
        longest = Math.max(longest, Math.abs(now - last))
        last = now
      })
      const [found, sequences] = yield* Effect.onError(
        Effect.all([messageOf(what, hash), sendParts(what, nuid, source, partSize, step)], { concurrency: 2 }),
        () => dropParts(nuid)
      )
      // Parts that were sent again after a reconnection are out of order.
      if (sequences.some((sequence, n) => n > 0 && sequence <= sequences[n - 1]!)) {
        yield* dropParts(nuid)
        return "again" as const
      }
      const draft = { nuid, partSize, sequences }
      const old = found === null ? undefined : parse(hash, found.data)
      const isPublished = yield* publish(
        what,
        hash,
        descriptionOf(hash, size, draft, yield* DateTime.now),
        draft,
        found?.seq ?? 0
      )
      if (isPublished) {
        if (old !== undefined && !isStoreError(old)) yield* dropParts(old.nuid)
        // A garbage collection may have removed the parts of a program that was stopped for long, or may be about to.
        yield* step
        return longest > stoppedPutMillis ? ("again" as const) : ("stored" as const)
      }
      yield* dropParts(nuid)
      // Another program has stored or deleted the same content during this call.
      const now = yield* describe(what, hash)
      return now !== undefined && !isStoreError(now) && now.size === size ? ("stored" as const) : ("again" as const)
    }).pipe(refusedAs(what))
    const store = (triesLeft: number): Effect.Effect<void, StoreError> =>
      attempt.pipe(
        Effect.catchIf(
          ({ reason }) => reason === "unavailable" && triesLeft > 1,
          // Waits until the server answers again.
          () => Effect.as(messageOf(what, hash), "again" as const)
        ),
        Effect.flatMap((outcome) => {
          if (outcome === "stored") return Effect.void
          const detail = `${what}: other programs stored and deleted it ${maxTries} times; try again later`
          return triesLeft > 1 ? store(triesLeft - 1) : Effect.fail(new StoreError({ reason: "unavailable", detail }))
        })
      )
    return store(maxTries)
  }

  /** Reads a part from any server that has the stream. If that server lacks it, reads it from the leader. */
  const part = (
    what: string,
    { nuid }: Found,
    query: { readonly seq: number } | { readonly seq: number; readonly next_by_subj: string }
  ) =>
    Effect.flatMap(
      connection.ask(
        what,
        async () => (await manager.direct.getMessage(stream, query)) ?? (await manager.streams.getMessage(stream, query))
      ),
      (message) => (message === null || message.subject !== partsOf(nuid) ? Effect.fail(new Moved()) : Effect.succeed(message))
    )

  /** The last read part of contents without a list of parts, so that the next range need not be sought from the first part on. */
  const positions = new Map<string, { readonly at: number; readonly seq: number }>()
  const positionBefore = (nuid: string, start: number) => {
    const position = positions.get(nuid)
    return position === undefined || position.at > start ? undefined : position
  }
  const remember = (nuid: string, position: { readonly at: number; readonly seq: number }): void => {
    positions.delete(nuid)
    positions.set(nuid, position)
    if (positions.size > maxPositions) positions.delete(positions.keys().next().value!)
  }

  /** Reads the bytes from `start` to `end`, which must lie within the content. */
  const readParts = (what: string, hash: string, found: Found, start: number, end: number) =>
    Effect.gen(function* () {
      const bytes = new Uint8Array(end - start)
      const place = (data: Uint8Array, at: number): void => {
        const from = Math.max(0, start - at)
        const to = Math.min(data.length, end - at)
        if (from < to) bytes.set(data.subarray(from, to), at + from - start)
      }
      const { after, partSize, sequences, size } = found
      if (sequences !== undefined) {
        const first = Math.floor(start / partSize)
        yield* Effect.forEach(
          sequences.slice(first, Math.ceil(end / partSize)),
          (seq, n) =>
            Effect.flatMap(part(what, found, { seq }), ({ data }) => {
              const at = (first + n) * partSize
              if (data.length !== Math.min(partSize, size - at)) {
                return Effect.fail(Blobs.corruptBlob(hash, `a part of it has ${data.length} bytes`))
              }
              return Effect.sync(() => place(data, at))
            }),
          { concurrency, discard: true }
        )
        return bytes
      }
      let { at, seq } = positionBefore(found.nuid, start) ?? { at: 0, seq: after + 1 }
      while (at < end) {
        const message = yield* part(what, found, { seq, next_by_subj: partsOf(found.nuid) })
        if (message.data.length === 0) return yield* Effect.fail(Blobs.corruptBlob(hash, "a part of it is empty"))
        place(message.data, at)
        // The next range may begin in the middle of this part.
        remember(found.nuid, { at, seq: message.seq })
        at += message.data.length
        seq = message.seq + 1
      }
      return bytes
    })

  const get = (
    hash: string,
    range: Blobs.Range | undefined,
    triesLeft = maxTries
  ): Effect.Effect<Uint8Array | undefined, StoreError> => {
    const what = `get of the blob ${hash}`
    return Effect.flatMap(describe(what, hash), (found) => {
      if (found === undefined) return Effect.succeed(undefined)
      if (isStoreError(found)) return Effect.fail(found)
      const start = Math.min(range?.offset ?? 0, found.size)
      const end = Math.min(start + (range?.length ?? found.size), found.size)
      if (start === end) return Effect.succeed(new Uint8Array())
      if (end - start > Blobs.maxBlobBytes) {
        return Effect.fail(
          Blobs.corruptBlob(hash, `its description has a size of ${found.size} bytes, more than one call can read`)
        )
      }
      return Effect.catchIf(
        readParts(what, hash, found, start, end),
        (error) => error._tag === "Moved",
        () =>
          Effect.flatMap(describe(what, hash), (now) =>
            triesLeft > 1 && (now === undefined || isStoreError(now) || now.nuid !== found.nuid)
              ? get(hash, range, triesLeft - 1)
              : Effect.fail(Blobs.corruptBlob(hash, "a part of it is missing"))
          )
      )
    })
  }

  /** Deletes a blob if its description still has this revision, and returns whether the blob was deleted. */
  const remove = (
    what: string,
    hash: string,
    found: Found | StoreError,
    revision: number
  ): Effect.Effect<boolean, StoreError> =>
    Effect.flatMap(purge(what, subjectOf(hash), revision + 1), ({ purged }) =>
      purged === 0
        ? Effect.succeed(false)
        : Effect.as(isStoreError(found) ? Effect.void : purge(what, partsOf(found.nuid)), true)
    )

  const removeIf = (
    what: string,
    hash: string,
    isWanted: (message: StoredMsg) => boolean
  ): Effect.Effect<boolean, StoreError> =>
    Effect.flatMap(messageOf(what, hash), (message) =>
      message === null || !isWanted(message)
        ? Effect.succeed(false)
        : remove(what, hash, parse(hash, message.data) ?? Blobs.corruptBlob(hash, "it is deleted"), message.seq)
    )

  const sizeOf: Blobs.Contents["sizeOf"] = (hash) =>
    Effect.map(describe(`look at the blob ${hash}`, hash), (found) => (isStoreError(found) ? undefined : found?.size))

  const descriptions = (what: string) =>
    messagesOf(connection, what, { stream, filter: `${topOfDescriptions}*`, isWithoutBody: false })

  /** Asks the server for its time, because the clock of this machine may be ahead. */
  const serverTime = (what: string): Effect.Effect<number, StoreError> =>
    Effect.map(
      connection.ask(what, async () => {
        const { created, name } = await manager.consumers.add(stream, {
          ack_policy: "none",
          mem_storage: true,
          inactive_threshold: 1_000_000_000
        } as Partial<ConsumerConfig>)
        await manager.consumers.delete(stream, name).catch(() => undefined)
        return created
      }),
      (created) => Date.parse(created)
    )

  const sweep: Blobs.Sweep = (before, youngest = leftoverAgeMillis) =>
    Effect.gen(function* () {
      const what = "removal of leftovers"
      const limit = Math.min(before, (yield* serverTime(what)) - youngest)
      const { state } = yield* connection.ask(what, () => manager.streams.info(stream, { subjects_filter: partsOf(">") }))
      const leftovers = new Set(Object.keys(state.subjects ?? {}))
      // The descriptions are read after the subjects, so that no content that is complete by now counts as a leftover. A
      // description that cannot be read keeps the parts that it names.
      yield* Stream.runForEach(descriptions(what), (message) =>
        Effect.sync(() => {
          for (const [, nuid] of message.string().matchAll(/"nuid"\s*:\s*"([^"]*)"/g)) leftovers.delete(partsOf(nuid!))
        })
      )
      let count = 0
      for (const subject of leftovers) {
        const last = yield* connection.ask(what, () => manager.streams.getMessage(stream, { last_by_subj: subject }))
        if (last === null || last.time.getTime() >= limit) continue
        yield* purge(what, subject)
        count++
      }
      return count
    })

  return Blobs.make({
    put: (hash, bytes) => putSource(hash, sourceOf(bytes)),
    putStream: spooled(sizeOf, putSource),
    sizeOf,
    sweep,
    get: (hash, range) => get(hash, range),
    has: (hashes) =>
      Effect.filter(hashes, (hash) => Effect.map(describe("has", hash), (found) => found !== undefined), { concurrency }),
    delete: (hashes) =>
      Effect.forEach(hashes, (hash) => removeIf(`delete of the blob ${hash}`, hash, () => true), {
        concurrency,
        discard: true
      }),
    deleteOlder: (hashes, millis) =>
      Effect.map(
        Effect.filter(hashes, (hash) => removeIf(`delete of the blob ${hash}`, hash, ({ time }) => time.getTime() < millis), {
          concurrency
        }),
        (deleted) => deleted.length
      ),
    list: descriptions("list of the blobs").pipe(
      Stream.filterMap((message) => {
        const hash = Buffer.from(message.subject.slice(topOfDescriptions.length), "base64url").toString("latin1")
        const isOther = !Blobs.isHash(hash) || subjectOf(hash) !== message.subject || parse(hash, message.data) === undefined
        return isOther
          ? Result.fail(undefined)
          : Result.succeed({ hash, storedAt: DateTime.makeUnsafe(Number(message.timestampNanos / 1_000_000n)) })
      })
    )
  })
}
