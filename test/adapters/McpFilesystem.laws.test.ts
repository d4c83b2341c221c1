/** Runs the laws over the official server, and lists the laws that its tools cannot satisfy. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { agrees } from "../../src/testing/Agreement.ts"
import * as Arbitraries from "../../src/testing/Arbitraries.ts"
import { plant } from "../../src/testing/Files.ts"
import { verdict } from "../../src/testing/Law.ts"
import { laws, Policies, suite } from "../../src/testing/index.ts"
import { runs } from "../runs.ts"
import { beyond } from "./mcpFilesystemBeyond.ts"
import { sharedServer } from "./mcpServers.ts"

const { close, layer } = sharedServer()
afterAll(close)

const beyondNames = new Set(Object.values(beyond).flat())

suite("McpFilesystem over the official server", layer(), {
  programs: 0,
  laws: laws.filter(({ name }) => !beyondNames.has(name))
})

describe("McpFilesystem with options over the official server", () => {
  // The adapter has no option for symlinks.
  for (const { files, law, options } of Policies.policyLaws.filter(({ options }) => options.symlinks === undefined)) {
    const holds = !beyondNames.has(law.name)
    it(holds ? law.name : `does not satisfy: ${law.name}`, { timeout: 60_000 }, async () => {
      const planted = layer(
        options,
        Filesystem.use((fs) => plant(fs.port, files))
      )
      const found = await Effect.runPromise(Effect.provide(verdict(law), planted))
      if (found._tag === "Broken" && holds) throw found.error
      assert.strictEqual(found._tag !== "Broken", holds)
    })
  }
})

describe("the laws that the official server cannot satisfy", () => {
  it("are laws of the kit", () => {
    const names = new Set([...laws, ...Policies.policyLaws.map(({ law }) => law)].map(({ name }) => name))
    assert.deepStrictEqual(
      [...beyondNames].filter((name) => !names.has(name)),
      []
    )
  })

  for (const [reason, names] of Object.entries(beyond)) {
    for (const law of laws.filter(({ name }) => names.includes(name))) {
      it(`${law.name}: ${reason}`, { timeout: 60_000 }, async () => {
        assert.strictEqual((await Effect.runPromise(Effect.provide(verdict(law), layer())))._tag, "Broken")
      })
    }
  }
})

/** Makes programs without the calls for which the server has no tool. */
const program = Arbitrary.map(Arbitraries.program({ links: "none" }), (commands) =>
  commands.filter((command) => command._tag !== "Delete" && !(command._tag === "Transfer" && command.overwrite))
)

it(
  "random programs over the official MCP server agree with the model if they delete and replace nothing",
  { timeout: 600_000 },
  async () => {
    const result = await Effect.runPromise(
      Arbitrary.checkEffect(
        program,
        (commands) => Effect.as(Effect.provide(agrees(commands), layer(), { local: true }), true),
        {
          runs: runs(60),
          size: 40,
          maxShrinks: 200
        }
      )
    )
    if (result._tag === "Falsified" && result.failure._tag === "PropertyError") throw result.failure.error
    assert.strictEqual(result._tag, "Passed")
  }
)
