/**
 * Runs the laws, random programs and some facts in a Windows Node under Wine (engine.ts), and compares the results with
 * those in this process. wine.ts lists the defects of Wine. Sharing and reserved names, which Wine does not enforce,
 * are tested on a simulated disk (test/backends/windows).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { laws } from "../../src/testing/Laws.ts"
import { policyLaws } from "../../src/testing/Policies.ts"
import { caseless, posixHost } from "../conformance/filesystems.ts"
import { bundle } from "./bundle.ts"
import { asWindows, hasWindowsNode, run, saysNoWindowsNode, settled, workplace } from "./engine.ts"
import { facts } from "./facts.ts"
import { abilitiesOf, drawn, type Job, judge, key, type Outcome, read } from "./outcome.ts"
import { toolRows } from "./tools.ts"
import { shortcomings } from "./wine.ts"

saysNoWindowsNode("the laws under a Windows Node")

const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"
const programs = isSoak ? 2000 : 30
const seed = Math.floor(Math.random() * 2 ** 31)
const agrees = `${programs} random programs agree with the model`
const timeoutMillis = isSoak ? 7_200_000 : 600_000

/** The parts of each Windows Node, in order; the two Nodes run at the same time. */
const runs: ReadonlyArray<ReadonlyArray<string>> = [
  ["Wine", "WindowsHost, its abilities", "WindowsHost"],
  ["InMemory", "InMemory, programs", "WindowsHost, its options", "facts", "WindowsHost, programs", "WindowsHost, tools"]
]

const optionLaws = policyLaws.filter(({ options }) => options.symlinks === undefined).map(({ law }) => law)

describe.runIf(hasWindowsNode)("in a Windows Node", () => {
  let outcomes: ReadonlyMap<string, Outcome> = new Map()
  let ends: ReadonlyArray<string> = ["it was not started"]
  let clear = (): void => {}

  beforeAll(async () => {
    const place = workplace()
    clear = () => {
      settled()
      rmSync(place, { recursive: true, force: true })
    }
    const program = join(place, "conformance.mjs")
    await bundle("conformance.entry.ts", program)
    const outOf = (i: number): string => join(place, `${i}.jsonl`)
    const ended = await Promise.all(
      runs.map((parts, i) => {
        const job: Job = {
          parts,
          directory: asWindows(join(place, `${i}`)),
          programs,
          seed,
          out: asWindows(outOf(i)),
          parent: process.pid
        }
        const file = join(place, `${i}.json`)
        writeFileSync(file, JSON.stringify(job))
        return run(program, [asWindows(file)], join(place, `${i}.log`), timeoutMillis)
      })
    )
    ends = ended.filter((end) => end !== undefined)
    outcomes = new Map(runs.flatMap((_, i) => (existsSync(outOf(i)) ? [...read(readFileSync(outOf(i), "utf8"))] : [])))
  }, timeoutMillis)

  afterAll(() => clear())

  /** Returns the outcome of a law. Throws with the end of the program when there is no outcome. */
  const outcome = (of: string, name: string): Outcome => {
    const found = outcomes.get(key(of, name))
    if (found === undefined || found.verdict === "Begun") {
      throw new Error(`${found === undefined ? "not begun" : "not ended"}: ${ends.join("\n")}`)
    }
    return found
  }

  const reports = (of: string, name: string, claim = name): void => {
    it(claim, (context) => {
      const { detail, verdict } = outcome(of, name)
      if (verdict === "NotApplicable") context.skip(`not applicable, needs: ${detail}`)
      if (verdict === "Broken") throw new Error(detail)
    })
  }

  it("every program runs to its end", () => assert.deepStrictEqual(ends, []))

  describe("a case-insensitive InMemory", () => {
    for (const { name } of laws) reports("InMemory", name)
    reports("InMemory", "programs", agrees)
  })

  describe("WindowsHost", () => {
    for (const { name } of laws) reports("WindowsHost", name)
    reports("WindowsHost", "programs", agrees)
  })

  describe("the options of WindowsHost", () => {
    for (const { name } of optionLaws) reports("WindowsHost, its options", name)
  })

  describe("tools on WindowsHost", () => {
    it("cover more than 30 rows of the tool tables", () => assert.isAbove(toolRows.length, 30))
    for (const { name } of toolRows) reports("WindowsHost, tools", name)
  })

  describe("facts about paths and roots on Windows", () => {
    for (const { name } of facts) reports("facts", name)
  })

  describe("Wine", () => {
    for (const { follows, name } of shortcomings) {
      it(`still has the defect: ${name} (so ${follows})`, () => assert.strictEqual(outcome("Wine", name).detail, "true"))
    }
  })

  describe("compared with this process", () => {
    const here = async (of: string, layer: Layer.Layer<Filesystem, unknown>): Promise<ReadonlyMap<string, Outcome>> => {
      const found = new Map<string, Outcome>()
      for (const law of laws) found.set(law.name, await judge(of, law, layer))
      return found
    }

    /** Returns the abilities that only one of the two filesystems has. */
    const unlike = async (): Promise<ReadonlyArray<string>> => {
      const there = outcome("WindowsHost", "abilities").detail.split(", ")
      const here = await Effect.runPromise(abilitiesOf(posixHost))
      return [
        ...there.filter((ability) => !here.includes(ability)),
        ...here.filter((ability) => !there.includes(ability))
      ].sort()
    }

    it("InMemory keeps the same laws, and skips the same laws", async () => {
      const expected = await here("InMemory", caseless)
      for (const { name } of laws) assert.deepStrictEqual(outcome("InMemory", name), expected.get(name))
    })

    it("WindowsHost has the abilities of PosixHost, except for the known differences of Windows and Wine", async () => {
      assert.deepStrictEqual(await unlike(), [
        "absolute links",
        "absolute texts",
        "attributes",
        "case insensitive",
        "case sensitive",
        "links",
        "names ending in dots or spaces",
        "no attributes",
        "no links",
        "no names ending in dots or spaces",
        "no watch",
        "others",
        "times to the millisecond",
        "watch"
      ])
    })

    it("WindowsHost keeps the same laws as PosixHost where both have the needed abilities", async () => {
      const expected = await here("PosixHost", posixHost)
      const differing = await unlike()
      for (const { name, needs } of laws) {
        if (needs.some((ability) => differing.includes(ability))) continue
        assert.strictEqual(outcome("WindowsHost", name).verdict, expected.get(name)!.verdict, name)
      }
    })

    it("the random programs are the same", async () => {
      assert.strictEqual(outcome("WindowsHost", "programs drawn").detail, await drawn(programs, seed))
    })
  })
})
