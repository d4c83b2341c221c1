import { assert, describe, it } from "@effect/vitest"
import { NodeFileSystem } from "@effect/platform-node"
import { Context, Effect, FileSystem, Layer } from "effect"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Platform from "../../src/filesystem/Platform.ts"
import { cases, modes, outcome, tree } from "./platformCases.ts"

type Tree = { readonly [name: string]: string | { readonly link: string } | Tree }

const isLink = (value: object): value is { readonly link: string } => typeof (value as { link?: unknown }).link === "string"

const plant = (directory: string, tree: Tree): void => {
  for (const [name, value] of Object.entries(tree)) {
    const path = join(directory, name)
    if (typeof value === "string") Fs.writeFileSync(path, value)
    else if (isLink(value)) Fs.symlinkSync(value.link, path)
    else {
      Fs.mkdirSync(path)
      plant(path, value)
    }
  }
}

const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.realpathSync(Fs.mkdtempSync(join(tmpdir(), "fs-algebra-platform-")))),
  (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
)

const planted = Effect.tap(temporary, (root) =>
  Effect.sync(() => {
    plant(root, tree as Tree)
    Fs.chmodSync(root, 0o755)
    for (const [path, mode] of Object.entries(modes)) Fs.chmodSync(join(root, path), mode)
  })
)

const line = (path: string, kind: string, mode: number, content: string) => `${path} ${kind} ${mode.toString(8)} ${content}`

const onDisk = (root: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  const pending = [""]
  while (pending.length > 0) {
    const above = pending.pop()!
    for (const name of Fs.readdirSync(join(root, above))) {
      const path = join(above, name)
      const stat = Fs.lstatSync(join(root, path))
      const mode = stat.mode & 0o777
      if (stat.isDirectory()) {
        pending.push(path)
        out.push(line(path, "directory", mode, ""))
      } else if (stat.isSymbolicLink()) out.push(line(path, "symlink", mode, Fs.readlinkSync(join(root, path))))
      else out.push(line(path, "file", mode, Fs.readFileSync(join(root, path), "latin1")))
    }
  }
  return out.sort()
}

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

const served = <E>(layer: Layer.Layer<Filesystem, E>) => Layer.provideMerge(Platform.toFileSystem, layer)

const memory = served(
  Layer.effectDiscard(
    Effect.gen(function* () {
      const fs = yield* Filesystem
      for (const [path, mode] of Object.entries(modes)) yield* fs.setAttributes(path, { mode })
    })
  ).pipe(Layer.provideMerge(InMemory.layer({ tree })))
)

describe("Platform.toFileSystem", () => {
  describe("answers as effect's Node implementation, with the same tree afterwards", () => {
    it("in at least 120 calls", () => assert.isAtLeast(cases.length, 120))

    for (const self of cases) {
      it.effect(self.differs === undefined ? self.name : `${self.name}: not, since ${self.differs.why}`, () =>
        Effect.gen(function* () {
          const nodeRoot = yield* planted
          const hostRoot = yield* planted
          const node = Context.get(yield* Layer.build(NodeFileSystem.layer), FileSystem.FileSystem)
          const host = Context.get(yield* Layer.build(served(PosixHost.layer({ root: hostRoot }))), FileSystem.FileSystem)
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
