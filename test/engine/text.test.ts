import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { checkPage, decode, encode, lines, page } from "../../src/engine/text.ts"
import type { Fault } from "../../src/model/FsError.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"))
const anyOf = <A extends string>(values: ReadonlyArray<A>) => Arbitrary.schema(Schema.Literals(values))

const notText = (encoding: string, offset: number): Fault => ({ _tag: "NotText", encoding, offset })

/** Returns the number of bytes that the platform's decoder accepts, given one byte at a time, or `undefined` if all are valid. */
const oracle = (content: Uint8Array): number | undefined => {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  let decoded = 0
  try {
    for (const byte of content) decoded += utf8(decoder.decode(Uint8Array.of(byte), { stream: true })).length
    decoder.decode()
    return undefined
  } catch {
    return decoded
  }
}

describe("decode", () => {
  it.prop("restores the encoded text, with its byte order mark", [Arbitrary.schema(Schema.String)], ([text]) => {
    const marked = `\uFEFF${text.toWellFormed()}`
    assert.strictEqual(decode(Uint8Array.from(Buffer.from(marked))), marked)
  })

  // The maximal subparts of the Unicode Standard, tables 3-8 to 3-11, and the bounds of UTF-8.
  const cases: ReadonlyArray<readonly [string, number]> = [
    ["80", 0],
    ["61 FF", 1],
    ["C0 AF E0 80 BF", 0],
    ["61 ED A0 80 62", 1],
    ["F4 91 92 93", 0],
    ["41 C3", 1],
    ["41 E2 82", 1],
    ["41 F0 9F 98", 1],
    ["E2 82 AC E1 80 E2 F0 91 92 F1 BF 41", 3],
    ["F0 90 80 80 F4 8F BF BF F0 8F BF BF", 8],
    ["ED 9F BF EE 80 80 ED BF BF", 6],
    ["C2 80 DF BF C1 BF", 4],
    ["E0 A0 80 EF BF BF E0 9F BF", 6],
    ["C3 C3 A9", 0]
  ]
  it.each(cases)("returns NotText for %s at byte %d", (hex, offset) => {
    assert.deepStrictEqual(decode(bytes(hex)), notText("utf-8", offset))
  })

  const pieces = [
    "61",
    "0A",
    "C3A9",
    "E282AC",
    "F09F9880",
    "EFBBBF",
    "C3",
    "E2",
    "E282",
    "F09F",
    "80",
    "ED",
    "A0",
    "F4",
    "90",
    "FF"
  ]
  it.prop("finds the same first invalid byte as the platform's decoder", [Arbitrary.array(anyOf(pieces))], ([parts]) => {
    const content = bytes(parts.join(""))
    const offset = oracle(content)
    assert.deepStrictEqual(decode(content), offset === undefined ? Buffer.from(content).toString() : notText("utf-8", offset))
  })

  it("finds an invalid byte far from the beginning", () => {
    const content = new Uint8Array(1_000_001).fill(0x61)
    content.set(bytes("F0 9F"), 1_000_000 - 1)
    assert.deepStrictEqual(decode(content), notText("utf-8", 999_999))
  })

  it("accepts other encodings by their labels", () => {
    assert.strictEqual(decode(bytes("E9"), "latin1"), "é")
    assert.strictEqual(decode(bytes("C3 A9"), "UTF8"), "é")
    assert.strictEqual(decode(bytes("FF FE 61 00"), "utf-16le"), "\uFEFFa")
    assert.strictEqual(decode(bytes("FE FF 00 61"), "utf-16be"), "\uFEFFa")
    assert.strictEqual(decode(bytes("82 A0"), "shift_jis"), "あ")
  })

  const others: ReadonlyArray<readonly [encoding: string, hex: string, offset: number]> = [
    ["utf-16le", "61 00 62", 2],
    ["utf-16le", "61 00 00 DC 62 00", 2],
    ["utf-16le", "61 00 00 D8 62 00", 2],
    ["utf-16le", "61 00 3D D8 00 DE 00 D8", 6],
    ["utf-16be", "00 61 D8 00 00 62", 2],
    ["utf-16be", "D8 3D DE", 0],
    ["shift_jis", "41 82 A0 81 FF", 3],
    ["shift_jis", "41 82 A0 82", 3],
    ["gb18030", "41 81 30 81 30 81 30 81", 5],
    ["euc-jp", "A4 A2 8F A1", 2],
    ["iso-2022-jp", "41 1B 24 42 24 22 80 21", 6],
    ["iso-2022-jp", "41 1B 24 42 80 21", 4]
  ]
  it.each(others)("returns NotText, in %s, for %s at byte %d", (encoding, hex, offset) => {
    assert.deepStrictEqual(decode(bytes(hex), encoding), notText(encoding, offset))
  })

  it("finds an invalid byte in a long text of another encoding", () => {
    const content = new Uint8Array(200_000).fill(0x41)
    content.set(bytes("82 A0"), 65_535)
    content.set(bytes("81 FF"), 150_001)
    assert.deepStrictEqual(decode(content, "shift_jis"), notText("shift_jis", 150_001))
  })

  it.each(["utf-9", "", "replacement", "hz-gb-2312", null as never, 8 as never])("refuses the encoding %j", (label) => {
    const fault = decode(utf8("a"), label)
    assert.deepInclude(fault as Fault, { _tag: "InvalidArgument", argument: "encoding" })
  })

  it("rejects more bytes than a string can hold", () => {
    const allowed = 2 ** 29 - 24
    assert.deepStrictEqual(decode(new Uint8Array(allowed + 1)), {
      _tag: "LimitExceeded",
      limit: "maxStringLength",
      allowed,
      actual: allowed + 1
    })
  })
})

describe("encode", () => {
  it.prop("returns UTF-8 that decodes to the same text", [Arbitrary.schema(Schema.String)], ([text]) => {
    const encoded = encode(text.toWellFormed())
    assert.deepStrictEqual(encoded, Uint8Array.from(Buffer.from(text.toWellFormed())))
    assert.strictEqual(decode(encoded as Uint8Array), text.toWellFormed())
  })

  it.each([
    ["a\uD800", "\\ud800 at index 1"],
    ["😀\uDC00b", "\\udc00 at index 2"],
    ["\uD83D\uD83D\uDE00", "\\ud83d at index 0"]
  ])("rejects a lone surrogate and reports its position", (text, where) => {
    const fault = encode(text) as Fault
    assert.deepInclude(fault, { _tag: "InvalidArgument", argument: "content" })
    assert.include(fault["detail"], where)
  })
})

/** Splits a text into lines with their terminators. */
const naive = (text: string): ReadonlyArray<string> => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

const texts = Arbitrary.map(
  Arbitrary.array(anyOf(["a", "bc", "é", "\n", "\n", "\r\n", "\r", "\f", "\v", "\u0085", "\u2028", "\uFEFF", "😀"])),
  (parts) => parts.join("")
)
const counts = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 12 })))

describe("page", () => {
  const whole = (content: string, totalLines: number, endsWithNewline: boolean) => ({
    content,
    totalLines,
    offset: 0,
    limit: totalLines,
    truncated: false,
    endsWithNewline
  })
  it.each([
    ["", whole("", 0, false)],
    ["a", whole("a", 1, false)],
    ["a\n", whole("a", 1, true)],
    ["a\n\n", whole("a\n", 2, true)],
    ["\n", whole("", 1, true)],
    ["a\r\nb\r\n", whole("a\r\nb", 2, true)],
    ["a\rb\n", whole("a\rb", 1, true)],
    ["a\r", whole("a\r", 1, false)],
    ["a\r\r\n", whole("a\r", 1, true)],
    ["a\fb\vc\u0085d\u2028e\u2029f", whole("a\fb\vc\u0085d\u2028e\u2029f", 1, false)]
  ])("returns all lines of %j", (text, expected) => {
    assert.deepStrictEqual(page(text, 0, -1), expected)
    assert.deepStrictEqual(page(text, 0, 2000), expected)
    assert.deepStrictEqual(page(text, 0, Number.POSITIVE_INFINITY), expected)
  })

  const text = "zero\none\r\ntwo\nthree"
  it("returns the requested lines and the offset of the next lines", () => {
    assert.deepStrictEqual(page(text, 1, 2), {
      content: "one\r\ntwo",
      totalLines: 4,
      offset: 1,
      limit: 2,
      truncated: true,
      next: 3,
      endsWithNewline: true
    })
    assert.deepStrictEqual(page(text, 3, 2), {
      content: "three",
      totalLines: 4,
      offset: 3,
      limit: 1,
      truncated: false,
      endsWithNewline: false
    })
  })

  it("returns no lines and the next offset for limit 0", () => {
    assert.deepStrictEqual(page(text, 1, 0), {
      content: "",
      totalLines: 4,
      offset: 1,
      limit: 0,
      truncated: true,
      next: 1,
      endsWithNewline: false
    })
  })

  it.each([4, 5, 1e9, Number.POSITIVE_INFINITY])(
    "returns no lines and reports the end for an offset past the end (%d)",
    (offset) => {
      for (const limit of [-1, 0, 10]) {
        assert.deepStrictEqual(page(text, offset, limit), {
          content: "",
          totalLines: 4,
          offset: 4,
          limit: 0,
          truncated: false,
          endsWithNewline: false
        })
      }
    }
  )

  it.prop("returns the same lines as a split of the whole text", [texts, counts, counts], ([text, offset, limit]) => {
    const all = naive(text)
    const from = Math.min(offset, all.length)
    const window = all.slice(from, from + limit)
    const { content, endsWithNewline, ...rest } = page(text, offset, limit)
    assert.strictEqual(content, window.join("").replace(/\r?\n$/, ""))
    assert.strictEqual(endsWithNewline, window.join("").endsWith("\n"))
    const truncated = from + window.length < all.length
    assert.deepStrictEqual(rest, {
      totalLines: all.length,
      offset: from,
      limit: window.length,
      truncated,
      ...(truncated ? { next: from + window.length } : {})
    })
  })

  it.prop("returns pages that, joined with their line endings, equal the text", [texts, counts], ([text, size]) => {
    let rebuilt = ""
    for (let next: number | undefined = 0; next !== undefined;) {
      const result: ReturnType<typeof page> = page(text, next, size + 1)
      rebuilt += result.content
      if (result.endsWithNewline) rebuilt += text.startsWith("\r\n", rebuilt.length) ? "\r\n" : "\n"
      next = result.next
    }
    assert.strictEqual(rebuilt, text)
  })

  it.each([
    [-1, 1, "offset"],
    [0.5, 1, "offset"],
    [Number.NaN, 1, "offset"],
    ["1" as never, 1, "offset"],
    [0, -2, "limit"],
    [0, 1.5, "limit"],
    [0, Number.NaN, "limit"],
    [0, Number.NEGATIVE_INFINITY, "limit"],
    [0, null as never, "limit"]
  ])("rejects offset %s and limit %s because of the %s", (offset, limit, argument) => {
    assert.deepInclude(checkPage(offset, limit), { _tag: "InvalidArgument", argument })
  })

  it("accepts any whole number, and -1 as the limit", () => {
    for (const offset of [0, 1, 2 ** 40]) for (const limit of [-1, 0, 1, 2 ** 40]) assert.isUndefined(checkPage(offset, limit))
  })
})

/** Splits the bytes into chunks of the given sizes, repeated cyclically. */
const chunked = (content: Uint8Array, sizes: ReadonlyArray<number>): Array<Uint8Array> => {
  const chunks: Array<Uint8Array> = []
  for (let at = 0, i = 0; at < content.length; i++) {
    const size = sizes.length === 0 ? content.length : sizes[i % sizes.length]! + 1
    chunks.push(content.subarray(at, at + size))
    at += size
  }
  return chunks
}

const each = (chunks: ReadonlyArray<Uint8Array>) =>
  Stream.fromArrays(...chunks.map((chunk): Arr.NonEmptyReadonlyArray<Uint8Array> => [chunk]))

const collected = <E>(stream: Stream.Stream<string, E>) =>
  Effect.gen(function* () {
    const found: Array<string> = []
    const end = yield* Effect.result(
      Stream.runForEachArray(stream, (lines) => {
        found.push(...lines)
        return Effect.void
      })
    )
    return { found, fault: end._tag === "Failure" ? end.failure : undefined }
  })

describe("lines", () => {
  it.effect.prop("are the same for any chunk sizes", [texts, Arbitrary.array(counts)], ([text, sizes]) =>
    Effect.gen(function* () {
      const { fault, found } = yield* collected(lines(each(chunked(utf8(text), sizes))))
      assert.isUndefined(fault)
      assert.deepStrictEqual(
        found,
        naive(text).map((line) => line.replace(/\r?\n$/, ""))
      )
    })
  )

  it.effect.prop(
    "fail at the first invalid byte after all complete lines before it, for any chunk sizes",
    [Arbitrary.array(anyOf(["61", "0A", "0D0A", "C3A9", "F09F9880", "C3", "E282", "F09F", "80"])), Arbitrary.array(counts)],
    ([parts, sizes]) =>
      Effect.gen(function* () {
        const content = bytes(parts.join(""))
        const offset = oracle(content)
        const { fault, found } = yield* collected(lines(each(chunked(content, sizes))))
        const good = Buffer.from(content.subarray(0, offset)).toString()
        const whole = naive(good).filter((line) => offset === undefined || line.endsWith("\n"))
        assert.deepStrictEqual(fault, offset === undefined ? undefined : notText("utf-8", offset))
        assert.deepStrictEqual(
          found,
          whole.map((line) => line.replace(/\r?\n$/, ""))
        )
      })
  )

  it.effect("are emitted in one array for each chunk that completes lines", () =>
    Effect.gen(function* () {
      const chunks = ["a\nb\nc", "d", "e\r", "\nf\n", "g"].map(utf8)
      const arrays: Array<ReadonlyArray<string>> = []
      yield* Stream.runForEachArray(lines(each(chunks)), (lines) => Effect.sync(() => arrays.push(lines)))
      assert.deepStrictEqual(arrays, [["a", "b"], ["cde", "f"], ["g"]])
    })
  )

  it.effect("are correct for a chunk larger than the decoder's block", () =>
    Effect.gen(function* () {
      const text = "0123456789é\r\n".repeat(50_000)
      const { found } = yield* collected(lines(Stream.make(utf8(text))))
      assert.strictEqual(found.length, 50_000)
      assert.isTrue(found.every((line) => line === "0123456789é"))
    })
  )

  it.effect("may be longer than many chunks of input", () =>
    Effect.gen(function* () {
      const part = utf8("é".repeat(40_000))
      const { found } = yield* collected(lines(each([...Array.from({ length: 50 }, () => part), utf8("\nend")])))
      assert.deepStrictEqual(
        found.map((line) => line.length),
        [2_000_000, 3]
      )
    })
  )

  it.effect("fail with the failure of the input, after the lines before it", () =>
    Effect.gen(function* () {
      const broken = Stream.concat(each([utf8("a\nb")]), Stream.fail("broken"))
      assert.deepStrictEqual(yield* collected(lines(broken)), { found: ["a"], fault: "broken" })
    })
  )

  it.effect("can be read twice from the same stream", () =>
    Effect.gen(function* () {
      const stream = lines(each([utf8("a\nb")]))
      assert.deepStrictEqual(yield* Stream.runCollect(stream), ["a", "b"])
      assert.deepStrictEqual(yield* Stream.runCollect(stream), ["a", "b"])
    })
  )
})
