/** Regression tests of a review of served prompts. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpTest from "effect/ai/McpTest"
import * as Adapter from "../../src/agent/Adapter.ts"
import { planPrompt } from "../../src/agent/mcp/server.ts"
import { makeFlow } from "../../src/agent/mcp/stdio.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import { seven } from "../../src/agent/tools.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { makeSession } from "./adapting.ts"

describe("a served prompt", () => {
  it.live("reveals neither the contents nor the changes of files that the policies of its section hide", () =>
    Effect.gen(function* () {
      const files = yield* Section.FilesystemSection({
        key: "files",
        title: "Files",
        template: "",
        tools: seven,
        layer: Layer.merge(InMemory.layer(), Policy.access({ deny: { read: "*.env" } }))
      })
      const prompt = yield* Prompt.make({ ns: "tests", key: "served", sections: [files] })
      const options = { session: yield* makeSession }
      const plan = yield* planPrompt(Adapter.mcp(prompt, options), prompt, options)(makeFlow())
      const both = Layer.merge(plan.registrations, plan.changes(Effect.void)) as Layer.Layer<never>
      const client = yield* McpTest.makeClient(both, { protocols: [McpProtocol.v2025_11_25] })
      for (const name of ["secret.env", "a.txt"]) yield* client.subscribe({ uri: `workspace:///${name}` })
      const fs = yield* files.filesystem
      const told: Array<unknown> = []
      for (let i = 0; told.length === 0 && i < 1000; i++) {
        for (const name of ["secret.env", "a.txt"]) yield* fs.write(name, `${i}`, { mode: "overwrite" })
        yield* client.ping
        const notices = yield* Queue.clear(client.notifications)
        told.push(...notices.filter(({ method }) => method === "notifications/resources/updated").map(({ payload }) => payload))
      }
      assert.deepStrictEqual(told[0], { uri: "workspace:///a.txt" })
      assert.notInclude(JSON.stringify(told), "secret")
      assert.notInclude(JSON.stringify(yield* client.readResource({ uri: "workspace:///" })), "secret")
    }).pipe(Effect.scoped, Effect.orDie)
  )
})
