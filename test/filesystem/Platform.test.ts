import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer } from "effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { line, nodes, onDisk, overHost, planted, served } from "./platformDisk.ts"
import { cases, modes, outcome, tree } from "./platformCases.ts"

const inService = Effect.fnUntraced(function* () {
  const fs = yield* Filesystem
  const out: Array<string> = []
  const pending = [""]
  while (pending.length > 0) {
    const above = pending.pop()!
    for (const entry of yield* fs.list(above)) {
      const { mode = 0 } = (yield* fs.port.stat(entry.path))!
      if (entry.isDirectory) pending.push(entry.path)
      const content =
        entry.kind === "symlink"
          ? yield* fs.readLink(entry.path)
          : entry.isFile
            ? Buffer.from((yield* fs.readBytes(entry.path)).content).toString("latin1")
            : ""
      out.push(line(entry.path, entry.kind, mode, content))
    }
  }
  return out.sort()
})

const memory = served(
  Layer.effectDiscard(
    Effect.gen(function* () {
      const fs = yield* Filesystem
      for (const [path, mode] of Object.entries(modes)) yield* fs.setAttributes(path, { mode })
    })
  ).pipe(Layer.provideMerge(InMemory.layer({ tree })))
)

describe("Platform.toFileSystem", () => {
  describe("gives the same answer and tree as effect's Node implementation", () => {
    it("in at least 120 calls", () => assert.isAtLeast(cases.length, 120))

    for (const self of cases) {
      it.effect(self.differs === undefined ? self.name : `${self.name}: differs, because ${self.differs.why}`, () =>
        Effect.gen(function* () {
          const nodeRoot = yield* planted
          const hostRoot = yield* planted
          const node = yield* nodes
          const host = yield* overHost(hostRoot)
          const inMemory = yield* Layer.build(memory)

          const expected = yield* outcome(self, node, nodeRoot)
          const answer = self.differs === undefined ? expected : self.differs.answer
          if (self.differs !== undefined && self.differs.tree !== "ours") {
            assert.notDeepEqual(answer, expected, "no difference is left")
          }
          assert.deepStrictEqual(yield* outcome(self, host, "/"), answer, "over PosixHost")
          assert.deepStrictEqual(
            yield* outcome(self, Context.get(inMemory, FileSystem.FileSystem), "/"),
            answer,
            "over InMemory"
          )
          const after = onDisk(hostRoot)
          if (self.differs?.tree === "ours") assert.notDeepEqual(after, onDisk(nodeRoot), "no difference is left")
          else assert.deepStrictEqual(after, onDisk(nodeRoot))
          assert.deepStrictEqual(yield* Effect.provide(inService(), inMemory), after, "in memory")
        })
      )
    }
  })
})
