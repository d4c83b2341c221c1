/** Snapshots of a filesystem behind a journal, links included. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Layer from "effect/Layer"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { exportZipOf, importBytesOf } from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { plant } from "../../src/testing/Files.ts"
import { hasGit } from "../cli/kept.ts"
import { through } from "../conformance/branches.ts"
import { onDisk } from "../scratch.ts"

const behind = (files: Parameters<typeof plant>[1], extended = true) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      yield* plant(port, files)
      return through(make(port), {}, { extended })
    })
  )

const oneLink = { "a.txt": "a", link: { link: "a.txt" } }

const links = {
  link: { link: "a.txt" },
  "d/inner": { link: "../a.txt" },
  nowhere: { link: "none" },
  out: { link: "/etc/hostname" }
}

describe("snapshots over a branch", () => {
  const kinds = [
    ["archives", () => Snapshots.layerArchive, true],
    ["git", () => Snapshots.layerGit({ gitDir: onDisk() }), hasGit]
  ] as const
  for (const [name, layer, runs] of kinds) {
    it.live.runIf(runs)(`in ${name} restore changed files`, () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Snapshots.Snapshots
        const before = yield* snapshots.snapshot()
        yield* fs.write("a.txt", "b")
        yield* snapshots.restore(before)
        assert.strictEqual(yield* fs.readString("a.txt"), "a")
      }).pipe(Effect.provide(layer()), Effect.provide(behind({ "a.txt": "a" })))
    )

    it.live.runIf(runs)(`in ${name} restore links unchanged, even dangling links and links out of the root`, () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Snapshots.Snapshots
        const before = yield* snapshots.snapshot()
        for (const path of Object.keys(links)) yield* fs.delete(path)
        yield* fs.symlink("link", "elsewhere")
        yield* snapshots.restore(before)
        for (const [path, { link }] of Object.entries(links)) assert.strictEqual(yield* fs.readLink(path), link)
        assert.strictEqual(yield* fs.readString("d/inner"), "a")
        assert.include(yield* Effect.flip(fs.readString("out")), { _tag: "AccessDenied", why: "escape" })
      }).pipe(Effect.provide(layer()), Effect.provide(behind({ "a.txt": "a", ...links })))
    )

    it.live.runIf(runs)(`in ${name} refuse a tree with a link whose target the leaf does not report`, () =>
      Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const error = yield* Effect.flip(snapshots.snapshot())
        assert.match(error.message, /does not report the target/)
        assert.match(error.message, /"link"/)
      }).pipe(Effect.provide(layer()), Effect.provide(behind(oneLink, false)))
    )
  }

  it.live("restore a removed link after a failed transaction", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem
      const failed = (yield* Snapshots.Snapshots).transaction(
        Effect.andThen(fs.delete("link"), Effect.fail("planned" as const))
      )
      assert.strictEqual(yield* Effect.flip(failed), "planned")
      assert.strictEqual(yield* fs.readLink("link"), "a.txt")
    }).pipe(Effect.provide(Snapshots.layerArchive), Effect.provide(behind(oneLink)))
  )
})

describe("a strict archive over a branch", () => {
  it.live("contains the links that lead inside the root", () =>
    Effect.gen(function* () {
      const bytes = yield* Stream.runFold(
        Stream.unwrap(Effect.map(Filesystem, (fs) => exportZipOf(fs, { strict: true }))),
        () => new Uint8Array(),
        (all, bytes: Uint8Array) => Uint8Array.from([...all, ...bytes])
      ).pipe(Effect.provide(behind(oneLink)))
      const read = make(yield* InMemory.make())
      yield* importBytesOf(read, bytes)
      assert.strictEqual(yield* read.readLink("link"), "a.txt")
    })
  )
})
