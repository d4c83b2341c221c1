/** Checks that the tables of abilities match the filesystems. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import { has, needs } from "../faults/ground.ts"
import { fill, tables } from "./abilities.ts"
import { guide, table, textOf } from "./markdown.ts"

const asked = existsSync("/proc/self/fd") && needs("the tables of abilities", () => has("git"), "apt-get install git")

describe("the table of abilities", () => {
  it.live.skipIf(!asked)("equals the abilities that the filesystems have", () =>
    Effect.map(tables, (found) => assert.strictEqual(fill(textOf(guide("abilities")), found), textOf(guide("abilities"))))
  )

  it("contains at least 13 filesystems, and the right confinement of WindowsHost and PosixHost", () => {
    const rows = new Map(table(textOf(guide("abilities")), "filesystem").map(([name, ...cells]) => [name, cells]))
    assert.isAbove(rows.size, 12)
    const [, links, , , , confinement] = rows.get("`WindowsHost`")!
    assert.deepStrictEqual([links, confinement], ["yes", "best-effort"])
    assert.deepStrictEqual(rows.get("`PosixHost`, Linux")!.slice(5, 6), ["race-free"])
  })

  it("replaces the old table in a guide, and a guide without markers is refused", () => {
    const guide = "<!-- a: by test/documentation/make.ts -->\n\n| old |\n\n<!-- end -->"
    assert.include(fill(guide, { a: "| new |\n" }), "| new |")
    assert.throws(() => fill("no place", { a: "| new |\n" }))
  })
})
