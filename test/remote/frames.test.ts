import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import { Bytes, Instant } from "../../src/remote/bytes.ts"
import * as Frames from "../../src/remote/frames.ts"
import { version } from "../../src/remote/protocol.ts"
import { concatenate } from "../../src/runtime/buffer.ts"

const codec = Schema.toCodecJson(Schema.Struct({ name: Schema.String, values: Schema.Array(Bytes) }))
const encode = Schema.encodeSync(codec)
const decode = Schema.decodeUnknownSync(codec)

const parser = (options: Frames.Options = {}) => Frames.make(options).makeUnsafe()

const framed = (message: unknown): Uint8Array => parser().encode(message) as Uint8Array

/** A frame with any header, JSON and content. */
const frame = (
  options: {
    readonly content?: number
    readonly json?: string
    readonly jsonBytes?: number
    readonly magic?: string
    readonly rest?: string
  } = {}
): Uint8Array => {
  const { content = 0, json = "{}", jsonBytes = json.length, magic = `fs${version}\n`, rest = "" } = options
  const header = new Uint8Array(12)
  header.set(new TextEncoder().encode(magic))
  const view = new DataView(header.buffer)
  view.setUint32(4, jsonBytes)
  view.setUint32(8, content)
  return Buffer.concat([header, Buffer.from(json + rest)])
}

const error = (run: () => unknown): Error & { readonly _tag?: string } => {
  try {
    run()
  } catch (error) {
    return error as Error
  }
  throw new Error("the call did not fail")
}

const closes = "MaxBufferSizeExceeded"

const message = {
  name: 'naïve \ud800 {"$bytes":1}',
  values: [new Uint8Array(0), Uint8Array.of(1, 2, 3), new Uint8Array(3000).map((_, index) => index), Uint8Array.of(10)]
}

describe("times in messages", () => {
  const instant = Schema.toCodecJson(Instant)

  it("are encoded as numbers", () => {
    for (const millis of [0, -1, 1_700_000_000_001, 8.64e15]) {
      const time = DateTime.makeUnsafe(millis)
      const encoded = Schema.encodeSync(instant)(time)
      assert.strictEqual(encoded, millis)
      assert.deepStrictEqual(Schema.decodeUnknownSync(instant)(JSON.parse(JSON.stringify(encoded))), time)
    }
  })

  it("are refused if no date can represent them", () => {
    for (const wrong of [8.64e15 + 1, Number.NaN, "2026-01-01", null]) {
      assert.throws(() => Schema.decodeUnknownSync(instant)(wrong))
    }
  })
})

describe("frames", () => {
  it("carry texts and bytes, no matter how a transport divides them", () => {
    const bytes = Uint8Array.of(...framed(encode(message)), ...framed({ _tag: "Ping" }), ...framed(encode(message)))
    for (const size of [1, 5, 11, 12, 13, 100, 3000, bytes.length]) {
      const reader = parser()
      const read: Array<unknown> = []
      for (let at = 0; at < bytes.length; at += size) read.push(...reader.decode(bytes.subarray(at, at + size)))
      assert.lengthOf(read, 3)
      assert.deepStrictEqual(decode(read[0]), message)
      assert.deepStrictEqual(read[1], { _tag: "Ping" })
      assert.deepStrictEqual(decode(read[2]), message)
    }
  })

  it("carry several messages of a batch", () => {
    const bytes = parser().encode([{ id: 1 }, { id: 2 }]) as Uint8Array
    assert.deepStrictEqual(parser().decode(bytes), [{ id: 1 }, { id: 2 }])
    assert.isUndefined(parser().encode([]))
  })

  it("carry bytes unchanged, whereas other serializations encode bytes as Base64", () => {
    const bytes = new Uint8Array(1000)
    assert.isBelow(framed(encode({ name: "", values: [bytes] })).length, 1100)
    const json = JSON.stringify(encode({ name: "", values: [Uint8Array.of(1, 2, 3)] }))
    assert.strictEqual(json, '{"name":"","values":["AQID"]}')
    assert.deepStrictEqual(decode(JSON.parse(json)).values, [Uint8Array.of(1, 2, 3)])
    assert.throws(() => decode({ name: "", values: ["A*"] }))
    assert.throws(() => decode({ name: "", values: [7] }))
  })

  it("with short content keep no other message in memory", () => {
    const both = Uint8Array.of(...framed(encode(message)), ...framed({ padding: "x".repeat(100_000) }))
    for (const received of [both, Buffer.from(both.buffer)]) {
      const [first] = parser().decode(received)
      const { values } = decode(first)
      for (const { buffer } of values) assert.isBelow(buffer.byteLength, 4000)
    }
  })

  it("release received bytes once they are copied, if nobody else uses them", () => {
    const long = new Uint8Array(200_000).map((_, index) => index)
    const messages = [message, { name: "a", values: [long] }, message]
    const bytes = concatenate(messages.map((message) => framed(encode(message))))
    for (const ownsInput of [true, false]) {
      const reader = parser({ ownsInput })
      const pieces = [0, 65_536, 131_072, 196_608].map((at) => Buffer.from(bytes.slice(at, at + 65_536).buffer))
      const read = pieces.flatMap((piece) => reader.decode(piece))
      assert.deepStrictEqual(
        read.map((message) => decode(message)),
        messages.map((message) => decode(encode(message)))
      )
      assert.deepStrictEqual(
        pieces.slice(0, 3).map(({ length }) => length),
        ownsInput ? [0, 0, 0] : [65_536, 65_536, 65_536]
      )
    }
  })

  it("release no bytes that a message views, or that are a part of a larger array", () => {
    const long = new Uint8Array(200_000).map((_, index) => index)
    const whole = framed(encode({ name: "a", values: [long] }))
    const reader = parser({ ownsInput: true })
    const [viewing] = reader.decode(whole)
    reader.decode(whole.slice(0, 20))
    assert.deepStrictEqual(decode(viewing), { name: "a", values: [long] })
    const larger = concatenate([whole.subarray(20), whole])
    const [divided] = reader.decode(larger.subarray(0, whole.length - 20))
    assert.deepStrictEqual(decode(divided), { name: "a", values: [long] })
    assert.strictEqual(larger.length, 2 * whole.length - 20)
  })

  it("are refused if a message refers to bytes outside its content", () => {
    for (const place of ["5", "-1", "0.5", "1e300", "[]", "null", '"4"', "{}"]) {
      const bytes = frame({ json: `{"a":{"$bytes":${place}}}`, content: 4, rest: "abcd" })
      assert.include(error(() => parser().decode(bytes)).message, "bytes that it does not contain", place)
    }
    const bytes = frame({ json: '{"a":{"$bytes":3},"__proto__":{"$bytes":1}}', content: 4, rest: "abcd" })
    const [found] = parser().decode(bytes) as [{ a: Uint8Array }]
    assert.deepStrictEqual(found.a, new TextEncoder().encode("abc"))
    assert.strictEqual(Object.getPrototypeOf(found), Object.prototype)
    const twice = frame({ json: '[{"$bytes":3},{"$bytes":3}]', content: 4, rest: "abcd" })
    assert.include(error(() => parser().decode(twice)).message, "bytes that it does not contain")
  })

  it("with deeply nested messages do not overflow the stack", () => {
    const depth = 100_000
    const json = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`
    assert.lengthOf(parser().decode(frame({ json, content: 1, rest: "x" })), 1)
  })

  it("that announce too many bytes are refused immediately, with the error that closes a connection", () => {
    for (const [jsonBytes, content] of [
      [0xffff_ffff, 0xffff_ffff],
      [2, 0xffff_ffff],
      [Frames.maxFrameBytes, 0],
      [2, Frames.maxFrameBytes]
    ] as const) {
      const reader = parser()
      const found = error(() => reader.decode(frame({ jsonBytes, content })))
      assert.strictEqual(found._tag, closes)
      assert.include(found.message, "bytes")
      assert.strictEqual(error(() => reader.decode(framed({})))._tag, closes)
    }
    const small = parser({ maxBytes: 1000 })
    assert.strictEqual(error(() => small.decode(framed({ text: "x".repeat(1000) })))._tag, closes)
  })

  it("reserve little memory for an announced length", () => {
    const before = process.memoryUsage().arrayBuffers
    const readers = Array.from({ length: 100 }, () => parser())
    const bytes = frame({ content: Frames.maxFrameBytes - 100 })
    for (const reader of readers) assert.deepStrictEqual(reader.decode(bytes), [])
    assert.isBelow(process.memoryUsage().arrayBuffers - before, 100 * 64 * 1024)
    assert.lengthOf(readers, 100)
  })

  it("that arrive byte by byte take bounded memory", () => {
    const reader = parser()
    const size = 200_000
    const bytes = frame({ content: size, rest: "x".repeat(size) })
    const before = process.memoryUsage()
    for (let at = 0; at < bytes.length - 1; at++) reader.decode(bytes.slice(at, at + 1))
    globalThis.gc?.()
    const { arrayBuffers } = process.memoryUsage()
    assert.isBelow(arrayBuffers - before.arrayBuffers, 16 * 1024 * 1024)
    assert.lengthOf(reader.decode(bytes.subarray(-1)), 1)
  })

  it("that do not contain JSON fail, and nothing is read after them", () => {
    for (const bytes of [frame({ json: "{" }), frame({ json: "" }), frame({ magic: "GET " }), frame({ magic: "fs" })]) {
      const reader = parser()
      const first = error(() => reader.decode(bytes))
      assert.notStrictEqual(first._tag, closes)
      const second = error(() => reader.decode(framed({})))
      assert.strictEqual(second._tag, closes)
      assert.strictEqual(second.message, first.message)
    }
  })

  it("show another version of the protocol by their first bytes", () => {
    assert.include(error(() => parser().decode(frame({ magic: "fs9\n" }))).message, "version 9")
    const line = new TextEncoder().encode('{"_tag":"Defect"')
    assert.include(error(() => parser().decode(line)).message, "version 1")
    assert.include(
      error(() => parser().decode(new TextEncoder().encode("HTTP/1.1 400"))).message,
      "does not speak the protocol"
    )
  })

  it("are not needed: a server answers lines of JSON with lines of JSON, and refuses a line above maxBytes", () => {
    const server = parser({ acceptsLines: true })
    assert.deepStrictEqual(server.decode(new TextEncoder().encode('{"_tag":"Pi')), [])
    assert.deepStrictEqual(server.decode(new TextEncoder().encode('ng"}\n')), [{ _tag: "Ping" }])
    assert.strictEqual(
      server.encode(encode({ name: "a", values: [Uint8Array.of(1, 2, 3)] })),
      '{"name":"a","values":["AQID"]}\n'
    )
    const bounded = parser({ acceptsLines: true, maxBytes: 100 })
    assert.strictEqual(error(() => bounded.decode(new TextEncoder().encode(`{${"x".repeat(200)}`)))._tag, closes)
  })
})
