import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import { runInNewContext } from "node:vm"
import { crc32, deflateRawSync, inflateRawSync } from "node:zlib"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Node from "../../src/history/zip/codec.ts"
import * as Web from "../../src/history/zip/webCodec.ts"
import { isBytes, isRegExp } from "../../src/model/realms.ts"
import { PortableBuffer } from "../../src/runtime/buffer.ts"
import { Sha } from "../../src/runtime/sha.ts"

let state = 1

const below = (limit: number): number => {
  state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
  return Math.floor((state / 2 ** 32) * limit)
}

const bytes = (): Uint8Array<ArrayBuffer> => Uint8Array.from({ length: below(300) }, () => below(256))

/** Returns text with characters of one to four bytes and lone surrogates. */
const text = (): string =>
  Array.from({ length: below(40) }, () => String.fromCodePoint(below(0x110000) >> [0, 4, 9, 14][below(4)]!)).join("")

const often = (check: () => void): void => {
  for (let i = 0; i < 300; i++) check()
}

describe("the replacement for Node's modules", () => {
  for (const name of ["sha1", "sha256"] as const) {
    it(`computes the ${name} of bytes in parts as Node does`, () =>
      often(() => {
        const parts = Array.from({ length: below(5) }, bytes)
        const [own, node] = [new Sha(name), createHash(name)]
        for (const part of parts) {
          own.update(part)
          node.update(part)
          assert.strictEqual(own.digest("hex"), node.copy().digest("hex"))
        }
      }))
  }

  it("computes a checksum in parts as Node does", () =>
    often(() => {
      const [one, other] = [bytes(), bytes()]
      assert.strictEqual(Web.crc32(other, Web.crc32(one, 0)), crc32(other, crc32(one)))
    }))

  it("encodes and decodes as Node's Buffer does", () =>
    often(() => {
      const [value, written] = [bytes(), text()]
      const [own, node] = [PortableBuffer.from(value), Buffer.from(value)]
      for (const encoding of ["utf8", "latin1", "hex", "base64", "utf16le"] as const) {
        assert.strictEqual(own.toString(encoding), node.toString(encoding))
        assert.strictEqual(own.toString(encoding, 3, 20), node.toString(encoding, 3, 20))
      }
      for (const encoding of ["utf8", "latin1"] as const) {
        assert.deepStrictEqual([...PortableBuffer.from(written, encoding)], [...Buffer.from(written, encoding)])
      }
      for (const encoding of ["hex", "base64"] as const) {
        const encoded = node.toString(encoding)
        assert.deepStrictEqual([...PortableBuffer.from(encoded, encoding)], [...Buffer.from(encoded, encoding)])
      }
      assert.strictEqual(PortableBuffer.byteLength(written), Buffer.byteLength(written))
    }))

  it("compares and joins as Node's Buffer does", () =>
    often(() => {
      const [one, other] = [bytes(), bytes()]
      assert.strictEqual(PortableBuffer.compare(one, other), Buffer.compare(one, other))
      assert.isTrue(PortableBuffer.concat([one, other]).equals(Buffer.concat([one, other])))
    }))

  it("deflates for zlib and inflates the output of zlib", async () => {
    for (const size of [0, 1, 70_000]) {
      const content = new Uint8Array(size).map((_, index) => index % 251)
      const packed = await Effect.runPromise(Web.deflate(content))
      assert.deepStrictEqual(new Uint8Array(inflateRawSync(packed)), content)
      const unpacked = await Effect.runPromise(Web.inflate(deflateRawSync(content), size))
      assert.deepStrictEqual(unpacked && new Uint8Array(unpacked), content)
    }
  })

  it("rejects deflated data that is too large, truncated or followed by other bytes", async () => {
    const packed = deflateRawSync(new Uint8Array(1_000_000))
    const behind = Buffer.concat([packed, Buffer.from("x")])
    for (const [input, size] of [
      [packed, 999_999],
      [packed.subarray(0, -2), 1_000_000],
      [behind, 1_000_000]
    ] as const) {
      assert.isUndefined(await Effect.runPromise(Web.inflate(input, size)))
    }
  })
})

const malformed: ReadonlyArray<readonly [what: string, bytes: Uint8Array]> = [
  ["a block of no kind", Uint8Array.of(0xff, 0xff, 0xff, 0xff)],
  ["a stored block whose length is not confirmed", Uint8Array.of(1, 5, 0, 0, 0, 1, 2, 3, 4, 5)],
  ["a distance before the beginning", Uint8Array.of(0x4b, 0x04, 0x12, 0x00)],
  ["nothing", new Uint8Array()]
]

describe("malformed deflate data", () => {
  for (const [name, { inflate, inflatePump: inflating }] of [
    ["Node's zlib", Node],
    ["the streams of the web", Web]
  ] as const) {
    for (const [what, bytes] of malformed) {
      it.effect(`is an error and no defect of ${name}: ${what}`, () =>
        Effect.gen(function* () {
          assert.isUndefined(yield* inflate(bytes, 1000))
          const pump = yield* inflating
          const refused = yield* Effect.flip(Effect.andThen(pump.push(bytes), pump.finish))
          assert.strictEqual(refused._tag, "Broken")
          assert.isAbove(refused.detail.length, 0)
        })
      )
    }
  }
})

describe("values of another realm", () => {
  const elsewhere = runInNewContext(
    "({ bytes: new Uint8Array([1, 2]), words: new Uint16Array(2), regex: /a/i, error: new Error(), liar: { [Symbol.toStringTag]: 'Uint8Array', exec() {} } })"
  )

  it("are recognized as bytes or regular expressions", () => {
    assert.isFalse(elsewhere.bytes instanceof Uint8Array)
    assert.isTrue(isBytes(elsewhere.bytes))
    assert.isTrue(isBytes(Buffer.from("a")))
    assert.isTrue(isRegExp(elsewhere.regex))
    for (const other of [elsewhere.words, elsewhere.error, elsewhere.liar, "a", 1, null, undefined, {}]) {
      assert.isFalse(isBytes(other))
      assert.isFalse(isRegExp(other))
    }
  })

  it("can be written and searched for", async () => {
    const found = Effect.gen(function* () {
      const fs = yield* Filesystem
      yield* fs.writeBytes("a", elsewhere.bytes)
      yield* fs.write("b", "xA")
      return [[...(yield* fs.readBytes("a")).content], (yield* fs.grep(elsewhere.regex)).matches.length]
    })
    assert.deepStrictEqual(await Effect.runPromise(Effect.provide(found, InMemory.layer())), [[1, 2], 1])
  })
})

describe("a defect below InMemory", () => {
  it("stays a defect, and is not reported as a full disk", async () => {
    const { allocUnsafe } = Buffer
    const write = Effect.flatMap(Filesystem, (fs) => fs.write("a", "text")).pipe(Effect.provide(InMemory.layer()))
    Buffer.allocUnsafe = () => {
      throw new TypeError("a defect")
    }
    const exit = await Effect.runPromiseExit(write).finally(() => (Buffer.allocUnsafe = allocUnsafe))
    assert.include(String(exit), "Die(TypeError: a defect)")
  })
})
