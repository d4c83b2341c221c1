/** Tests calls on two workspaces. A file that a check has read in one workspace must not count as read in the other. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Filesystem, Overlay, Repository, Stores } from "../../src/index.ts"

const open = (workspace: string) =>
  Effect.map(Layer.build(Layer.provide(Repository.layer({ workspace }), Stores.layerMemory)), (services) =>
    Context.get(services, Filesystem.Filesystem)
  )

describe("an overlay over two workspaces", () => {
  it.live("edits a file of the lower workspace, and a file that is in both", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const lower = yield* open("lower")
        const upper = yield* open("upper")
        yield* lower.write("a", "old")
        yield* lower.write("both", "below")
        yield* upper.write("both", "above")
        const fs = Overlay.overlay(upper)(lower)
        yield* fs.edit("a", { oldText: "old", newText: "new" })
        const version = yield* fs.version("both")
        yield* fs.write("both", "newer", { ifMatch: version })
        assert.strictEqual(yield* fs.readString("a"), "new")
        assert.strictEqual(yield* fs.readString("both"), "newer")
        assert.strictEqual(yield* lower.readString("a"), "old")
      })
    )
  )

  it.live("does not count a read in one workspace towards a claim in the other", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const one = yield* open("one")
        const other = yield* open("other")
        yield* one.write("a", "one")
        yield* other.write("a", "other")
        const claim = one.port.locks!.claim!
        const path = (yield* one.stat("a")).path
        yield* claim(path, Effect.andThen(other.port.stat(path), one.write("a", "new")))
        assert.strictEqual(yield* one.readString("a"), "new")
      })
    )
  )
})
