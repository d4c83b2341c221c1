/** A store of snapshots and dumps of sessions in one directory, with archive names of the same form. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as SnapshotStore from "../../src/history/SnapshotStore.ts"
import * as Session from "../../src/workspace/Session.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { found, memory, names, pair, sha256 } from "../workspace/dumping.ts"

const storeIn = (directory: string, fs: Algebra) => Effect.provideService(SnapshotStore.make({ directory }), Filesystem, fs)

const ready = Effect.gen(function* () {
  const directory = yield* fastDirectory
  Fs.chmodSync(directory, 0o700)
  const { filesystem, session } = yield* pair("one")
  const other = yield* memory
  yield* other.write("note", "other")
  return { directory, filesystem, session, store: yield* storeIn(directory, other) }
})

const kept = (store: SnapshotStore.Operations, id: string) => ({
  replaced: Effect.flip(store.snapshot(id)),
  removed: Effect.flip(store.delete(id))
})

describe("a store of snapshots that shares its directory with dumps", () => {
  it.effect("refuses to replace or remove the archive of a dump, and names the dump", () =>
    Effect.gen(function* () {
      const { directory, filesystem, session, store } = yield* ready
      yield* Session.dumpSessionTree(session, directory, { filesystem })
      const { removed, replaced } = kept(store, "abc")
      for (const failing of [replaced, removed]) {
        const error = yield* failing
        assert.deepInclude(error, { _tag: "SnapshotError", reason: "refused" })
        assert.include(error.message, '"abc.jsonl"')
      }
      assert.deepStrictEqual(names(directory), ["abc.fs.zip", "abc.jsonl"])
      assert.deepStrictEqual(yield* found(directory), ["one", "one"])
    }).pipe(Effect.scoped)
  )

  it.effect("refuses to replace or remove the previous archive of a dump whose process was killed", () =>
    Effect.gen(function* () {
      const { directory, filesystem, session, store } = yield* ready
      yield* Session.dumpSessionTree(session, directory, { filesystem })
      const earlier = sha256(join(directory, "abc.fs.zip"))
      Fs.writeFileSync(join(directory, "abc.jsonl"), `{"replacedArchive":{"sha256":"${earlier}"}}\n`)
      assert.strictEqual((yield* kept(store, "abc").removed).reason, "refused")
    }).pipe(Effect.scoped)
  )

  it.effect("recognises the archive of a dump by a hash at any offset of the dump's file", () =>
    Effect.gen(function* () {
      const { directory, store } = yield* ready
      yield* store.snapshot("abc")
      const hash = sha256(join(directory, "abc.fs.zip"))
      for (const before of [0, 65_536 - 64, 65_536 - 63, 65_536 - 1, 65_536, 131_072 - 7]) {
        Fs.writeFileSync(join(directory, "abc.jsonl"), " ".repeat(before) + hash + " ".repeat(100_000))
        assert.strictEqual((yield* kept(store, "abc").removed).reason, "refused", String(before))
      }
    }).pipe(Effect.scoped)
  )

  it.effect("replaces and removes its own archive next to a file that only has the name of a dump", () =>
    Effect.gen(function* () {
      const { directory, session, store } = yield* ready
      const lines = join(directory, "abc.jsonl")
      const elsewhere = join(directory, "elsewhere")
      yield* store.snapshot("abc")
      Fs.writeFileSync(elsewhere, sha256(join(directory, "abc.fs.zip")))
      for (const make of [
        () => Fs.writeFileSync(lines, "{}\n"),
        () => Fs.mkdirSync(lines),
        () => Fs.symlinkSync(elsewhere, lines),
        () => execFileSync("mkfifo", [lines])
      ]) {
        make()
        yield* store.snapshot("abc")
        assert.isTrue(yield* store.delete("abc"))
        yield* store.snapshot("abc")
        Fs.rmSync(lines, { recursive: true })
      }
      // A dump without a filesystem has no archive.
      yield* Session.dumpSessionTree(session, directory)
      assert.isTrue(yield* store.delete("abc"))
    }).pipe(Effect.scoped)
  )
})
