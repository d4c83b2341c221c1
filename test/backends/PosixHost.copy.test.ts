/** What a copy asks of the disk, and what it takes away again when it fails: only what it has made itself. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { basename, join } from "node:path"
import { make } from "../../src/filesystem/Filesystem.ts"
import { around } from "../../src/port/Backend.ts"
import { replacing, systemError } from "./posixFailures.ts"
import { host, tree } from "./posixHost.ts"

/** As they are before a test replaces them. */
const { rmSync, writeFileSync } = Fs

describe("a copy of a tree", () => {
  it.effect("does not look again at a file of which the write has told what it is", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "d"))
      for (const name of ["f", "g"]) Fs.writeFileSync(join(root, "d", name), name)
      const written = new Set<string>()
      const looks: Array<string> = []
      const fs = make(
        around(port, (operation, next) => {
          if (operation._tag === "Write") written.add(operation.path)
          if (operation._tag === "Stat" && written.has(operation.path)) looks.push(operation.path)
          return next
        })
      )
      yield* fs.copy("d", "to")
      assert.deepStrictEqual(written, new Set(["to/f", "to/g"]))
      assert.deepStrictEqual(looks, [])
    })
  )

  it.effect("that fails takes its files away again, but none that another has put in the place of one", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "d"))
      for (const name of ["f", "g", "h"]) Fs.writeFileSync(join(root, "d", name), name)
      const targets: Array<string> = []
      // A new file gets its name by a link.
      yield* replacing("linkSync", (link) => (from, to) => {
        targets.push(basename(to))
        if (targets.length < 3) return link(from, to)
        const first = join(root, "to", targets[0]!)
        rmSync(first)
        writeFileSync(first, "another's")
        throw systemError("EIO", -5, "link")
      })
      assert.strictEqual((yield* Effect.flip(make(port).copy("d", "to")))._tag, "IoError")
      assert.strictEqual(targets.length, 3)
      assert.deepStrictEqual(tree(join(root, "to")), { [targets[0]!]: "another's" })
    })
  )
})
