import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Filesystem } from "../../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../../src/history/Snapshots.ts"
import { capture, link, plant } from "../../../src/testing/Files.ts"
import { filesystem } from "./laws.ts"
import { busybox, dash, missing, shared } from "./shells.ts"

for (const kind of [dash, busybox]) {
  const lacks = missing(kind)
  if (lacks !== undefined) {
    describe.skip(lacks)
    continue
  }
  describe(`snapshots of a directory behind ${kind.name}`, () => {
    const session = shared(kind)
    it.live("restore the tree", () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Snapshots.Snapshots
        yield* plant(fs.port, { "a/b": "1", "a/c": "2", l: link("a"), run: "x" })
        yield* fs.setAttributes("run", { mode: 0o755 })
        const before = yield* capture(fs.port)
        const taken = yield* snapshots.snapshot()
        yield* fs.write("a/b", "other")
        yield* fs.delete("a/c")
        yield* fs.write("new", "x")
        yield* fs.delete("l")
        yield* snapshots.restore(taken)
        assert.deepStrictEqual(yield* capture(fs.port), before)
        assert.strictEqual((yield* fs.stat("run")).mode, 0o755)
      }).pipe(Effect.provide(Layer.provideMerge(Snapshots.layerArchive, filesystem(session))))
    )
  })
}
