import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { BlobStore, type HeadStore, Stores } from "../../../src/index.ts"
import { storeSuite } from "../../../src/testing/index.ts"

storeSuite("the stores in memory", Effect.succeed(Stores.layerMemory), { isShared: false })

const bytes = Uint8Array.of(1, 2, 3)

describe("the stores in memory", () => {
  it.effect("are new and empty for each build of the layer", () =>
    Effect.gen(function* () {
      const put = Effect.provide(
        BlobStore.BlobStore.use((blobs) => blobs.put(bytes)),
        Stores.layerMemory
      )
      const hash = yield* put
      const error = yield* Effect.flip(
        Effect.provide(
          BlobStore.BlobStore.use((blobs) => blobs.get(hash)),
          Stores.layerMemory
        )
      )
      assert.strictEqual(error.reason, "missing")
    })
  )

  it.effect("are shared by two programs if one layer is provided to both", () =>
    Effect.gen(function* () {
      const put = BlobStore.BlobStore.use((blobs) => blobs.put(bytes))
      const get = BlobStore.BlobStore.use((blobs) => Stream.runCollect(blobs.list))
      const found = yield* Effect.provide(Effect.andThen(put, get), Stores.layerMemory)
      assert.strictEqual(found.length, 1)
    })
  )

  it.effect("use effect's clock for the time of a blob", () =>
    Effect.gen(function* () {
      const blobs = yield* BlobStore.BlobStore
      yield* TestClock.setTime(5_000)
      yield* blobs.put(bytes)
      yield* TestClock.setTime(9_000)
      const times = Stream.runCollect(Stream.map(blobs.list, ({ storedAt }) => DateTime.toEpochMillis(storedAt)))
      assert.deepStrictEqual(yield* times, [5_000])
      yield* blobs.put(bytes)
      assert.deepStrictEqual(yield* times, [9_000])
    }).pipe(Effect.provide(Stores.layerMemory))
  )

  it("need no error channel, because memory always answers", () => {
    const layer: Layer.Layer<BlobStore.BlobStore | HeadStore.HeadStore> = Stores.layerMemory
    assert.isTrue(Layer.isLayer(layer))
  })
})
