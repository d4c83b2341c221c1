import { assert, describe, it } from "@effect/vitest"
import { createRequire } from "node:module"
import { inBareRealm } from "./bundle.ts"
import { forRealm, timeoutMillis, scratch } from "./engines.ts"
import type * as Hosts from "./hosts.ts"

describe("the library in a separate realm with Node's modules, as Jest makes for each test file", () => {
  it("keeps every law on a host, whose errors belong to another realm", { timeout: timeoutMillis }, async () => {
    const globals = { process, Buffer, setImmediate, clearImmediate, require: createRequire(import.meta.url) }
    const { hostConformance } = inBareRealm<typeof Hosts>(await forRealm(), globals)
    const directory = scratch()
    try {
      const { broken, held } = await hostConformance(directory.path, "bytes")
      assert.deepStrictEqual([...broken], [])
      assert.isAbove(held, 800)
    } finally {
      directory.remove()
    }
  })
})
