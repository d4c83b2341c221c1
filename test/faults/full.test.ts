/** Full disks: every call that needs room fails with DiskFull and changes nothing, and succeeds when there is room again. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import { spawned } from "./child.ts"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import type { FsError } from "../../src/model/FsError.ts"
import { canMount, directory, disk, host, losingNothing, needs, picture, plantAt } from "./ground.ts"
import { extra } from "./large.ts"

const size = 250_000
const text = (letter: string): string => letter.repeat(size)
const content = new TextEncoder().encode(text("b"))
const stream = Stream.fromIterable([content.subarray(0, 100_000), content.subarray(100_000)])

type Call = readonly [name: string, run: (fs: Algebra) => Effect.Effect<unknown, FsError>]

const writes = (name: string, path: string, mode: "create" | "overwrite" | "append" | "replace" | "appendExisting") =>
  [
    [`${name}, bytes`, (fs) => fs.writeBytes(path, content, { mode })],
    [`${name}, a stream`, (fs) => Stream.run(stream, fs.sink(path, { mode }))],
    [`${name}, bytes, with its version`, (fs) => fs.writeBytes(path, content, { mode, version: true })]
  ] as ReadonlyArray<Call>

/** The calls that need room. `f` is a large file, `d/g` a small one. */
const calls: ReadonlyArray<Call> = [
  ...writes("create", "new", "create"),
  ...writes("create with parents", "p/q/new", "create"),
  ...writes("overwrite", "f", "overwrite"),
  ...writes("overwrite through a link", "l", "overwrite"),
  ...writes("overwrite of a missing file", "p/new", "overwrite"),
  ...writes("replace", "f", "replace"),
  ...writes("append", "f", "append"),
  ...writes("append to a missing file", "p/new", "append"),
  ...writes("appendExisting", "f", "appendExisting"),
  ["edit", (fs) => fs.edit("f", { oldText: "aaaa!", newText: "b" })],
  ["copy", (fs) => fs.copy("f", "p/copied")],
  ["copy over a file", (fs) => fs.copy("f", "d/g", { overwrite: true })],
  ["copy of a tree", (fs) => Effect.andThen(fs.move("f", "d/f"), fs.copy("d", "p/d"))]
]

const old = { f: `${text("a")}!`, "d/g": "small", l: { link: "f" } }

const mountable = needs("full disks", canMount, "it needs root and a kernel that lets it mount a tmpfs")

describe.runIf(mountable)(
  "on an almost full disk of 1 MB, calls that need space fail with DiskFull, change nothing, and succeed after space is freed:",
  () => {
    for (const [name, run] of calls) {
      it.live(name, () =>
        losingNothing(
          Effect.gen(function* () {
            const root = yield* disk("size=1m")
            plantAt(root, old)
            const fs = yield* host(root)
            // The move must not be part of the failing call.
            if (name === "copy of a tree") yield* fs.move("f", "d/f")
            const call = name === "copy of a tree" ? fs.copy("d", "p/d") : run(fs)
            Fs.writeFileSync(join(root, "ballast"), new Uint8Array(600_000))
            const before = picture(root)
            const free = Fs.statfsSync(root).bfree
            const error = yield* Effect.flip(call)
            assert.strictEqual(error._tag, "DiskFull", error.message)
            assert.deepStrictEqual(picture(root), before)
            assert.strictEqual(Fs.statfsSync(root).bfree, free)
            yield* fs.delete("ballast")
            yield* call
            assert.notDeepEqual(picture(root), before)
          })
        )
      )
    }
  }
)

describe.runIf(mountable)("on a disk without free space", () => {
  it.live("reading, moving, deleting and setting attributes succeed", () =>
    losingNothing(
      Effect.gen(function* () {
        const root = yield* disk("size=1m")
        plantAt(root, old)
        const fs = yield* host(root)
        // Fill the last page too.
        const held = Fs.openSync(join(root, "ballast"), "w")
        assert.throws(() => {
          for (;;) Fs.writeSync(held, new Uint8Array(4096))
        }, /ENOSPC/)
        Fs.closeSync(held)
        assert.strictEqual((yield* fs.readString("f")).length, size + 1)
        yield* fs.setAttributes("f", { mode: 0o600 })
        assert.strictEqual((yield* Effect.flip(fs.write("new", "x")))._tag, "DiskFull")
        yield* fs.move("d/g", "f", { overwrite: true })
        assert.strictEqual(yield* fs.readString("l"), "small")
        yield* fs.delete("d", { recursive: true })
        yield* fs.write("new", "x")
      })
    )
  )
})

describe.runIf(mountable)("on a disk without free inodes", () => {
  const small: ReadonlyArray<Call> = [
    ["create", (fs) => fs.write("d/new", "x", { mode: "create" })],
    ["overwrite", (fs) => fs.write("f", "x")],
    ["overwrite, a stream", (fs) => Stream.run(Stream.make(content.subarray(0, 1)), fs.sink("f"))],
    ["append to a missing file", (fs) => fs.write("d/new", "x", { mode: "append" })],
    ["append, a stream", (fs) => Stream.run(Stream.make(content.subarray(0, 1)), fs.sink("f", { mode: "append" }))],
    ["edit", (fs) => fs.edit("f", { oldText: "o", newText: "x" })],
    ["mkdir", (fs) => fs.mkdir("e")],
    ["symlink", (fs) => fs.symlink("l", "f")],
    ["copy", (fs) => fs.copy("f", "d/copied")]
  ]
  for (const [name, run] of small) {
    it.live(`${name} fails with DiskFull, and succeeds when inodes are free again`, () =>
      losingNothing(
        Effect.gen(function* () {
          const root = yield* disk("size=1m,nr_inodes=10")
          plantAt(root, { "d/g": "x", f: "old" })
          const ballast = Array.from({ length: 6 }, (_, i) => `ballast${i}`)
          for (const name of ballast) Fs.writeFileSync(join(root, name), "")
          const fs = yield* host(root)
          const before = picture(root)
          const error = yield* Effect.flip(run(fs))
          assert.strictEqual(error._tag, "DiskFull", error.message)
          assert.deepStrictEqual(picture(root), before)
          for (const name of ballast) yield* fs.delete(name)
          yield* run(fs)
        })
      )
    )
  }

  it.live("appending, moving, reading and deleting need no inode", () =>
    losingNothing(
      Effect.gen(function* () {
        const root = yield* disk("size=1m,nr_inodes=4")
        plantAt(root, { "d/g": "x", f: "old" })
        const fs = yield* host(root)
        yield* fs.write("f", "er", { mode: "append" })
        yield* fs.move("f", "d/f")
        assert.strictEqual(yield* fs.readString("d/f"), "older")
        assert.deepStrictEqual(yield* fs.delete("d", { recursive: true }), { deleted: 2, directories: 1 })
        assert.deepStrictEqual(picture(root), {})
      })
    )
  )
})

describe("a process that may write at most 100 kB to a file (ulimit -f)", () => {
  it.live("gets DiskFull for each larger write, even after a partial write, and the tree is unchanged", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = yield* directory
        plantAt(root)
        const before = picture(root)
        const child = yield* spawned("ulimit -f 100;")
        yield* child.ask({ open: root })
        for (const { name } of extra) {
          const { died, failed } = yield* child.ask({ run: name })
          assert.deepInclude(failed, { _tag: "DiskFull", isDeclared: true }, `${name} ${died}`)
          assert.deepStrictEqual(picture(root), before, name)
        }
        yield* child.ask({ run: "append, bytes" })
        assert.strictEqual(Fs.readFileSync(join(root, "d/f"), "utf8"), "old\nnew")
        assert.deepStrictEqual(yield* child.ask({ close: true }), { left: [] })
      })
    )
  )
})
