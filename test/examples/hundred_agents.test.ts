import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { readFileSync } from "node:fs"
import { Repository, Stores } from "../../src/index.ts"
import { fencesOf } from "../documentation/markdown.ts"
import { inMemory } from "../scratch.ts"
import { editTwo, prepare, check } from "./hundredAgents.ts"
import { runAgents } from "./hundred_agents.ts"

describe("a hundred agents on forks of one workspace", () => {
  it.live("merge the changes without a conflict and report the conflicts, on stores in a directory", () =>
    Effect.gen(function* () {
      yield* prepare
      const report = yield* runAgents("team", 100, editTwo, (workspace) => Repository.layer({ workspace }))
      yield* check(report, 100)
    }).pipe(Effect.provide(Layer.unwrap(Effect.sync(() => Stores.layerDirectory({ directory: `${inMemory()}/store` })))))
  )

  it("are the program of the guide, in at most 60 lines", () => {
    const source = readFileSync(new URL("hundred_agents.ts", import.meta.url), "utf8")
    const program = source.replace("../../src/index.ts", "fs-algebra")
    assert.isAtMost(source.trimEnd().split("\n").length, 60)
    assert.isTrue(fencesOf("src/guides/repository.md").some(({ body }) => body.trim() === program.trim()))
  })
})
