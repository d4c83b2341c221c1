import { assert, describe, it } from "@effect/vitest"
import { timeoutMillis, runOnHost } from "./engines.ts"
import { isInstalled } from "./installed.ts"
import { expected } from "./expected.ts"

describe.runIf(isInstalled("deno"))("the library in Deno", () => {
  it(
    "keeps every law except those of names that are not UTF-8, in memory and on a host, and makes archives, snapshots and tools",
    { timeout: timeoutMillis },
    async () => {
      const { features, host, memory } = await runOnHost("deno", {
        args: ["run", "-A", "--no-config", "--no-remote"],
        names: "text"
      })
      assert.deepStrictEqual([...memory.broken, ...host.broken], [])
      assert.isAbove(memory.held, 800)
      assert.isAbove(host.held, 800)
      assert.deepStrictEqual(features, expected)
    }
  )
})
