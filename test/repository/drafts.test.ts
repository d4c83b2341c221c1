import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Changes from "../../src/repository/changes.ts"
import { type Draft, lookup } from "../../src/repository/drafts.ts"
import type { DirectoryEntry, Tree } from "../../src/repository/format/nodes.ts"
import * as Objects from "../../src/repository/format/objects.ts"
import { makeBlobs } from "./stores.ts"

const directory = (name: string, tree: Tree): DirectoryEntry => ({
  kind: "directory",
  name,
  mode: 0o755,
  createdAt: 0,
  modifiedAt: 0,
  tree
})

describe("a draft", () => {
  it.effect("may have directories at a depth of 20,000", () =>
    Effect.gen(function* () {
      const depth = 20_000
      const objects = Objects.make(makeBlobs(), { cacheBytes: 1024 * 1024 })
      let tree: Tree
      for (let i = 0; i < depth; i++) tree = { kind: "leaf", prefix: "", weight: 97, entries: [directory("a", tree)] }
      const draft: Draft = { files: directory("", tree), snapshots: directory("", undefined) }
      const path = Array.from({ length: depth }, () => "a").join("/")
      const made = yield* Changes.makeDirectory(objects, draft, `${path}/b` as FsPath, 0)
      assert.strictEqual((yield* lookup(objects, made, `${path}/b` as FsPath))?.name, "b")
      assert.isUndefined(yield* lookup(objects, draft, `${path}/b` as FsPath))
    })
  )
})
