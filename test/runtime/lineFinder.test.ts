import { assert, describe, it } from "@effect/vitest"
import { makeLineFinder } from "../../src/runtime/lineFinder.ts"
import { question, random } from "./searched.ts"

/** The bytes before and after the line contain the texts too, and must not matter. */
const [before, after] = ["ab aab import ", " from ab aab"]

const findIn = (source: string, line: string, options: Parameters<typeof question>[1] = {}) => {
  const finder = makeLineFinder(question(source, options))
  assert.isDefined(finder, source)
  const bytes = Buffer.from(before + line + after)
  return finder.find(bytes, before.length, before.length + line.length) ? [finder.matchStart, finder.matchEnd] : undefined
}

const expectedIn = (source: string, line: string) => {
  const match = new RegExp(source, "s").exec(line)
  return match === null ? undefined : [match.index, match.index + match[0].length]
}

describe("makeLineFinder", () => {
  it("finds the match that the expression finds, in random lines", () => {
    const { below: next } = random(7)
    const text = (letters: string, length: number) => Array.from({ length }, () => letters[next(letters.length)]).join("")
    let matched = 0
    for (let round = 0; round < 20_000; round++) {
      const parts = Array.from({ length: 1 + next(4) }, () => text("ab ", next(4)))
      if (parts.join("") === "") continue
      const source = `${next(3) === 0 ? "^" : ""}${parts.join(".*")}${next(3) === 0 ? "$" : ""}`
      const line = text(next(2) === 0 ? "ab" : "ab \r-", next(24))
      const expected = expectedIn(source, line)
      if (expected !== undefined) matched++
      assert.deepStrictEqual(findIn(source, line), expected, JSON.stringify([source, line]))
    }
    assert.isAbove(matched, 1_000)
  })

  it("finds the match of common expressions", () => {
    const lines = [
      "",
      "import a from 'b'",
      " import a from",
      "import from",
      "import  from from ",
      "const x = from",
      "import from\r"
    ]
    for (const source of [
      "^import .* from",
      "import.*from$",
      "^import from$",
      ".*from",
      "import.*",
      "^.*from",
      "from$",
      "^import"
    ])
      for (const line of lines) assert.deepStrictEqual(findIn(source, line), expectedIn(source, line), `${source} in ${line}`)
  })

  it("finds a literal text with special characters", () => {
    assert.deepStrictEqual(findIn("a\\.\\*b", "xx a.*b a.*b", { literal: "a.*b" }), [3, 7])
    assert.isUndefined(findIn("\\^a", "a", { literal: "^a" }))
  })

  it("refuses other expressions", () => {
    for (const source of [
      "a|b",
      "a.b",
      "a.+b",
      "a.*?b",
      "a\\b",
      "(a)",
      "[a]",
      "a{2}",
      "a?",
      "a^b",
      "a$b",
      "ä",
      "a.**",
      "",
      "^",
      ".*"
    ])
      assert.isUndefined(makeLineFinder(question(source)), source)
    assert.isUndefined(makeLineFinder(question("a", { flags: "is" })))
    assert.isUndefined(makeLineFinder(question("a.*b", { flags: "" })))
    assert.isUndefined(makeLineFinder(question("a.*b", { multiline: true })))
    assert.isUndefined(makeLineFinder(question("ä", { literal: "ä" })))
    assert.isUndefined(makeLineFinder(question("a".repeat(65))))
  })
})
