import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { BlobStore, HeadStore, Stores } from "../../../src/index.ts"
import { faultyStores, StoreFaults, storeSuite } from "../../../src/testing/index.ts"

storeSuite("stores that answer in another order", Effect.succeed(StoreFaults.reordered(Stores.layerMemory)), {
  isShared: false
})

const bytes = Uint8Array.of(1, 2, 3)
const head = (sequence: number): HeadStore.Head => ({
  root: "r",
  sequence,
  author: "ada",
  message: "",
  committedAt: DateTime.makeUnsafe(0)
})

const withFaults = (plan: ReadonlyArray<StoreFaults.PlannedStoreFault>) =>
  Effect.gen(function* () {
    const faulty = faultyStores(plan)
    const context = yield* Layer.build(faulty.wrap(Stores.layerMemory))
    return { ...faulty, blobs: Context.get(context, BlobStore.BlobStore), heads: Context.get(context, HeadStore.HeadStore) }
  })

describe("planned faults of stores", () => {
  it.effect("prevent a call, or lose only the answer of a call that does its work", () =>
    Effect.gen(function* () {
      const { blobs, calls, heads } = yield* withFaults([
        { step: "put", nth: 1, fault: "no answer" },
        { step: "compareAndSet", nth: 1, fault: "lost answer" }
      ])
      assert.strictEqual((yield* Effect.flip(blobs.put(bytes))).reason, "unavailable")
      const hash = yield* blobs.put(Uint8Array.of(9))
      assert.strictEqual((yield* blobs.has([hash])).size, 1)
      assert.strictEqual((yield* Effect.flip(heads.compareAndSet("w", undefined, head(1)))).reason, "unavailable")
      assert.strictEqual((yield* heads.get("w"))?.sequence, 1)
      assert.deepStrictEqual(
        calls.map(({ fault, step }) => [step, fault]),
        [
          ["put", "no answer"],
          ["put", undefined],
          ["has", undefined],
          ["compareAndSet", "lost answer"],
          ["getHead", undefined]
        ]
      )
    })
  )

  it.effect("delay a change until after the next call", () =>
    Effect.gen(function* () {
      const { heads } = yield* withFaults([{ step: "compareAndSet", nth: 1, fault: "late" }])
      yield* Effect.flip(heads.compareAndSet("w", undefined, head(1)))
      assert.isUndefined(yield* heads.get("w"))
      assert.strictEqual((yield* heads.get("w"))?.sequence, 1)
    })
  )

  it.effect("include late changes that no longer match, and then change nothing", () =>
    Effect.gen(function* () {
      const { heads, settle } = yield* withFaults([{ step: "compareAndSet", nth: 1, fault: "late" }])
      yield* Effect.flip(heads.compareAndSet("w", undefined, head(1)))
      assert.isTrue(yield* heads.compareAndSet("w", undefined, head(5)))
      yield* settle
      assert.strictEqual((yield* heads.get("w"))?.sequence, 5)
    })
  )

  it.effect("include a partial put, which leaves damaged content until the next put", () =>
    Effect.gen(function* () {
      const { blobs, calls } = yield* withFaults([{ step: "put", nth: 1, fault: "partial" }])
      yield* Effect.flip(blobs.put(bytes))
      const hash = calls[0]!.subject
      assert.strictEqual((yield* Effect.flip(blobs.get(hash))).reason, "corrupt")
      assert.strictEqual(yield* blobs.put(bytes), hash)
      assert.deepStrictEqual(yield* blobs.get(hash), bytes)
    })
  )

  it.effect("include a late put, which replaces damaged content", () =>
    Effect.gen(function* () {
      const { blobs, calls, settle } = yield* withFaults([
        { step: "put", nth: 1, fault: "partial" },
        { step: "put", nth: 1, fault: "late" }
      ])
      yield* Effect.flip(blobs.put(bytes))
      yield* Effect.flip(blobs.put(bytes))
      yield* settle
      assert.deepStrictEqual(yield* blobs.get(calls[0]!.subject), bytes)
    })
  )

  it.effect("include a partial deletion, which deletes some blobs", () =>
    Effect.gen(function* () {
      const { blobs } = yield* withFaults([{ step: "delete", fault: "partial" }])
      const hashes = yield* Effect.forEach([1, 2, 3, 4], (n) => blobs.put(Uint8Array.of(n)))
      yield* Effect.flip(blobs.delete(hashes))
      assert.strictEqual((yield* blobs.has(hashes)).size, 2)
    })
  )

  it.effect("include a full store, which fails with full and stores nothing", () =>
    Effect.gen(function* () {
      const { blobs, calls } = yield* withFaults([{ step: "put", fault: "full" }])
      assert.strictEqual((yield* Effect.flip(blobs.put(bytes))).reason, "full")
      assert.strictEqual((yield* blobs.has([calls[0]!.subject])).size, 0)
    })
  )

  it.effect("include slow calls, and calls that hang until they are interrupted", () =>
    Effect.gen(function* () {
      const { blobs, hung } = yield* withFaults([
        { step: "put", fault: { slow: "1 minute" } },
        { step: "get", fault: "hang" }
      ])
      const put = yield* Effect.forkChild(blobs.put(bytes), { startImmediately: true })
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(put.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const get = yield* Effect.forkChild(blobs.get(yield* Fiber.join(put)))
      yield* hung
      yield* Fiber.interrupt(get)
    })
  )
})
