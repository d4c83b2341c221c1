/** A process without free descriptors (`ulimit -n 64`): a call that needs one fails and changes nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type Child, spawned } from "./child.ts"
import { fastDirectory, picture, plantAt } from "./ground.ts"
import { changing, type Operation, operations, reading, trees, writing } from "./operations.ts"
import { isSoak } from "../runs.ts"

const few: Effect.Effect<{ readonly child: Child; readonly root: string }, never, Scope.Scope> = Effect.gen(function* () {
  const at = yield* fastDirectory
  const root = join(at, "root")
  Fs.mkdirSync(root)
  plantAt(root)
  const child = yield* spawned("ulimit -n 64;")
  yield* child.ask({ open: root })
  return { child, root }
})

/** The operations of the fast run, one of each kind, because each waits a quarter of a second before it gives up. */
const usual = new Set(
  "read,stream,grep,walk,create with parents; bytes,overwrite; a stream,append; bytes,edit,copy,move,symlink,copy of a tree,delete of a tree"
    .split(",")
    .map((name) => name.replace(";", ","))
)
const tried = operations.filter(({ name }) => isSoak || usual.has(name))

describe("a process with few free descriptors:", () => {
  for (const spare of isSoak ? [0, 1, 2, 3, 4] : [0, 2]) {
    it.live(
      `with ${spare} left, each call succeeds, or fails with IoError EMFILE and changes nothing; all calls succeed afterwards`,
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const { child, root } = yield* few
            let refused = 0
            for (const self of tried) {
              for (const name of Fs.readdirSync(root)) Fs.rmSync(join(root, name), { recursive: true })
              plantAt(root)
              const before = picture(root)
              yield* child.ask({ hoard: spare })
              const { died, failed } = yield* child.ask({ run: self.name })
              yield* child.ask({ release: true })
              assert.isUndefined(died, self.name)
              if (failed === undefined) continue
              refused++
              assert.deepInclude(failed, { _tag: "IoError", code: "EMFILE", isDeclared: true }, self.name)
              if (!self.name.startsWith("delete of a tree")) assert.deepStrictEqual(picture(root), before, self.name)
            }
            if (spare === 0) assert.isAbove(refused, 5)
            for (const name of Fs.readdirSync(root)) Fs.rmSync(join(root, name), { recursive: true })
            for (const self of [...reading, ...writing, ...changing, ...trees]) yield* succeeds(child, root, self)
            assert.deepStrictEqual(yield* child.ask({ close: true }), { left: [] })
          })
        )
    )
  }
})

const succeeds = (child: Child, root: string, self: Operation): Effect.Effect<void> =>
  Effect.gen(function* () {
    Fs.rmSync(root, { recursive: true })
    Fs.mkdirSync(root)
    plantAt(root)
    assert.deepStrictEqual(yield* child.ask({ open: root }), { left: [] }, self.name)
    assert.deepStrictEqual(yield* child.ask({ run: self.name }), {}, self.name)
  })

describe("a tree with more directories than the process may have descriptors", () => {
  it.live("is written, walked, searched, copied, moved and removed", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { child, root } = yield* few
        const names = Array.from({ length: 150 }, (_, i) => `d/${i}`)
        let deep = "d"
        for (let i = 0; i < 100; i++) names.push((deep += "/n"))
        for (const name of names) {
          Fs.mkdirSync(join(root, name))
          Fs.writeFileSync(join(root, name, "f"), "old\n")
        }
        assert.deepStrictEqual(yield* child.ask({ visit: names.map((name) => `${name}/f`) }), {})
        for (const name of ["walk", "glob", "grep", "copy of a tree", "move of a tree over an empty directory"]) {
          assert.deepStrictEqual(yield* child.ask({ run: name }), {}, name)
        }
        assert.strictEqual(Fs.readFileSync(join(root, "empty", deep.slice(2), "f"), "utf8"), "old\nx")
        Fs.renameSync(join(root, "empty"), join(root, "d"))
        // The directory cache may keep its descriptors, but the others belong to the program.
        assert.deepStrictEqual(yield* child.ask({ hoard: 4 }), {})
        assert.deepStrictEqual(yield* child.ask({ run: "read" }), {})
        assert.deepStrictEqual(yield* child.ask({ visit: names.slice(0, 20).map((name) => `${name}/f`) }), {})
        assert.deepStrictEqual(yield* child.ask({ release: true }), {})
        assert.deepStrictEqual(yield* child.ask({ run: "delete of a tree" }), {})
        assert.deepStrictEqual(yield* child.ask({ close: true }), { left: [] })
      })
    )
  )
})
