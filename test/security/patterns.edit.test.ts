/**
 * The explanation of a failed edit, and the diff of an edit, take time in proportion to the file. Some tests count
 * steps. The others run in a separate process under a watchdog, with inputs for which a slower algorithm takes hours.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { applyEditsAtOnce, type Edit } from "../../src/engine/edit.ts"
import { guarded } from "../interruption/guarded.ts"

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const fault = (text: string, edit: Partial<Edit>): string => {
  const edited = applyEditsAtOnce(utf8(text), [{ oldText: "", newText: "", ...edit }], "f")
  assert.isTrue("_tag" in edited, "the edit succeeded")
  return String((edited as { readonly detail?: string }).detail)
}

/**
 * Measures the input of `normalize` in UTF-16 units: the total, and the longest run of marks, which ICU sorts in quadratic
 * time.
 */
const normalized = (run: () => unknown): { readonly longest: number; readonly total: number } => {
  const text: { normalize: (form?: string) => string } = String.prototype
  const original = text.normalize
  let longest = 0
  let total = 0
  text.normalize = function (this: string, form?: string) {
    total += this.length
    for (const [run] of this.matchAll(/[\p{M}\uff9e\uff9f]+/gu)) longest = Math.max(longest, run.length)
    return original.call(this, form)
  }
  try {
    run()
  } finally {
    text.normalize = original
  }
  return { longest, total }
}

describe("a long text to find", () => {
  const unit = Schema.Literals(["a", "b", "é", "\n"])
  const pieces = Schema.Literals(["whole", "without its end", "without its beginning", "its end", "word", "a"])
  it.prop(
    "is found correctly, however repetitive it is",
    [
      Arbitrary.array(Arbitrary.schema(unit), { minLength: 1, maxLength: 4 }),
      Schema.Int,
      Arbitrary.schema(unit),
      Arbitrary.array(Arbitrary.schema(pieces))
    ],
    ([units, seed, last, parts]) => {
      const word = units.join("")
      const oldText = word.repeat(Math.ceil((200 + (Math.abs(seed) % 400)) / word.length)) + last
      const half = Math.floor(oldText.length / 2)
      const put = {
        whole: oldText,
        "without its end": oldText.slice(0, -1),
        "without its beginning": oldText.slice(1),
        "its end": oldText.slice(half),
        word,
        a: "a"
      }
      const some = parts.map((part) => put[part]).join("")
      for (const [text, crlf] of [some, some + oldText].flatMap((text) => [[text, false] as const, [text, true] as const])) {
        const written = (text: string): string => (crlf ? text.replaceAll("\n", "\r\n") : text)
        const edited = applyEditsAtOnce(utf8(written(text)), [{ oldText, newText: "new", match: "all" }], "f")
        if (!text.includes(oldText)) assert.strictEqual("_tag" in edited && edited._tag, "InvalidArgument")
        else if ("_tag" in edited) assert.fail(JSON.stringify(edited))
        else assert.strictEqual(Buffer.from(edited.bytes).toString(), written(text.replaceAll(oldText, "new")))
      }
    }
  )
})

describe("the explanation of a failed edit is bounded:", () => {
  it("it names at most ten of many equal lines", () => {
    const text = "the same line again\n".repeat(52_429)
    assert.match(
      fault(text, { oldText: "the same line again\n" }),
      /occurs 52429 times, on lines 1, 2, .* 10 and in 52419 more/
    )
    assert.isBelow(fault(text, { oldText: "the same line againX\n" }).length, 1000)
    assert.isBelow(fault(text, { oldText: "the same line again \n".repeat(50_000) }).length, 1500)
  })

  it("it compares a part of 100,000 different lines, and says so", () => {
    const lines = Array.from({ length: 100_000 }, (_, i) => `line ${(i * 7919) % 100_003}`)
    const said = fault(lines.join("\n"), { oldText: lines.toReversed().join("\n") })
    assert.match(said, /only compared: lines \d+-\d+ of this large file and lines 1-200 of its 100000/)
    assert.isBelow(said.length, 1500)
  })

  it("it shows only a short piece of a line of a megabyte", () => {
    for (const unit of ["a", "ab", " ", "\t", "\r", "é", "\u{1f600}", "\u00ad", "1 | "]) {
      const text = unit.repeat(1024 * 1024)
      const said = fault(text, { oldText: `${unit.repeat(1000)}!` })
      assert.isBelow(said.length, 2500, JSON.stringify(unit))
    }
  })

  it("it never normalises a long run of combining marks, which takes quadratic time", () => {
    for (const two of ["\u0301\u0323", "\u0301\uff9e"]) {
      const marks = two.repeat(2000)
      const { longest, total } = normalized(() => fault(`a${marks}\n`, { oldText: `b${marks}!` }))
      assert.isBelow(longest, 1000)
      assert.isAbove(total, 0)
    }
  })

  it("it compares similar characters beside a long run of combining marks, and the run itself", () => {
    const marks = "\u0301".repeat(2000)
    assert.match(fault(`a “b” a${marks} “c”\n`, { oldText: `a "b" a${marks} "c"\n` }), /only in characters that look alike/)
    assert.notMatch(fault(`a${marks}\n`, { oldText: `a${marks}\u0301\n` }), /look alike/)
  })

  it("it compares a part of a text far longer than the file, and says so", () => {
    const oldText = "\ufdfa".repeat(2_000_000)
    assert.isBelow(normalized(() => fault("y\n", { oldText })).total, 1_000_000)
    assert.match(fault("y\n", { oldText }), /only compared: the beginning of line 1 of its 1\)/)
    assert.match(fault("y\n", { oldText: `${oldText}\n`.repeat(2) }), /only compared: the beginning of line 1 of its 3\)/)
  })

  const cases: ReadonlyArray<readonly [name: string, text: string, oldText: string]> = [
    [
      "with combining marks that are out of order",
      '"a" + "\\u0301\\u0323".repeat(1_000_000)',
      '"b" + "\\u0323\\u0301".repeat(1000)'
    ],
    [
      "with a searched text that almost occurs at every position",
      'near(1_000_000) + "a".repeat(2_000_000)',
      '"x" + "a".repeat(1_000_000)'
    ],
    ["with a file of white space", '" ".repeat(2_000_000) + "x"', '"y" + " ".repeat(1_000_000) + "z"'],
    ["with very long line numbers", '(" ".repeat(1_000_000) + "1").repeat(2)', '"1".repeat(1_000_000) + "x"'],
    ["with a file of line endings", '"\\r\\n".repeat(1_000_000)', '"\\n".repeat(500_000) + "x"'],
    ["with carriage returns that end no line", '"\\r".repeat(2_000_000)', '"\\r\\n".repeat(100_000)'],
    ["with lines of brackets", '"}\\n".repeat(1_000_000)', '"}\\n".repeat(150) + "{\\n".repeat(150)'],
    ["with ligatures that become long", '"\\uFDFA".repeat(1_000_000)', '"x\\uFDFA".repeat(100)']
  ]
  for (const [name, text, oldText] of cases) {
    it.live(name, () =>
      Effect.gen(function* () {
        const { error, isStuck, out } = yield* guarded(
          `
          const near = (size) => ("x" + "a".repeat(size - 2) + "y").repeat(1) + ("x" + "a".repeat(200) + "y").repeat(100_000)
          const fs = await make({ f: ${text} })
          say(await run(told(fs.edit("f", { oldText: ${oldText}, newText: "new" }).pipe(Effect.provideService(Limits, unlimited)))))
        `,
          { heap: 4096, seconds: 30 }
        )
        assert.isFalse(isStuck, "did not end")
        assert.strictEqual(out, '"InvalidArgument"', error)
      })
    )
  }
})

describe("the diff of an edit is bounded:", () => {
  const cases: ReadonlyArray<readonly [name: string, text: string, edit: string]> = [
    [
      "when a megabyte of one line becomes 100,000 different ones",
      '"the same\\n".repeat(120_000)',
      "{ oldText: text, newText: lines(100_000, 7919) }"
    ],
    [
      "when 100,000 different lines change their order",
      "lines(100_000, 1)",
      "{ oldText: text, newText: lines(100_000, 7919) }"
    ],
    ["when every line changes", '"the same\\n".repeat(300_000)', '{ oldText: "same", newText: "other", match: "all" }'],
    [
      "with many large changes, each of which is small enough alone",
      '(lines(1500, 1) + "sep\\n").repeat(600)',
      '{ oldText: lines(1500, 1), newText: lines(1500, 7), match: "all" }'
    ],
    ["in one line of 8 MB", '"ab".repeat(4_000_000)', '{ oldText: "a".repeat(1) + "b", newText: "c", match: "first" }']
  ]
  for (const [name, text, edit] of cases) {
    it.live(name, () =>
      Effect.gen(function* () {
        const { error, isStuck, out } = yield* guarded(
          `
          const lines = (count, step) => Array.from({ length: count }, (_, i) => "line " + ((i * step) % count) + "\\n").join("")
          const text = ${text}
          const fs = await make({ f: text })
          const edited = await run(fs.edit("f", ${edit}).pipe(Effect.provideService(Limits, unlimited)))
          say(edited.replacements > 0 && edited.diff.length < 4 * text.length + 4_000_000)
        `,
          { heap: 4096, seconds: 30 }
        )
        assert.isFalse(isStuck, "did not end")
        assert.strictEqual(out, "true", error)
      })
    )
  }
})
