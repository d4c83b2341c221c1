import { assert, describe, it } from "@effect/vitest"
import * as humanise from "../../src/cli/humanise.ts"
import { editDistance } from "../../src/engine/nearest.ts"
import { printableLines, printableName, printableText, quote } from "../../src/cli/look.ts"
import { pathInDirectory } from "../../src/cli/commands/entries.ts"

describe("the printable form of a name or text", () => {
  it("contains harmless characters unchanged", () => {
    const harmless = "plain, ünïcödé, 日本語, 👩‍👩‍👧, é, ~"
    assert.strictEqual(printableName(harmless), harmless)
    assert.strictEqual(printableText(`${harmless}\t\n`), `${harmless}\t\n`)
  })
  it("escapes control characters and characters that change the reading direction", () => {
    for (let code = 0; code < 0x20; code++)
      assert.notInclude(printableName(String.fromCharCode(code)), String.fromCharCode(code))
    for (let code = 0x7f; code < 0xa0; code++)
      assert.strictEqual(printableName(String.fromCharCode(code)), `\\x${code.toString(16)}`)
    assert.strictEqual(printableName("a\u202egnp.exe"), "a\\u{202e}gnp.exe")
    assert.strictEqual(printableName("a\nb"), "a\\nb")
  })
  it("has a line feed for a CRLF that two chunks split, and escapes a lone CR", () => {
    const safe = printableLines()
    assert.strictEqual(safe("a\r", false) + safe("\nb\r", false) + safe("c", false) + safe("\r", true), "a\nb\\rc\\r")
  })
})

describe("humanise", () => {
  it("prints bytes with at most three digits and a unit", () => {
    const cases = [
      [0, "0 B"],
      [999, "999 B"],
      [1000, "1.0 KiB"],
      [1536, "1.5 KiB"],
      [10 * 1024, "10 KiB"],
      [1023 * 1024, "1.0 MiB"],
      [5 * 1024 ** 3, "5.0 GiB"]
    ] as const
    for (const [count, text] of cases) assert.strictEqual(humanise.bytes(count), text)
  })
  it("groups digits, counts nouns, scales durations and shows the letters of a mode", () => {
    assert.strictEqual(humanise.whole(1234567), "1,234,567")
    assert.strictEqual(humanise.count(1, "directory"), "1 directory")
    assert.strictEqual(humanise.count(0, "match"), "0 matches")
    assert.strictEqual(humanise.duration(740_000n), "0.74 ms")
    assert.strictEqual(humanise.duration(1_234_000n), "1.2 ms")
    assert.strictEqual(humanise.duration(12_000_000n), "12 ms")
    assert.strictEqual(humanise.duration(3_400_000_000n), "3.4 s")
    assert.strictEqual(humanise.duration(125_000_000_000n), "2 min 5 s")
    assert.strictEqual(humanise.duration(119_700_000_000n), "2 min 0 s")
    assert.strictEqual(humanise.duration(59_970_000_000n), "1 min 0 s")
    assert.strictEqual(humanise.mode(0o754), "rwxr-xr--")
  })
})

describe("quote", () => {
  it("quotes words that a shell would interpret", () => {
    assert.strictEqual(quote("a/b-c.txt"), "a/b-c.txt")
    assert.strictEqual(quote(""), "''")
    assert.strictEqual(quote("a b$(x)"), "'a b$(x)'")
    assert.strictEqual(quote("it's"), String.raw`'it'\''s'`)
  })
})

describe("pathInDirectory", () => {
  it("appends the last name of a path to a directory, and ignores slashes at the ends", () => {
    assert.strictEqual(pathInDirectory("a/b.txt", "c/"), "c/b.txt")
    assert.strictEqual(pathInDirectory("a/b/", "c"), "c/b")
    assert.strictEqual(pathInDirectory("a/b", "."), "b")
    assert.strictEqual(pathInDirectory("a/b", "./"), "b")
    assert.strictEqual(pathInDirectory("a/b", "/"), "/b")
  })
})

describe("editDistance", () => {
  it("counts insertions, deletions, substitutions and swaps", () => {
    const cases = [
      ["", "abc", 3],
      ["abc", "abc", 0],
      ["abc", "acb", 1],
      ["kitten", "sitting", 3],
      ["README", "REAMDE", 1]
    ] as const
    for (const [a, b, distance] of cases) assert.strictEqual(editDistance(a, b), distance, `${a} ${b}`)
  })
})
