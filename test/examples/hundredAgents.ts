/** The work of the agents of hundred_agents.ts, and a check of its result. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Filesystem, Repository } from "../../src/index.ts"

const shared = "# Plan\n"

/** Makes the workspace with a file that several agents change. */
export const prepare = Filesystem.Filesystem.use((fs) => fs.write("plan.md", shared)).pipe(
  Effect.provide(Repository.layer({ workspace: "team" }))
)

/** Writes a file of the agent's own. Every tenth agent also changes the common file. */
export const editTwo = (n: number) =>
  Filesystem.Filesystem.use((fs) =>
    Effect.gen(function* () {
      yield* fs.write(`notes/${n}.md`, `Agent ${n}\n`)
      if (n % 10 === 0) yield* fs.edit("plan.md", { oldText: "# Plan", newText: `# Plan of ${n}` })
    })
  )

/** Checks that the first colliding agent and all agents without a collision are merged, and that the others left no change. */
export const check = (
  {
    conflicts,
    merged
  }: {
    readonly merged: ReadonlyArray<string>
    readonly conflicts: ReadonlyArray<{ readonly fork: string; readonly conflict: string | undefined }>
  },
  count: number
) =>
  Effect.gen(function* () {
    const fs = yield* Filesystem.Filesystem
    const numbers = Array.from({ length: count }, (_, n) => n)
    const collides = (n: number): boolean => n % 10 === 0 && n > 0
    assert.deepStrictEqual(
      conflicts,
      numbers.filter(collides).map((n) => ({ fork: `team, agent ${n}`, conflict: "plan.md" }))
    )
    assert.deepStrictEqual(
      merged,
      numbers.filter((n) => !collides(n)).map((n) => `team, agent ${n}`)
    )
    assert.strictEqual(yield* fs.readString("plan.md"), "# Plan of 0\n")
    for (const n of numbers) {
      assert.strictEqual(yield* fs.exists(`notes/${n}.md`), !collides(n), `${n}`)
      if (!collides(n)) assert.strictEqual(yield* fs.readString(`notes/${n}.md`), `Agent ${n}\n`)
    }
    yield* Repository.verify("team")
  }).pipe(Effect.provide(Repository.layer({ workspace: "team" })))
