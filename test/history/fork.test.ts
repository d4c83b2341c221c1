import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { capture } from "../../src/testing/Files.ts"

const memory = Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(Fs.realpathSync(memory), "fs-algebra-fork-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

const host = Layer.unwrap(Effect.map(directory, (root) => PosixHost.layer({ root })))

const kinds: Record<string, Layer.Layer<Filesystem | Snapshots.Snapshots, unknown>> = {
  memory: Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer())),
  "a host, by git": Snapshots.layer.pipe(Layer.provideMerge(host)),
  "a host, by archives": Snapshots.layerArchive.pipe(Layer.provideMerge(host))
}

const shown = (changes: ReadonlyArray<Snapshots.Change>) => changes.map(({ _tag, path }) => `${_tag} ${path}`)

const tree = Effect.flatMap(Filesystem, (fs) => capture(fs.port))

const text = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"

const begin = Effect.gen(function* () {
  const fs = yield* Filesystem
  const snapshots = yield* Snapshots.Snapshots
  yield* fs.write("a.txt", text)
  yield* fs.write("b/c.txt", "c\n")
  yield* fs.write("b/d.txt", "d\n")
  yield* fs.mkdir("empty")
  yield* fs.symlink("link", "a.txt")
  return yield* snapshots.snapshot()
})

for (const [name, layer] of Object.entries(kinds)) {
  describe(`forks of ${name}`, () => {
    it.live("are independent of the filesystem and of each other", () =>
      Effect.gen(function* () {
        const taken = yield* begin
        const before = yield* tree
        const fork = yield* Snapshots.fork(taken)
        yield* fork.write("a.txt", "changed\n")
        yield* fork.delete("b", { recursive: true })
        yield* fork.write("new/file.txt", "new\n")
        assert.deepStrictEqual(yield* tree, before)
        assert.deepStrictEqual(shown(yield* Snapshots.changes(fork)), [
          "Modified a.txt",
          "Removed b",
          "Removed b/c.txt",
          "Removed b/d.txt",
          "Added new",
          "Added new/file.txt"
        ])
        const fs = yield* Filesystem
        yield* fs.write("b/c.txt", "later\n")
        assert.isFalse(yield* fork.exists("b/c.txt"))
        const other = yield* Snapshots.fork(taken)
        assert.strictEqual(yield* other.readString("a.txt"), text)
      }).pipe(Effect.provide(layer))
    )

    it.live("of two agents are merged one after the other", () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const taken = yield* begin
        const [one, two] = [yield* Snapshots.fork(taken), yield* Snapshots.fork(taken)]
        yield* one.write("a.txt", text.replace("two", "TWO"))
        yield* one.write("new one.txt", "1\n")
        yield* one.delete("b/c.txt")
        yield* two.write("a.txt", text.replace("six", "SIX"))
        yield* two.delete("link")
        yield* two.delete("empty")
        yield* two.mkdir("other empty")
        yield* fs.write("mine.txt", "mine\n")
        const first = yield* Snapshots.merge(one)
        assert.deepStrictEqual(shown(first.changes), ["Modified a.txt", "Removed b/c.txt", "Added new one.txt"])
        const second = yield* Snapshots.merge(two)
        assert.deepStrictEqual(second.conflicts, [])
        assert.strictEqual(yield* fs.readString("a.txt"), text.replace("two", "TWO").replace("six", "SIX"))
        assert.deepStrictEqual(
          (yield* fs.glob("**/*.txt")).matches.map(({ path }) => path),
          ["a.txt", "b/d.txt", "mine.txt", "new one.txt"]
        )
        assert.isTrue(yield* fs.exists("other empty"))
        assert.isFalse(yield* fs.exists("empty"))
        assert.deepStrictEqual((yield* Snapshots.merge(two)).changes, [])
      }).pipe(Effect.provide(layer))
    )

    it.live("report a merge conflict without a change, and can then be merged with `theirs`", () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const taken = yield* begin
        const fork = yield* Snapshots.fork(taken)
        yield* fork.write("a.txt", text.replace("two", "theirs"))
        yield* fork.write("free.txt", "free\n")
        yield* fs.write("a.txt", text.replace("two", "ours"))
        const before = yield* tree
        const error = yield* Effect.flip(Snapshots.merge(fork))
        assert.strictEqual(error._tag, "MergeConflicts")
        const [conflict] = error._tag === "MergeConflicts" ? error.conflicts : []
        assert.strictEqual(conflict?.reason, "content")
        assert.deepStrictEqual(conflict?.hunks?.[0]?.ours, { start: 2, lines: 1 })
        assert.include(error.message, "a.txt")
        assert.deepStrictEqual(yield* tree, before)
        const dry = yield* Snapshots.merge(fork, { conflicts: "theirs", dryRun: true })
        assert.deepStrictEqual(shown(dry.changes), ["Modified a.txt", "Added free.txt"])
        assert.deepStrictEqual(yield* tree, before)
        const { conflicts } = yield* Snapshots.merge(fork, { conflicts: "theirs" })
        assert.strictEqual(conflicts.length, 1)
        assert.strictEqual(yield* fs.readString("a.txt"), text.replace("two", "theirs"))
        assert.strictEqual(yield* fs.readString("free.txt"), "free\n")
      }).pipe(Effect.provide(layer))
    )

    it.live("merge an entry that changed its kind", () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const fork = yield* Snapshots.fork(yield* begin)
        yield* fork.delete("b", { recursive: true })
        yield* fork.write("b", "a file now\n")
        yield* fork.delete("a.txt")
        yield* fork.write("a.txt/in/it", "a directory now\n")
        yield* fork.delete("link")
        yield* fork.symlink("link", "b")
        yield* Snapshots.merge(fork)
        assert.deepStrictEqual(yield* tree, yield* capture(fork.port))
        assert.strictEqual(yield* fs.readString("link"), "a file now\n")
      }).pipe(Effect.provide(layer))
    )

    it.live("are the only filesystems that a merge accepts", () =>
      Effect.gen(function* () {
        yield* begin
        const fs = yield* Filesystem
        const error = yield* Effect.flip(Snapshots.merge(fs))
        assert.strictEqual(error._tag === "SnapshotError" && error.reason, "refused")
      }).pipe(Effect.provide(layer))
    )
  })
}
