/** Regression test of a review of mounts. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as HostMount from "../../src/workspace/HostMount.ts"
import { inMemory } from "../scratch.ts"

describe("an excluded file", () => {
  it.live("is not copied under another name when links are followed", () =>
    Effect.gen(function* () {
      const root = mkdtempSync(join(inMemory(), "mounts-"))
      for (const path of [
        "src/conf/.env",
        "src/conf/open.txt",
        "src/conf/secret/key",
        "src/a.txt",
        "beside/.env",
        "beside/b.txt"
      ]) {
        mkdirSync(dirname(join(root, path)), { recursive: true })
        writeFileSync(join(root, path), path)
      }
      mkdirSync(join(root, "src/links"))
      for (const [name, to] of [
        ["notes.txt", "../conf/.env"],
        ["key", "../conf/secret/key"],
        ["secrets", "../conf/secret"],
        ["conf", "../conf"],
        ["fine.txt", "../a.txt"],
        ["beside", "../../beside"]
      ] as const) {
        symlinkSync(to, join(root, "src/links", name))
      }
      const mount = { hostPath: "src", mountPath: "/", exclude: [".env", "conf/secret"], followSymlinks: true }
      const [{ entries }] = (yield* HostMount.plan([mount], { allowedRoots: [root] })) as [HostMount.Preview]
      assert.deepStrictEqual(entries, ["a.txt", "conf/open.txt", "links/beside/b.txt", "links/conf/open.txt", "links/fine.txt"])
    })
  )
})
