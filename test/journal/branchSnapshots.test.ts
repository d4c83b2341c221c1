/** Snapshots of a filesystem behind a journal, which tells that there are links and not where they lead. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { exportZipOf } from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as Branch from "../../src/journal/Branch.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import { hasGit } from "../cli/kept.ts"
import { onDisk } from "../scratch.ts"

const behind = (link: boolean) =>
  Branch.layer({ extended: true }).pipe(
    Layer.provide(
      Leaf.mockFS({}, { extended: true, tree: link ? { "a.txt": "a", link: { link: "a.txt" } } : { "a.txt": "a" } })
    ),
    Layer.provide(Journal.layerMemory)
  )

describe("snapshots over a branch", () => {
  const kinds = [
    ["archives", () => Snapshots.layerArchive, true],
    ["git", () => Snapshots.layerGit({ gitDir: onDisk() }), hasGit]
  ] as const
  for (const [name, layer, runs] of kinds) {
    it.live.runIf(runs)(`kept as ${name} bring back what they hold`, () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Snapshots.Snapshots
        const before = yield* snapshots.snapshot()
        yield* fs.write("a.txt", "b")
        yield* snapshots.restore(before)
        assert.strictEqual(yield* fs.readString("a.txt"), "a")
      }).pipe(Effect.provide(layer()), Effect.provide(behind(false)))
    )

    it.live.runIf(runs)(`kept as ${name} refuse a tree with a link, which they could not bring back`, () =>
      Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const error = yield* Effect.flip(snapshots.snapshot())
        assert.match(error.message, /link/)
        assert.match(error.message, /"link"/)
      }).pipe(Effect.provide(layer()), Effect.provide(behind(true)))
    )
  }

  it.live("a strict archive of one with a link is refused, and of one without is made", () =>
    Effect.gen(function* () {
      const size = Stream.runFold(
        Stream.unwrap(Effect.map(Filesystem, (fs) => exportZipOf(fs, { strict: true }))),
        () => 0,
        (sum, bytes: Uint8Array) => sum + bytes.length
      )
      assert.isAbove(yield* Effect.provide(size, behind(false)), 0)
      const error = yield* Effect.flip(Effect.provide(size, behind(true)))
      assert.match(error.message, /"link"/)
    })
  )
})
