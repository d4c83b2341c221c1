import { assert, describe, it } from "@effect/vitest"
import { encode as encodeByOther } from "cborg"
import { StoreError } from "../../src/repository/BlobStore.ts"
import * as Cbor from "../../src/repository/format/cbor.ts"
import * as Cache from "../../src/repository/format/cache.ts"
import { decode as decodeNode } from "../../src/repository/format/nodes.ts"
import { runs } from "../runs.ts"
import { random } from "./random.ts"

const values = (seed: number) => {
  const next = random(seed)
  const limits = [0, 1, 23, 24, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER]
  const texts = ["", "a", "é", "😀", "\ufffd", "a".repeat(30), "x".repeat(300), "\ufeffbom", "mixed é"]
  const value = (depth: number): Cbor.Value => {
    switch (next(depth === 0 ? 4 : 5)) {
      case 0:
        return limits[next(limits.length)]! * (next(2) === 0 ? 1 : -1) + 0
      case 1:
        return texts[next(texts.length)]!
      case 2:
        return Uint8Array.from({ length: next(40) }, () => next(256))
      case 3:
        return null
      default:
        return Array.from({ length: next(30) }, () => value(depth - 1))
    }
  }
  return value(3)
}

const decode = (bytes: Uint8Array): Cbor.Value | undefined => {
  const reader = new Cbor.Reader(bytes)
  const read = (): Cbor.Value => {
    if (reader.isNull()) return null
    switch (reader.major) {
      case 2:
        return reader.bytes(Infinity)
      case 3:
        return reader.text(Infinity)
      case 4:
        return Array.from({ length: reader.list() }, read)
      default:
        return reader.int()
    }
  }
  try {
    const value = read()
    return reader.isAtEnd ? value : undefined
  } catch (error) {
    if (error instanceof Cbor.Malformed) return undefined
    throw error
  }
}

describe("the encoding of values", () => {
  it("equals the encoding by cborg, and is decoded to the same value", () => {
    for (let seed = 1; seed <= runs(400); seed++) {
      const value = values(seed)
      const bytes = Cbor.encode(value)
      assert.deepStrictEqual(bytes, new Uint8Array(encodeByOther(value)), `seed ${seed}`)
      assert.deepStrictEqual(decode(bytes), value, `seed ${seed}`)
    }
  })

  it("is unique: no other bytes are decoded to the same value", () => {
    for (let seed = 1; seed <= runs(400); seed++) {
      const next = random(seed)
      const bytes = Cbor.encode(values(seed))
      for (let i = 0; i < 20; i++) {
        const forged = bytes.slice(0, next(3) === 0 ? next(bytes.length + 1) : bytes.length)
        if (forged.length > 0) forged[next(forged.length)] = next(256)
        const found = decode(forged)
        if (found !== undefined) assert.deepStrictEqual(Cbor.encode(found), forged, `seed ${seed}`)
      }
    }
  })

  it("refuses an integer that a double cannot represent exactly", () => {
    assert.isUndefined(decode(Uint8Array.from([0x1b, 0, 0x20, 0, 0, 0, 0, 0, 0])))
    assert.isUndefined(decode(Uint8Array.from([0x3b, 0, 0x1f, 255, 255, 255, 255, 255, 255])))
    assert.throws(() => Cbor.encode(0.5))
  })

  it("refuses values of another type, and values that are too long", () => {
    const reads: ReadonlyArray<(reader: Cbor.Reader) => unknown> = [
      (reader) => reader.int(),
      (reader) => reader.text(2),
      (reader) => reader.bytes(2),
      (reader) => reader.hex(2),
      (reader) => reader.list()
    ]
    const accepted = [[-1], ["ab"], [new Uint8Array(2)], [new Uint8Array(2)], [[1, 2]]]
    const refused = [null, "abc", new Uint8Array(3)]
    for (const [i, read] of reads.entries()) {
      for (const [j, [value]] of accepted.entries()) {
        const isSame = i === j || (i === 2 && j === 3) || (i === 3 && j === 2)
        const run = () => read(new Cbor.Reader(Cbor.encode(value!)))
        if (isSame) run()
        else assert.throws(run, Cbor.Malformed)
      }
      for (const value of refused) assert.throws(() => read(new Cbor.Reader(Cbor.encode(value))), Cbor.Malformed)
    }
    assert.throws(() => new Cbor.Reader(Cbor.encode(new Uint8Array(1))).hex(2), Cbor.Malformed)
    assert.throws(() => new Cbor.Reader(new Uint8Array()).int(), Cbor.Malformed)
  })

  it("refuses lists that are nested more deeply than in any node", () => {
    assert.instanceOf(decodeNode("0".repeat(64), new Uint8Array(60_000).fill(0x81)), StoreError)
  })
})

describe("the cache of nodes", () => {
  it("never exceeds its limit, whatever is added and read", () => {
    const next = random(7)
    const cache = Cache.make<{ readonly node?: number; readonly chunk?: number }>(1000)
    let found = 0
    for (let i = 0; i < 20_000; i++) {
      const key = `${next(300)}`
      if (next(2) === 0) cache.set(key, next(2) === 0 ? { node: i } : { chunk: i }, next(8) === 0 ? 1200 : next(100))
      else if (cache.get(key) !== undefined) found++
      assert.isAtMost(cache.cost(), 1000)
    }
    assert.isAbove(found, 100)
  })

  it("keeps values that are read often while other values are added", () => {
    const cache = Cache.make<{ readonly node: number }>(100)
    cache.set("root", { node: 0 }, 10)
    for (let i = 0; i < 1000; i++) {
      cache.set(`${i}`, { node: i }, 10)
      assert.isDefined(cache.get("root"))
    }
    assert.isUndefined(cache.get("0"))
  })

  it("keeps two values of one key, and the cost of both", () => {
    const cache = Cache.make<{ readonly node?: number; readonly chunk?: number }>(100)
    cache.set("a", { node: 1 }, 10)
    cache.set("a", { chunk: 2 }, 20)
    assert.deepStrictEqual(cache.get("a"), { node: 1, chunk: 2 })
    assert.strictEqual(cache.cost(), 30)
  })
})
