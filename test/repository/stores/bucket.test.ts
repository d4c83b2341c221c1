import { assert, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { BlobStore, HeadStore, Stores } from "../../../src/index.ts"
import { storeSuite } from "../../../src/testing/index.ts"
import { bytesOf } from "../../../src/testing/stores/blobLaws.ts"
import { contentLaws, contentsOn } from "../../journal/contentLaws.ts"
import { isSoak } from "../../runs.ts"
import {
  credentials,
  describeMoto,
  describeRadosgw,
  freshPrefix,
  keysBelow,
  moto,
  putForeign,
  radosgw,
  type Server
} from "../../backends/bucket/servers.ts"

const optionsOn = (server: Server): Stores.BucketOptions & { readonly prefix: string } => ({
  ...server,
  prefix: freshPrefix(),
  credentials
})

const placeOn = (start: () => Promise<Server>) =>
  Effect.map(Effect.promise(start), (server) => Stores.layerBucket(optionsOn(server)))

const head = (sequence: number): HeadStore.Head => ({
  root: "r",
  sequence,
  author: "ada",
  message: "m",
  committedAt: DateTime.makeUnsafe(0)
})

const reasonOf = <A>(effect: Effect.Effect<A, Stores.StoreError>) => Effect.map(Effect.flip(effect), ({ reason }) => reason)

// A page of a listing has 1,000 keys. The slower server gets fewer blobs.
describeMoto("on moto", () => {
  storeSuite("stores in a bucket", placeOn(moto), { count: isSoak ? 1_050 : 50 })

  contentLaws("a bucket on moto", Effect.flatMap(placeOn(moto), contentsOn))

  it.live("a content of 17 MB from a stream is stored, and is read back unchanged", () =>
    Effect.gen(function* () {
      const contents = yield* Effect.flatMap(placeOn(moto), contentsOn)
      const bytes = bytesOf(17_000_000)
      const ref = yield* contents.putStream(Stream.make(bytes.subarray(0, 9_000_000), bytes.subarray(9_000_000)))
      assert.strictEqual(ref.size, 17_000_000)
      assert.isTrue(Buffer.from(bytes).equals(yield* contents.get(ref)))
    }).pipe(Effect.scoped)
  )

  it.live("damaged objects are reported, and foreign objects are ignored", () =>
    Effect.gen(function* () {
      const server = yield* Effect.promise(moto)
      const options = optionsOn(server)
      const context = yield* Layer.build(Stores.layerBucket(options))
      const [blobs, heads] = [Context.get(context, BlobStore.BlobStore), Context.get(context, HeadStore.HeadStore)]
      const hash = yield* blobs.put(Uint8Array.of(1, 2, 3))
      yield* heads.compareAndSet("w", undefined, head(1))
      assert.deepStrictEqual(yield* Effect.promise(() => keysBelow(server, options.prefix)), [`blobs/${hash}`, "heads/77"])
      for (const key of ["blobs/README", "heads/README", "heads/7", "heads/ff", "heads/0a", "other"]) {
        yield* Effect.promise(() => putForeign(server, options.prefix + key, "foreign"))
      }
      assert.strictEqual((yield* Stream.runCollect(blobs.list)).length, 1)
      assert.deepStrictEqual(yield* Stream.runCollect(heads.list), ["w"])
      for (const body of ["", "1234", "x".repeat(1_000_000)]) {
        yield* Effect.promise(() => putForeign(server, `${options.prefix}blobs/${hash}`, body))
        assert.strictEqual(yield* reasonOf(blobs.get(hash)), "corrupt", body.slice(0, 10))
        yield* Effect.promise(() => putForeign(server, `${options.prefix}heads/77`, body))
        assert.strictEqual(yield* reasonOf(heads.get("w")), "corrupt", body.slice(0, 10))
        assert.isFalse(yield* heads.compareAndSet("w", head(1), head(2)))
        assert.isFalse(yield* heads.compareAndSet("w", undefined, head(2)))
      }
    }).pipe(Effect.scoped)
  )

  it.live("invalid options and missing buckets are refused", () =>
    Effect.gen(function* () {
      const server = yield* Effect.promise(moto)
      const opened = (options: Partial<Stores.BucketOptions>) =>
        Effect.scoped(Layer.build(Stores.layerBucket({ ...optionsOn(server), ...options })))
      assert.strictEqual(yield* reasonOf(opened({ bucket: "" })), "invalid")
      assert.strictEqual(yield* reasonOf(opened({ endpoint: "ftp://127.0.0.1" })), "invalid")
      assert.strictEqual(yield* reasonOf(opened({ prefix: "x".repeat(500) })), "invalid")
      assert.strictEqual(yield* reasonOf(opened({ bucket: "absent-bucket" })), "unavailable")
    })
  )
})

describeRadosgw("on radosgw", () => {
  storeSuite("stores in a bucket", placeOn(radosgw), { count: 1_050 })
})
