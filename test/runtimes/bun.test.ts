import { assert, describe, it } from "@effect/vitest"
import { timeoutMillis, runOnHost } from "./engines.ts"
import { isInstalled } from "./installed.ts"
import { expected } from "./expected.ts"

describe.runIf(isInstalled("bun"))("the library in Bun", () => {
  it(
    "keeps every law in memory and on a host, and makes archives, snapshots and tools",
    { timeout: timeoutMillis },
    async () => {
      const { features, host, memory } = await runOnHost("bun", { args: [], names: "bytes" })
      assert.deepStrictEqual([...memory.broken, ...host.broken], [])
      assert.isAbove(memory.held, 800)
      assert.isAbove(host.held, 800)
      assert.deepStrictEqual(features, expected)
    }
  )
})
