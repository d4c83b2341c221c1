import { assert, describe, it } from "@effect/vitest"
import { bundled, inBareRealm } from "./bundle.ts"
import { expected } from "./expected.ts"
import type * as Kit from "./kit.ts"

const kit = inBareRealm<typeof Kit>(await bundled("iife"))

describe("the library in a realm with only the globals of the web", () => {
  it("keeps every law in memory, in an overlay and with a mount", async () => {
    const { broken, held } = await kit.conformance({
      programs: 30,
      hasThreads: false,
      filesystems: ["InMemory", "overlay", "mount"]
    })
    assert.deepStrictEqual([...broken], [])
    assert.isAbove(held, 2000)
  })

  it("makes and reads archives, takes snapshots and calls tools", async () => {
    assert.deepStrictEqual(JSON.parse(JSON.stringify(await kit.features())), expected)
  })
})
