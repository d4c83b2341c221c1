/** The laws that every content store satisfies, wherever its contents are. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type ContentStore, make as makeContents } from "../../src/journal/ContentStore.ts"
import { BlobStore, StoreError } from "../../src/repository/BlobStore.ts"
import { bytesOf, sha256 } from "./journalLaws.ts"

const refOf = (bytes: Uint8Array) => ({ sha256: sha256(bytes), size: bytes.length })

/** Opens a content store on the blobs of a layer of stores. */
export const contentsOn = <A, E>(stores: Layer.Layer<BlobStore | A, E>): Effect.Effect<ContentStore, E, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(stores)), (context) => makeContents(Context.get(context, BlobStore)))

/** Checks a content store. Each law gets a new, empty one. */
export const contentLaws = <E>(name: string, make: Effect.Effect<ContentStore, E, Scope.Scope>): void => {
  describe(`a content store in ${name}`, () => {
    const law = <E2>(claim: string, run: (store: ContentStore) => Effect.Effect<void, E2>): void => {
      it.live(claim, () => Effect.scoped(Effect.flatMap(make, run)))
    }

    law("returns a separate plain array to each caller", (store) =>
      Effect.gen(function* () {
        const ref = yield* store.put(bytesOf(5_000))
        const first = yield* store.get(ref)
        assert.strictEqual(Object.getPrototypeOf(first), Uint8Array.prototype)
        first.fill(0)
        assert.deepStrictEqual(yield* store.get(ref), bytesOf(5_000))
      })
    )

    law("returns the hash and the size of a content, and later the same bytes", (store) =>
      Effect.gen(function* () {
        for (const size of [0, 1, 4_097, 65_535, 65_536, 65_537, 200_000]) {
          const bytes = bytesOf(size)
          assert.deepStrictEqual(yield* store.put(bytes), refOf(bytes))
          assert.deepStrictEqual(yield* store.get(refOf(bytes)), bytes)
          const chunks = yield* Stream.runCollect(store.stream(refOf(bytes)))
          assert.isTrue(chunks.every(({ length }) => length > 0 && length <= 65_536))
          assert.deepStrictEqual(new Uint8Array(Buffer.concat(chunks)), bytes)
          assert.isTrue(yield* store.has(refOf(bytes)))
        }
        const abc = Buffer.from("abc")
        assert.strictEqual((yield* store.put(abc)).sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
      })
    )

    law("is unchanged if a caller changes the bytes that the caller stored or read", (store) =>
      Effect.gen(function* () {
        for (const mine of [bytesOf(5_000, 3), Buffer.from(bytesOf(5_000, 4))]) {
          const was = new Uint8Array(mine)
          const ref = yield* store.put(mine)
          mine.fill(0)
          const got = yield* store.get(ref)
          assert.deepStrictEqual(got, was)
          got.fill(0)
          for (const chunk of yield* Stream.runCollect(store.stream(ref))) chunk.fill(0)
          assert.deepStrictEqual(yield* store.get(ref), was)
        }
        const reused = new Uint8Array(1_000)
        const pieces = [1, 2, 3].map((seed) => bytesOf(1_000, seed))
        const stream = Stream.fromIterable(pieces).pipe(
          Stream.rechunk(1),
          Stream.map((piece) => {
            reused.set(piece)
            return reused
          })
        )
        const whole = new Uint8Array(Buffer.concat(pieces))
        assert.deepStrictEqual(yield* store.putStream(stream), refOf(whole))
        assert.deepStrictEqual(yield* store.get(refOf(whole)), whole)
      })
    )

    law("fails as corrupt for a missing content or a content of another size", (store) =>
      Effect.gen(function* () {
        const ref = yield* store.put(bytesOf(100))
        const others = [
          refOf(bytesOf(101)),
          { ...ref, size: 99 },
          { ...ref, size: 101 },
          { ...ref, size: 0 },
          { ...ref, sha256: "../../../etc/passwd" },
          { ...ref, sha256: "" },
          { ...ref, sha256: ref.sha256.toUpperCase() }
        ]
        for (const other of others) {
          assert.isFalse(yield* store.has(other), JSON.stringify(other))
          assert.strictEqual((yield* Effect.flip(store.get(other))).reason, "corrupt")
          assert.strictEqual((yield* Effect.flip(Stream.runDrain(store.stream(other)))).reason, "corrupt")
        }
      })
    )

    law("stores the same content for many fibers at the same time", (store) =>
      Effect.gen(function* () {
        const bytes = bytesOf(100_000)
        const put = (n: number) =>
          n % 2 === 0 ? store.put(bytes) : store.putStream(Stream.make(bytes.subarray(0, 33_333), bytes.subarray(33_333)))
        const refs = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, n) => n),
          put,
          { concurrency: "unbounded" }
        )
        assert.isTrue(refs.every(({ sha256 }) => sha256 === refOf(bytes).sha256))
        assert.deepStrictEqual(yield* store.get(refOf(bytes)), bytes)
      })
    )

    law("stores 3 MB from a stream and from an array under one reference, and returns the same bytes", (store) =>
      Effect.gen(function* () {
        const bytes = bytesOf(3_000_001)
        const chunks = Array.from({ length: 31 }, (_, n) => bytes.subarray(n * 100_000, (n + 1) * 100_000))
        assert.deepStrictEqual(yield* store.putStream(Stream.fromIterable(chunks)), refOf(bytes))
        assert.deepStrictEqual(yield* store.put(bytes), refOf(bytes))
        assert.deepStrictEqual(yield* store.putStream(Stream.fromIterable(chunks)), refOf(bytes))
        assert.isTrue(Buffer.from(bytes).equals(yield* store.get(refOf(bytes))))
        assert.isTrue(Buffer.from(bytes).equals(Buffer.concat(yield* Stream.runCollect(store.stream(refOf(bytes))))))
        assert.strictEqual((yield* Effect.flip(store.get({ ...refOf(bytes), size: 3_000_000 }))).reason, "corrupt")
        assert.deepStrictEqual(yield* store.putStream(Stream.empty), refOf(new Uint8Array()))
        assert.isTrue(yield* store.has(refOf(new Uint8Array())))
      })
    )

    law("keeps nothing of a stream that fails or is interrupted, and returns the error of the stream unchanged", (store) =>
      Effect.gen(function* () {
        const bytes = bytesOf(2_000_000)
        const begun = Stream.make(bytes)
        // An error of the caller that looks like one of the store.
        const mine = new StoreError({ reason: "missing", detail: "of the caller" })
        assert.strictEqual(yield* Effect.flip(store.putStream(Stream.concat(begun, Stream.fail(mine)))), mine)
        const reached = yield* Deferred.make<void>()
        const hangs = Stream.concat(
          begun,
          Stream.fromEffect(Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))
        )
        const putting = yield* Effect.forkChild(store.putStream(hangs))
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(putting)
        assert.isFalse(yield* store.has(refOf(bytes)))
      })
    )
  })
}
