import { assert, describe, it } from "@effect/vitest"
import { whole } from "../../src/model/words.ts"

describe("a number with thousands separators", () => {
  it.each([
    0,
    7,
    999,
    1000,
    12_345,
    100_000,
    1_234_567,
    -1,
    -999,
    -1000,
    -12_345_678,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    2 ** 70,
    1234.5,
    Number.POSITIVE_INFINITY
  ])("equals the format of the locale en-US for %s", (count) => assert.strictEqual(whole(count), count.toLocaleString("en-US")))
})
