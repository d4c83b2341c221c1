/** The parser of messages, which any program with access to the server may have forged. */
import { assert, describe, it } from "@effect/vitest"
import { headers } from "@nats-io/transport-node"
import { header, make } from "../../src/journal/jetStream/log.ts"

const parse = (fields: Readonly<Record<string, string>>) => {
  const given = headers()
  for (const [name, value] of Object.entries(fields)) given.set(name, value)
  return make(7, new Uint8Array(100), given)
}

describe("a message of JetStream", () => {
  it("is parsed with the placeholder, the body and the count that its headers state", () => {
    assert.deepStrictEqual(parse({ [header.placeOf]: "5/3" }).place, { first: 5, count: 3 })
    const sha256 = "0123456789abcdef".repeat(4)
    assert.deepStrictEqual(parse({ [header.body]: `${sha256}/5000` }).body, { sha256, size: 5_000 })
    assert.strictEqual(parse({ [header.id]: "id", [header.count]: "12" }).count, 12)
  })

  it.each([
    "a/1",
    "1a/1",
    "0/1",
    "-1/1",
    "1.5/1",
    "0x5/1",
    "1e3/1",
    "5/1/1",
    "5/0x1",
    "9007199254740992/1",
    "5/9007199254740992"
  ])("is no placeholder if the header is forged: %s", (value) => {
    assert.isUndefined(parse({ [header.placeOf]: value }).place)
  })

  it.each(["0x10", "1e1", "+10", "10.0", "0", ""])("counts as one entry if the header of its count is forged: %s", (value) => {
    assert.strictEqual(parse({ [header.id]: "id", [header.count]: value }).count, 1)
  })
})
