import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as HostRoot from "../../src/backends/posix/confinement.ts"
import { is as isFault } from "../../src/model/Fault.ts"
import { backend } from "../../src/backends/posix/port.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { directory } from "../conformance/filesystems.ts"
import { failing, systemError } from "./posixFailures.ts"

const owner = { uid: 65534, gid: 65533 }
const isRoot = process.geteuid?.() === 0

const filesystem = (root: string): Algebra => {
  const confined = HostRoot.open(root)
  if (isFault(confined)) throw new Error(confined._tag)
  return make(backend({ ...confined, owner }, { root }))
}

const owned = (fs: (fs: Algebra, root: string) => Effect.Effect<unknown, unknown>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const root = yield* directory
      yield* fs(filesystem(root), root)
      for (const name of Fs.readdirSync(root, { recursive: true, encoding: "utf8" })) {
        const { gid, uid } = Fs.lstatSync(join(root, name))
        assert.deepStrictEqual({ name, uid, gid }, { name, ...owner })
      }
    })
  )

const bytes = new Uint8Array(300_000)

describe.skipIf(!isRoot)("an entry created with an owner belongs to that owner (only root can change owners)", () => {
  it.effect.each([
    ["a new file and its parents", (fs: Algebra) => fs.write("a/b/c", "x")],
    ["a file that replaces another", (fs: Algebra) => Effect.andThen(fs.write("a", "x"), fs.write("a", "y"))],
    ["a file written in create mode", (fs: Algebra) => fs.write("a", "x", { mode: "create" })],
    ["a large file", (fs: Algebra) => fs.writeBytes("a", bytes)],
    ["a file created by an append", (fs: Algebra) => fs.write("a", "x", { mode: "append" })],
    ["an edited file", (fs: Algebra) => Effect.andThen(fs.write("a", "x"), fs.edit("a", { oldText: "x", newText: "y" }))],
    ["a directory", (fs: Algebra) => fs.mkdir("a/b")],
    ["a link", (fs: Algebra) => fs.symlink("a", "b")],
    ["a copy", (fs: Algebra) => Effect.andThen(fs.write("a/b", "x"), fs.copy("a", "c"))],
    [
      "an entry restored from a snapshot",
      (fs: Algebra) =>
        Effect.gen(function* () {
          const snapshots = yield* Snapshots.Snapshots
          yield* fs.write("a/b", "x")
          yield* fs.mkdir("a/c")
          yield* fs.symlink("a/d", "b")
          const taken = yield* snapshots.snapshot()
          yield* fs.delete("a", { recursive: true })
          yield* snapshots.restore(taken)
          assert.strictEqual(yield* fs.readString("a/b"), "x")
        }).pipe(Effect.provide(Snapshots.layer), Effect.provideService(Filesystem, fs))
    ]
  ] as const)("%s", ([, run]) => owned(run))
})

describe("a write whose new file cannot get the owner", () => {
  it.effect("fails and leaves no temporary file", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = yield* directory
        const fs = filesystem(root)
        yield* failing("fchownSync", () => systemError("EPERM", -1, "fchown"))
        for (const mode of ["create", "overwrite", "append"] as const) {
          assert.strictEqual((yield* Effect.flip(fs.write("a", "x", { mode })))._tag, "AccessDenied")
          assert.deepStrictEqual(Fs.readdirSync(root), [], mode)
        }
      })
    )
  )
})

describe("without an owner", () => {
  it.effect("every new entry belongs to the user of the process", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = yield* directory
        const confined = HostRoot.open(root)
        assert.isFalse(isFault(confined))
        if (isFault(confined)) return
        yield* make(backend(confined, { root })).write("a/b", "x")
        assert.strictEqual(Fs.lstatSync(join(root, "a/b")).uid, process.geteuid?.())
      })
    )
  )
})
