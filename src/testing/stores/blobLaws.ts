import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { Operations } from "../../repository/BlobStore.ts"
import { sha256 } from "../../runtime/hash.ts"
import { equal, fails, holds } from "../expect.ts"
import { sharedLaw, type StoreLaw, storeLaw } from "./law.ts"

const encoder = new TextEncoder()

/** Returns pseudo-random bytes, whose chunks differ from each other. The same seed gives the same bytes. */
export const bytesOf = (length: number, seed = 1): Uint8Array => {
  const bytes = new Uint8Array(length)
  let state = seed * 2_654_435_761 + 1
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes[at] = state >>> 24
  }
  return bytes
}

const unknownHash = "0".repeat(64)
const mebibyte = 1024 * 1024

const listed = (blobs: Operations) => Effect.map(Stream.runCollect(blobs.list), (found) => found.map(({ hash }) => hash).sort())

const timeOf = (blobs: Operations, hash: string) =>
  Effect.map(
    Stream.runCollect(Stream.filter(blobs.list, (blob) => blob.hash === hash)),
    ([found]) => found && DateTime.toEpochMillis(found.storedAt)
  )

/** Stores `count` small contents, and returns their hashes, sorted. */
const putMany = (blobs: Operations, count: number) =>
  Effect.map(
    Effect.forEach(
      Array.from({ length: count }, (_, n) => n),
      (n) => blobs.put(encoder.encode(`content ${n}`)),
      { concurrency: 16 }
    ),
    (hashes) => hashes.sort()
  )

export const blobLaws: ReadonlyArray<StoreLaw> = [
  storeLaw("put returns the SHA-256 of the content in lowercase hexadecimal digits", function* ({ blobs }) {
    // The first two contents are examples of FIPS 180-2.
    yield* equal(yield* blobs.put(encoder.encode("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    yield* equal(
      yield* blobs.put(encoder.encode("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    )
    yield* equal(yield* blobs.put(new Uint8Array()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
  }),
  storeLaw("get returns the content of each size", function* ({ blobs }) {
    for (const size of [0, 1, 255, 4_096, 65_537, mebibyte, mebibyte + 1]) {
      const bytes = bytesOf(size, size)
      yield* equal(yield* blobs.get(yield* blobs.put(bytes)), bytes, `${size} bytes`)
    }
  }),
  storeLaw("the largest content can be read whole and in ranges", function* ({ blobs, largestBytes }) {
    const bytes = bytesOf(largestBytes)
    const hash = yield* blobs.put(bytes)
    const found = yield* blobs.get(hash)
    yield* equal(found.length, largestBytes)
    yield* equal(sha256(found), hash)
    for (const offset of [0, largestBytes >> 1, 8 * mebibyte - 5, 16 * mebibyte - 5, largestBytes - 10]) {
      const range = { offset: Math.max(0, offset), length: 20 }
      yield* equal(yield* blobs.get(hash, range), bytes.slice(range.offset, range.offset + 20), `20 bytes from ${range.offset}`)
    }
    const across = yield* blobs.get(hash, { offset: 1, length: largestBytes })
    yield* equal(sha256(across), sha256(bytes.subarray(1)))
  }),
  storeLaw("get returns the bytes of a range that exist", function* ({ blobs }) {
    const bytes = bytesOf(1_000)
    const hash = yield* blobs.put(bytes)
    const ranges = [
      [0, 1_000],
      [0, 1],
      [999, 1],
      [500, 100],
      [990, 100],
      [0, Number.MAX_SAFE_INTEGER],
      [999, 2],
      [1_000, 1],
      [1_001, 5],
      [Number.MAX_SAFE_INTEGER, 1],
      [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
      [0, 0],
      [10, 0],
      [1_000, 0]
    ] as const
    for (const [offset, length] of ranges) {
      yield* equal(
        yield* blobs.get(hash, { offset, length }),
        bytes.slice(offset, offset + length),
        `${length} bytes from ${offset}`
      )
    }
    const empty = yield* blobs.put(new Uint8Array())
    yield* equal(yield* blobs.get(empty, { offset: 0, length: 10 }), new Uint8Array())
    yield* equal(yield* blobs.get(empty, { offset: 5, length: 0 }), new Uint8Array())
  }),
  storeLaw("get of an invalid range fails with invalid", function* ({ blobs }) {
    const hash = yield* blobs.put(bytesOf(10))
    for (const value of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      yield* fails(blobs.get(hash, { offset: value, length: 1 }), "StoreError", { reason: "invalid" })
      yield* fails(blobs.get(hash, { offset: 0, length: value }), "StoreError", { reason: "invalid" })
    }
  }),
  storeLaw("get of an unknown hash fails with missing, with and without a range", function* ({ blobs }) {
    yield* fails(blobs.get(unknownHash), "StoreError", { reason: "missing" })
    yield* fails(blobs.get(unknownHash, { offset: 0, length: 0 }), "StoreError", { reason: "missing" })
    yield* fails(blobs.get(unknownHash, { offset: 5, length: 5 }), "StoreError", { reason: "missing" })
  }),
  storeLaw("get, has and delete treat a text that is not a hash as an unknown hash", function* ({ blobs }) {
    const hash = yield* blobs.put(bytesOf(10))
    const texts = ["", ".", "../../../etc/passwd", hash.slice(1), `${hash}0`, hash.toUpperCase(), `${hash}\n`, "x".repeat(64)]
    for (const text of texts) {
      yield* fails(blobs.get(text), "StoreError", { reason: "missing" })
      yield* fails(blobs.get(text, { offset: 0, length: 1 }), "StoreError", { reason: "missing" })
    }
    yield* equal([...(yield* blobs.has([...texts, hash]))], [hash])
    yield* blobs.delete(texts)
    yield* equal(yield* listed(blobs), [hash])
  }),
  storeLaw("changing the array given to put, or returned by get, does not change the stored content", function* ({ blobs }) {
    const bytes = bytesOf(5_000)
    const running = yield* Effect.forkChild(blobs.put(bytes), { startImmediately: true })
    bytes.fill(0)
    const hash = yield* Fiber.join(running)
    const first = yield* blobs.get(hash)
    yield* equal(first, bytesOf(5_000))
    first.fill(1)
    const range = yield* blobs.get(hash, { offset: 0, length: 100 })
    yield* equal(range, bytesOf(5_000).slice(0, 100))
    range.fill(2)
    yield* equal(yield* blobs.get(hash), bytesOf(5_000))
  }),
  storeLaw("get returns a Uint8Array whose buffer has no other bytes", function* ({ blobs }) {
    const hash = yield* blobs.put(bytesOf(100))
    for (const found of [yield* blobs.get(hash), yield* blobs.get(hash, { offset: 10, length: 5 })]) {
      yield* holds(Object.getPrototypeOf(found) === Uint8Array.prototype, "the prototype of Uint8Array")
      yield* equal(found.buffer.byteLength, found.length, "the size of its buffer")
    }
  }),
  storeLaw("content that is put several times at once is stored once", function* ({ blobs }) {
    const bytes = bytesOf(100_000)
    const hashes = yield* Effect.all(
      Array.from({ length: 32 }, () => blobs.put(bytes)),
      { concurrency: "unbounded" }
    )
    yield* equal([...new Set(hashes)], [sha256(bytes)])
    yield* equal(yield* listed(blobs), [sha256(bytes)])
    yield* equal(yield* blobs.get(hashes[0]!), bytes)
  }),
  storeLaw("has returns the given hashes that exist", function* ({ blobs }) {
    const one = yield* blobs.put(bytesOf(10, 1))
    const two = yield* blobs.put(bytesOf(10, 2))
    const has = (...hashes: ReadonlyArray<string>) => Effect.map(blobs.has(hashes), (found) => [...found].sort())
    yield* equal(yield* has(), [])
    yield* equal(yield* has(unknownHash), [])
    yield* equal(yield* has(one, unknownHash, two, one, two), [one, two].sort())
  }),
  storeLaw("delete removes contents and ignores unknown hashes", function* ({ blobs }) {
    const one = yield* blobs.put(bytesOf(10, 1))
    const two = yield* blobs.put(bytesOf(10, 2))
    yield* blobs.delete([])
    yield* blobs.delete([unknownHash])
    yield* blobs.delete([one, unknownHash, one])
    yield* fails(blobs.get(one), "StoreError", { reason: "missing" })
    yield* equal([...(yield* blobs.has([one, two]))], [two])
    yield* equal(yield* listed(blobs), [two])
    yield* equal(yield* blobs.put(bytesOf(10, 1)), one)
    yield* equal(yield* blobs.get(one), bytesOf(10, 1))
  }),
  storeLaw("delete removes the largest content completely", function* ({ blobs, largestBytes }) {
    const hash = yield* blobs.put(bytesOf(largestBytes))
    yield* blobs.delete([hash])
    yield* equal([...(yield* blobs.has([hash]))], [])
    yield* fails(blobs.get(hash, { offset: largestBytes - 1, length: 1 }), "StoreError", { reason: "missing" })
    yield* equal(yield* listed(blobs), [])
  }),
  storeLaw("list returns each of many hashes once, and has and delete accept all of them", function* ({ blobs, count }) {
    yield* equal(yield* listed(blobs), [])
    const hashes = yield* putMany(blobs, count)
    yield* equal(yield* listed(blobs), hashes)
    yield* equal([...(yield* blobs.has([unknownHash, ...hashes]))].sort(), hashes)
    const [first, ...others] = hashes
    yield* blobs.delete(others)
    yield* equal(yield* listed(blobs), [first!])
  }),
  storeLaw("a reader may stop in the middle of a list", function* ({ blobs }) {
    const hashes = yield* putMany(blobs, 20)
    for (let n = 0; n < 5; n++) {
      const found = yield* Stream.runCollect(Stream.take(blobs.list, 3))
      yield* equal(new Set(found.map(({ hash }) => hash)).size, 3)
      yield* holds(
        found.every(({ hash }) => hashes.includes(hash)),
        "hashes of the store"
      )
    }
  }),
  storeLaw("content that is put again gets the current time", function* ({ blobs }) {
    const hash = yield* blobs.put(bytesOf(10))
    const first = yield* timeOf(blobs, hash)
    yield* holds(first !== undefined, "a time")
    let last = first!
    // Some stores record whole seconds, so the loop may take a second. The timeout of the law ends an endless loop.
    while (last <= first!) {
      yield* Effect.sleep("100 millis")
      yield* blobs.put(bytesOf(10))
      const next = (yield* timeOf(blobs, hash))!
      yield* holds(next >= last, "a time that does not decrease", next)
      last = next
    }
  }),
  storeLaw("an interrupted put leaves the content whole or absent", function* ({ blobs }) {
    for (let n = 0; n < 24; n++) {
      const bytes = bytesOf(200_000, n + 7)
      const running = yield* Effect.forkChild(blobs.put(bytes), { startImmediately: true })
      for (let step = 0; step < n; step++) yield* n % 2 === 0 ? Effect.yieldNow : Effect.sleep("1 millis")
      yield* Fiber.interrupt(running)
      const hash = sha256(bytes)
      // The request of the interrupted put may still reach the store during any of these calls.
      if ((yield* blobs.has([hash])).has(hash)) {
        yield* equal(sha256(yield* blobs.get(hash)), hash)
        yield* holds((yield* listed(blobs)).includes(hash), "a list that contains the hash")
      } else {
        const found = yield* Effect.catchIf(
          blobs.get(hash),
          ({ reason }) => reason === "missing",
          () => Effect.succeed(bytes)
        )
        yield* equal(sha256(found), hash)
      }
    }
  }),
  sharedLaw("a reopened store has all contents and shares later changes", function* ({ blobs, reopen }) {
    const hash = yield* blobs.put(bytesOf(100_000))
    const other = yield* reopen
    yield* equal(yield* other.blobs.get(hash), bytesOf(100_000))
    yield* equal(yield* listed(other.blobs), [hash])
    const second = yield* other.blobs.put(bytesOf(10))
    yield* equal(yield* blobs.get(second), bytesOf(10))
    yield* other.blobs.delete([hash])
    yield* equal(yield* listed(blobs), [second])
  })
]
