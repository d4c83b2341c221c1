import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { createContext, runInContext } from "node:vm"
import { Worker } from "node:worker_threads"
import { code, type Kernel, makePlain, makeSimd } from "../../src/runtime/kernel.ts"
import { assemble } from "./assemble.ts"

const simd = (room?: number): Kernel => {
  const kernel = makeSimd(code, room)
  assert.isDefined(kernel)
  return kernel!
}
const kernels = [
  ["simd", simd],
  ["plain", makePlain]
] as const

type Triple = readonly [line: number, start: number, end: number]

const bytes = (text: string) => Buffer.from(text, "latin1")
const put = (kernel: Kernel, at: number, content: Uint8Array) => kernel.memory().set(content, kernel.data + at)

/** Returns all lines, and continues as long as the space for results is full. */
const all = (kernel: Kernel, from: number, end: number, line = 1): ReadonlyArray<Triple> => {
  const triples: Array<Triple> = []
  for (;;) {
    const count = kernel.lines(from, end, line)
    const found = kernel.found()
    for (let i = 0; i < count; i++) triples.push([found[i * 3]!, found[i * 3 + 1]!, found[i * 3 + 2]!])
    assert.isAtMost(count * 3, found.length)
    if (count * 3 < found.length) return triples
    from = triples.at(-1)![2] + 1
    line = triples.at(-1)![0] + 1
  }
}
const find = (kernel: Kernel, content: Uint8Array, needles: ReadonlyArray<string>, fold = false): ReadonlyArray<Triple> => {
  kernel.needles(needles.map(bytes), fold)
  put(kernel, 0, content)
  return all(kernel, 0, content.length)
}

const lower = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

/** Returns the matching lines without the kernel. */
const oracle = (
  text: string,
  needles: ReadonlyArray<string>,
  fold: boolean,
  from: number,
  first: number
): ReadonlyArray<Triple> => {
  const of = fold ? lower : (part: string) => part
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  let start = from
  return lines.flatMap((line, index): ReadonlyArray<Triple> => {
    const begin = start
    start += line.length + 1
    return needles.some((needle) => of(line).includes(of(needle.slice(0, 64))))
      ? [[first + index, begin, begin + line.length]]
      : []
  })
}

const textOf = (parts: ReadonlyArray<string>, minLength: number, maxLength: number) =>
  Arbitrary.map(Arbitrary.array(Arbitrary.schema(Schema.Literals(parts)), { minLength, maxLength }), (all) => all.join(""))
// Include pairs that differ in the case bit but are no letters, and characters outside ASCII.
const letters = ["a", "a", "b", "A", "B", "@", "`", "[", "{", "\u00c1", "\u00e1", "\0"]
const run = "aaaaaaaaaaaaaaa"
const contents = textOf([...letters, "\n", "\n", "\n\n", run, `${run}b`, `b${run}${run}`, "ab", "aba"], 0, 60)
const wanted = Arbitrary.array(
  Arbitrary.map(
    Arbitrary.all([textOf(letters, 1, 4), textOf([...letters, "\n", run, `${run}b`], 0, 6), Arbitrary.schema(Schema.Boolean)]),
    ([short, long, isLong]) => (isLong ? short + long : short)
  ),
  { minLength: 0, maxLength: 16 }
)

describe("the WebAssembly kernel of searches", () => {
  it("is assembled from its source", async () => {
    assert.strictEqual(code, await assemble())
  })

  it("is undefined if its code cannot be run", () => {
    assert.isUndefined(makeSimd(Buffer.from("no module").toString("base64")))
    const context = createContext({ Buffer })
    runInContext("delete globalThis.WebAssembly", context)
    const make = runInContext(`(${makeSimd.toString()})`, context) as typeof makeSimd
    assert.isUndefined(make(code))
  })

  for (const [name, make] of kernels) {
    describe(name, () => {
      const kernel = make()
      // The space for results is full several times, in the middle of a text and at its end.
      const small = [make(1), make(2), make(3)]

      it.prop(
        "finds the same lines as a split of the text, for any surrounding bytes and any space for results",
        {
          before: textOf(["a", "b", "ab", "\n"], 0, 20),
          content: contents,
          after: textOf(["a", "b", "ab", "\n", run], 0, 4),
          needles: wanted,
          fold: Schema.Boolean,
          first: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 }))
        },
        ({ after, before, content, first, fold, needles }) => {
          const from = before.length
          const end = from + content.length
          const expected = oracle(content, needles, fold, from, first)
          for (const each of [kernel, ...small]) {
            each.needles(needles.map(bytes), fold)
            put(each, 0, bytes(before + content + after))
            assert.deepStrictEqual(all(each, from, end, first), expected)
          }
          assert.strictEqual(kernel.count(from, end), content.split("\n").length - 1)
          assert.strictEqual(kernel.hasNul(from, end), content.includes("\0"))
        },
        { arbitrary: { runs: 1500 } }
      )

      it("finds needles of every length at every position of 130 bytes", () => {
        for (let length = 1; length <= 70; length++) {
          const needle = Array.from({ length }, (_, i) => String.fromCharCode(97 + (i % 7))).join("")
          for (let at = 0; at + length <= 130; at++) {
            const text = `${".".repeat(at)}${needle}${".".repeat(130 - at - length)}`
            assert.deepStrictEqual(find(kernel, bytes(text), [needle]), [[1, 0, 130]])
            assert.deepStrictEqual(find(kernel, bytes(text.slice(0, at + Math.min(length, 64) - 1)), [needle]), [])
          }
        }
      })

      it("compares the first 64 bytes of a needle only", () => {
        const needle = Array.from({ length: 64 }, (_, i) => String.fromCharCode(33 + i))
          .join("")
          .padEnd(255, "z")
        for (const length of [...Array.from({ length: 64 }, (_, i) => i + 1), 65, 255]) {
          kernel.needles([bytes(needle.slice(0, length))], false)
          for (let at = 0; at < Math.min(length, 80); at++) {
            const text = bytes(`x${needle}`)
            text[1 + at] = 0x7e
            put(kernel, 0, text)
            assert.strictEqual(kernel.lines(0, text.length, 1), at < 64 ? 0 : 1, `${at} of ${length}`)
          }
        }
      })

      it("ignores the case of ASCII letters only", () => {
        const every = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).filter((one) => one !== "\n")
        for (const one of every) {
          const found = find(kernel, bytes(every.join("\n")), [one], true).map(([line]) => every[line - 1])
          assert.deepStrictEqual(
            found,
            every.filter((other) => lower(other) === lower(one))
          )
        }
      })

      it("finds needles across the boundaries of its blocks", () => {
        for (const piece of [32_768, 65_536, 131_072]) {
          const size = piece + 200
          for (const needle of ["n", "needle", "n".repeat(64)]) {
            for (let at = piece - 66; at <= piece + 2; at++) {
              const text = Buffer.alloc(size, ".")
              text.write(needle, at)
              assert.deepStrictEqual(find(kernel, text, ["missing", needle, "absent"]), [[1, 0, size]])
              text.fill(10, 0, at)
              assert.deepStrictEqual(find(kernel, text, ["missing", needle, "absent"]), [[at + 1, at, size]])
            }
          }
        }
      })

      it("returns each line once and in order, even if a later block contains an earlier needle", () => {
        const lines = Array.from({ length: 30_000 }, (_, i) =>
          i % 7 === 0 ? "one" : i % 11 === 0 ? "two one" : i % 13 === 0 ? "two" : ""
        )
        const text = lines.join("\n")
        assert.deepStrictEqual(find(kernel, bytes(text), ["two", "one", "three"]), oracle(text, ["one", "two"], false, 0, 1))
      })

      it("returns many thousand lines in one call, and continues after these lines", () => {
        const text = "a\n".repeat(50_000)
        kernel.needles([bytes("a")], false)
        put(kernel, 0, bytes(text))
        assert.isAtLeast(kernel.lines(0, text.length, 1), 16_000)
        assert.deepStrictEqual(
          small.map((each) => each.found().length),
          [3, 6, 9]
        )
        assert.deepStrictEqual(find(kernel, bytes(text), ["a"]), oracle(text, ["a"], false, 0, 1))
      })

      it("never matches a needle with a line feed in its first 64 bytes", () => {
        assert.deepStrictEqual(find(kernel, bytes("a\nb\na"), ["a\nb", "\n", "a\n"]), [])
        assert.deepStrictEqual(find(kernel, bytes("a\nb\na"), ["a\nb", "b"]), [[2, 2, 3]])
        const long = "x".repeat(64)
        assert.deepStrictEqual(find(kernel, bytes(`a\n${long}`), [`${long}\n`]), [[2, 2, 66]])
      })

      it("finds nothing in an empty text and nothing without needles", () => {
        assert.deepStrictEqual(find(kernel, bytes(""), ["a"]), [])
        assert.deepStrictEqual(find(kernel, bytes("a\na"), []), [])
        assert.strictEqual(kernel.lines(1, 0, 1), 0)
        assert.strictEqual(kernel.count(0, 0), 0)
        assert.isFalse(kernel.hasNul(0, 0))
      })

      it("counts line feeds and finds zero bytes at every position of the range, and none outside", () => {
        const size = 200
        for (let at = 0; at < size; at++) {
          const text = Buffer.alloc(size, "x")
          text[at] = 10
          put(kernel, 0, text)
          for (const [from, end] of [
            [at, at + 1],
            [0, size],
            [0, at + 1],
            [at, size]
          ] as const) {
            assert.strictEqual(kernel.count(from, end), 1)
          }
          for (const [from, end] of [
            [0, at],
            [at + 1, size]
          ] as const)
            assert.strictEqual(kernel.count(from, end), 0)
          text[at] = 0
          put(kernel, 0, text)
          for (const [from, end] of [
            [at, at + 1],
            [0, size],
            [0, at + 1],
            [at, size]
          ] as const) {
            assert.isTrue(kernel.hasNul(from, end))
          }
          for (const [from, end] of [
            [0, at],
            [at + 1, size]
          ] as const)
            assert.isFalse(kernel.hasNul(from, end))
        }
      })

      it("counts a text of line feeds only", () => {
        put(kernel, 0, Buffer.alloc(100_000, 10))
        for (const end of [1, 63, 64, 65, 4096, 99_999]) assert.strictEqual(kernel.count(0, end), end)
      })

      it("starts with 4 MiB and uses them to the last byte", () => {
        const one = make()
        const size = one.capacity()
        assert.isAtLeast(size, 4 * 1024 * 1024)
        put(one, size - 8, bytes("\nneedle\0"))
        one.needles([bytes("needle\0")], false)
        assert.deepStrictEqual(all(one, size - 7, size, 5), [[5, size - 7, size]])
        assert.strictEqual(one.count(0, size), 1)
        assert.isTrue(one.hasNul(size - 1, size))
      })

      it("keeps its content and needles when it grows, and refuses to grow to 2 GiB", () => {
        const one = make()
        const size = one.capacity()
        assert.deepStrictEqual(find(one, bytes("a\nneedle"), ["needle"]), [[2, 2, 8]])
        one.grow(size)
        assert.strictEqual(one.capacity(), size)
        one.grow(size * 2 + 1)
        assert.isAtLeast(one.capacity(), size * 2 + 1)
        assert.deepStrictEqual(all(one, 0, 8), [[2, 2, 8]])
        const end = size * 2 + 1
        put(one, end - 7, bytes("\nNeedle"))
        one.needles([bytes("needle")], true)
        assert.deepStrictEqual(all(one, end - 6, end), [[1, end - 6, end]])
        assert.isAtLeast(one.memory().length, one.data + one.capacity())
        for (const bytes of [2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER]) assert.throws(() => one.grow(bytes), RangeError)
        assert.deepStrictEqual(all(one, end - 6, end), [[1, end - 6, end]])
      })

      it("shares no memory with another kernel", () => {
        const [one, two] = [make(), make()]
        assert.deepStrictEqual(find(one, bytes("one"), ["one"]), [[1, 0, 3]])
        assert.deepStrictEqual(find(two, bytes("two"), ["two"]), [[1, 0, 3]])
        assert.deepStrictEqual(all(one, 0, 3), [[1, 0, 3]])
        assert.strictEqual(one.memory().toString("latin1", one.data, one.data + 3), "one")
      })

      it("rejects an empty needle and a 17th needle", () => {
        assert.throws(() => kernel.needles([bytes("a"), bytes("")], false), RangeError)
        assert.throws(
          () =>
            kernel.needles(
              Array.from({ length: 17 }, () => bytes("a")),
              false
            ),
          RangeError
        )
      })

      it("runs in a worker from its own source", async () => {
        const source = name === "simd" ? `(${makeSimd.toString()})(workerData)` : `(${makePlain.toString()})()`
        const worker = new Worker(
          `const { parentPort, workerData } = require("node:worker_threads")
          const kernel = ${source}
          kernel.memory().write("a\\nTHE needle\\n", kernel.data)
          kernel.needles([Buffer.from("Needle")], true)
          parentPort.postMessage([kernel.lines(0, 13, 1), ...kernel.found().subarray(0, 3)])`,
          { eval: true, workerData: code }
        )
        const answer = await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject))
        await worker.terminate()
        assert.deepStrictEqual(answer, [1, 2, 2, 12])
      })
    })
  }
})
