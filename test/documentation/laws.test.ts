/** Checks that laws.md explains the id of every law, and no other id. */
import { assert, describe, it } from "@effect/vitest"
import { laws } from "../../src/testing/Laws.ts"
import { policyLaws } from "../../src/testing/Policies.ts"
import { rowsOf, textOf } from "./markdown.ts"

const rows = rowsOf(textOf("src/guides/laws.md"))
const all = [...laws, ...policyLaws.map(({ law }) => law)]

describe("the guide laws.md", () => {
  it("lists the id of each law once", () => {
    const used = new Set(all.flatMap(({ ref }) => ref.split(", ")))
    assert.deepStrictEqual(rows.map(([id]) => id!).sort(), [...used].sort())
  })

  it("gives each id a title and a meaning", () => {
    for (const [id, title, meaning] of rows) {
      assert.match(title ?? "", /^\w/, id)
      assert.match(meaning ?? "", /^.+\.$/, id)
    }
  })
})
