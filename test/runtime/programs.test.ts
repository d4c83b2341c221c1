import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as OpenRoots from "../../src/runtime/openRoots.ts"
import { findProgram } from "../../src/runtime/programs.ts"
import { within } from "../scratch.ts"

/** A directory with the programs `served/bin/tool` and `good/tool`. */
const place: Effect.Effect<string, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.realpathSync(Fs.mkdtempSync(join(within("/var/tmp"), "programs-")))),
    (base) => Effect.sync(() => Fs.rmSync(base, { recursive: true, force: true }))
  ),
  (base) => {
    for (const name of ["served/bin", "good", "links"]) {
      Fs.mkdirSync(join(base, name), { recursive: true })
      if (name !== "links") Fs.writeFileSync(join(base, name, "tool"), "#!/bin/sh\n", { mode: 0o755 })
    }
    return base
  }
)

/** PATH entries, with links, through which a program in or behind `served` could be found. */
const traps: ReadonlyArray<readonly [what: string, links: Readonly<Record<string, string>>, entry: string]> = [
  ["the directory itself", {}, "served/bin"],
  ["a path to it that contains ..", {}, "good/../served/bin"],
  ["a link to it", { "links/direct": "../served/bin" }, "links/direct"],
  ["a link to a link to it", { "links/direct": "../served/bin", "links/far": "direct" }, "links/far"],
  ["a link out of it", { "served/out": "../good" }, "served/out"],
  ["a link through a link in it", { "served/out": "../good", "links/through": "../served/out" }, "links/through"],
  ["a link to a program in it", { "links/tool": "../served/bin/tool" }, "links"],
  ["a circle of links", { "links/a": "b", "links/b": "a" }, "links/a"]
]

describe.skipIf(process.platform === "win32")("the search of the PATH for a program", () => {
  for (const [what, links, entry] of traps) {
    for (const how of ["is avoided", "is an open root"] as const) {
      it.effect(`if a directory ${how}, skips ${what}`, () =>
        Effect.gen(function* () {
          const base = yield* place
          for (const [name, text] of Object.entries(links)) Fs.symlinkSync(text, join(base, name))
          const close = how === "is an open root" ? OpenRoots.register(join(base, "served")) : () => {}
          const avoid = how === "is avoided" ? [join(base, "served")] : []
          const path = `${base}/${entry}`
          const [found, none] = [findProgram("tool", `${path}:${base}/good`, avoid), findProgram("tool", path, avoid)]
          close()
          // The child gets the PATH too. A directory with a link to one bad program can contain good programs, so it is kept.
          const kept = links["links/tool"] === undefined ? "" : `${path}:`
          assert.deepStrictEqual(found, { program: join(base, "good/tool"), path: `${kept}${base}/good` })
          assert.isUndefined(none)
        })
      )
    }
  }

  for (const entry of ["", ".", "bin", "./bin", "../served"]) {
    it.effect(`skips the entry ${JSON.stringify(entry)}, which depends on the working directory`, () =>
      Effect.gen(function* () {
        const base = yield* place
        const before = process.cwd()
        process.chdir(join(base, "served"))
        Fs.copyFileSync("bin/tool", "tool")
        const found = findProgram("tool", `${entry}:${base}/good`, [])
        process.chdir(before)
        assert.deepStrictEqual(found, { program: join(base, "good/tool"), path: `${base}/good` })
      })
    )
  }

  it.effect("resolves links in the path of an avoided directory", () =>
    Effect.gen(function* () {
      const base = yield* place
      Fs.symlinkSync("../served", join(base, "links/served"))
      assert.isUndefined(findProgram("tool", `${base}/served/bin`, [join(base, "links/served")]))
    })
  )

  it.effect("uses a directory whose name only begins with the name of an avoided directory", () =>
    Effect.gen(function* () {
      const base = yield* place
      Fs.renameSync(join(base, "good"), join(base, "served-tools"))
      assert.strictEqual(
        findProgram("tool", `${base}/served-tools`, [join(base, "served")])?.program,
        `${base}/served-tools/tool`
      )
    })
  )
})
