import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { isTooOld } from "../../src/cli/nodeVersion.ts"

const bin = readFileSync(fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url)), "utf8")

describe("the check for an old Node", () => {
  it.each([
    ["v20.20.2", true],
    ["v22.18.9", true],
    ["v22.9.0", true],
    ["v22.19.0", false],
    ["v22.19.1", false],
    ["v22.20.0", false],
    ["v24.0.0", false],
    ["v100.0.0", false]
  ])("classifies %s as too old: %s", (version, expected) => assert.strictEqual(isTooOld(version, ">=22.19.0"), expected))

  // On Node 20 the program ended with a SyntaxError about its first import, before any check could run.
  it("runs before any import that an old Node does not have", () => {
    const imported = [...bin.matchAll(/^import (?!type)\{([^}]*)\} from "node:/gm)].map(([, names]) => names!.trim())
    assert.sameMembers(imported, ["homedir", "join"])
  })
})
