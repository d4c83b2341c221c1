/** Checks the scoreboard: the outcomes of one chapter for memfs, and runs with a defect or an endless law. */
import { assert, describe, it } from "@effect/vitest"
import { laws } from "../../src/testing/Laws.ts"
import { anchorsOf, guide, proseOf, rowsOf, sectionsOf } from "../documentation/markdown.ts"
import { type Check, chapters, checks, randomPrograms } from "./chapters.ts"
import { page } from "./page.ts"
import { type Outcome, score } from "./score.ts"
import { subjects } from "./subjects.ts"

const module = new URL("./subjects.ts", import.meta.url)
const planted = new URL("./planted.ts", import.meta.url)

const named = (...names: ReadonlyArray<string>): ReadonlyArray<Check> =>
  names.map((name) => {
    const found = checks.find((check) => check.name === name)
    assert.isDefined(found, name)
    return found!
  })

const tagsOf = (outcomes: ReadonlyArray<Outcome>): ReadonlyArray<string> => outcomes.map(({ _tag }) => _tag)

const whyOf = (outcome: Outcome | undefined): string => (outcome?._tag === "Broken" ? outcome.why : "")

const written = "bytes are written as they are"
const missing = "realPath below a file is NotFound"

describe("the scoreboard", () => {
  it("has every law once, in more than eight chapters", () => {
    assert.sameMembers(
      checks.map(({ name }) => name),
      [...laws.map(({ name }) => name), randomPrograms.name]
    )
    assert.isAbove(chapters.length, 8)
  })

  it("states for memfs that each law of a chapter is held, broken or not applicable", { timeout: 300_000 }, async () => {
    const [chapter] = chapters
    const outcomes = await score("memfs", { module, checks: chapter!.checks, timeoutSeconds: 30 })
    assert.strictEqual(outcomes.length, chapter!.checks.length)
    assert.isAbove(outcomes.filter(({ _tag }) => _tag === "Held").length, 20)
    const needing = new Set(laws.filter(({ needs }) => needs.includes("case insensitive")).map(({ name }) => name))
    const ofCase = outcomes.filter((_, index) => needing.has(chapter!.checks[index]!.name))
    assert.isAbove(ofCase.length, 3)
    for (const outcome of ofCase) assert.deepStrictEqual(outcome, { _tag: "NotApplicable", missing: ["case insensitive"] })
  })

  it("finds a planted defect", { timeout: 300_000 }, async () => {
    const options = { module: planted, checks: named(written, missing, randomPrograms.name), timeoutSeconds: 30 }
    assert.deepStrictEqual(tagsOf(await score("sound", options)).slice(0, 2), ["Held", "Held"])
    const [first, ...others] = await score("short", options)
    assert.include(whyOf(first), written)
    assert.deepStrictEqual(tagsOf(others), ["Broken", "Broken"])
  })

  it("counts a law as broken if it blocks, never ends, ends its process or throws later", { timeout: 300_000 }, async () => {
    const options = { module: planted, checks: named(written), timeoutSeconds: 1 }
    for (const name of ["endless", "ending", "straying"]) {
      assert.deepStrictEqual(tagsOf(await score(name, options)), ["Broken"], name)
    }
    const checks = named(written, "a path that climbs above the root is InvalidPath in every call except exists")
    assert.deepStrictEqual(tagsOf(await score("blocking", { ...options, checks })), ["Broken", "Broken"])
  })

  it("writes the outcomes by law and by chapter", () => {
    const broken = chapters[1]!.checks[0]!
    const rows = subjects.slice(0, 2).map((subject, column) => ({
      subject,
      outcomes: new Map(
        checks.map(({ name }): [string, Outcome] => [
          name,
          column === 0
            ? { _tag: "Held" }
            : name === broken.name
              ? { _tag: "Broken", why: "" }
              : { _tag: "NotApplicable", missing: [] }
        ])
      )
    }))
    const text = page(rows, "2026-01-02")
    assert.include(text, "2026-01-02")
    const cells = rowsOf(text)
    assert.deepStrictEqual(cells.find(([name]) => name === subjects[1]!.name)!.slice(2, 5), [
      "0",
      "1",
      String(checks.length - 1)
    ])
    assert.deepStrictEqual(cells.filter((row) => row[3] === "**broken**").length, 1)
    assert.deepStrictEqual(cells.filter((row) => row[2] === "held" && row[3] === "-").length, checks.length - 1)
  })
})

describe("the guide scoreboard.md", () => {
  it("has a section for each chapter, and states that this library breaks no law", () => {
    const anchors = anchorsOf(guide("scoreboard"))
    const sections = sectionsOf(guide("scoreboard"))
    for (const { title } of chapters)
      assert.isTrue(
        sections.some((section) => section.title === title),
        title
      )
    assert.isAbove(anchors.size, chapters.length)
    const summary = rowsOf(proseOf(guide("scoreboard"))).slice(0, subjects.length)
    assert.deepStrictEqual(
      summary
        .map(([name, , , broken]) => [name!.replaceAll("`", ""), broken === "0"])
        .filter(([name]) => name === "InMemory" || name === "PosixHost"),
      [
        ["InMemory", true],
        ["PosixHost", true]
      ]
    )
    assert.deepStrictEqual(
      summary.map(([name]) => name!.replaceAll("`", "")),
      subjects.map(({ name }) => name)
    )
  })
})
