import { assert, describe, it } from "@effect/vitest"
import { encode as encodeByOther } from "cborg"
import * as Cbor from "../../src/repository/format/cbor.ts"
import * as Cache from "../../src/repository/format/cache.ts"
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

describe("the encoding of values", () => {
  it("equals the encoding by cborg, and is decoded to the same value", () => {
    for (let seed = 1; seed <= runs(400); seed++) {
      const value = values(seed)
      const bytes = Cbor.encode(value)
      assert.deepStrictEqual(bytes, new Uint8Array(encodeByOther(value)), `seed ${seed}`)
      assert.deepStrictEqual(Cbor.decode(bytes), value, `seed ${seed}`)
    }
  })

  it("is unique: no other bytes are decoded to the same value", () => {
    for (let seed = 1; seed <= runs(400); seed++) {
      const next = random(seed)
      const bytes = Cbor.encode(values(seed))
      for (let i = 0; i < 20; i++) {
        const forged = bytes.slice(0, next(3) === 0 ? next(bytes.length + 1) : bytes.length)
        if (forged.length > 0) forged[next(forged.length)] = next(256)
        const found = Cbor.decode(forged)
        if (found !== undefined) assert.deepStrictEqual(Cbor.encode(found), forged, `seed ${seed}`)
      }
    }
  })

  it("refuses an integer that a double cannot represent exactly", () => {
    assert.isUndefined(Cbor.decode(Uint8Array.from([0x1b, 0, 0x20, 0, 0, 0, 0, 0, 0])))
    assert.isUndefined(Cbor.decode(Uint8Array.from([0x3b, 0, 0x1f, 255, 255, 255, 255, 255, 255])))
    assert.throws(() => Cbor.encode(0.5))
  })

  it("refuses lists that are nested more deeply than in any node", () => {
    assert.isUndefined(Cbor.decode(new Uint8Array(60_000).fill(0x81)))
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
