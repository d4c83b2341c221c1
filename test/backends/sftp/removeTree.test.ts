/** Tests the removal of directories with their content over SFTP. */
import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Fs from "node:fs"
import { join } from "node:path"
import { Type } from "../../../src/backends/sftp/wire.ts"
import { make } from "../../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../../src/model/FsPath.ts"
import { directory } from "../../conformance/filesystems.ts"
import { performed } from "../../performed.ts"
import { passing, through } from "./between.ts"
import { describeSftp, openPiped, pipe } from "./servers.ts"

/** Opens a directory with a tree of `files` files, and a directory outside of the root. */
const planted = Effect.fnUntraced(function* (files: number) {
  const [root, outside] = [yield* directory, yield* directory]
  Fs.mkdirSync(join(root, "tree/below"), { recursive: true })
  for (let nth = 0; nth < files; nth++) Fs.writeFileSync(join(root, "tree/below", `${nth}`), "")
  Fs.mkdirSync(join(outside, "inner"))
  Fs.writeFileSync(join(outside, "inner/file"), "kept")
  const between = passing()
  const fs = make(yield* openPiped(root, {}, {}, through(pipe(), between)))
  yield* fs.exists("x")
  const remove = (path: string) => performed(fs.port, { _tag: "RemoveTree", path: path as FsPath })
  return { between, fs, outside, remove, root }
})

describeSftp("the removal of a tree over SFTP", () => {
  it.live("removes nothing from the root, which it refuses", () =>
    Effect.gen(function* () {
      const { remove, root } = yield* planted(3)
      assert.strictEqual((yield* Effect.flip(remove(".")))._tag, "AccessDenied")
      assert.strictEqual(Fs.readdirSync(join(root, "tree/below")).length, 3)
    }).pipe(Effect.scoped)
  )

  it.live("removes links and leaves what they lead to", () =>
    Effect.gen(function* () {
      const { outside, remove, root } = yield* planted(1)
      Fs.symlinkSync(outside, join(root, "tree/out"))
      Fs.symlinkSync(join(outside, "inner/file"), join(root, "tree/below/out"))
      assert.deepStrictEqual(yield* remove("tree"), { deleted: 3, directories: 2 })
      assert.strictEqual(Fs.readFileSync(join(outside, "inner/file"), "utf8"), "kept")
    }).pipe(Effect.scoped)
  )

  it.live("removes nothing behind a link that has taken the place of a listed directory", () =>
    Effect.gen(function* () {
      const { between, outside, remove, root } = yield* planted(0)
      Fs.mkdirSync(join(root, "tree/inner"))
      let isReplaced = false
      between.onRequest = ({ bytes, type }) => {
        if (!isReplaced && type === Type.opendir && bytes.toString().endsWith("/inner")) {
          isReplaced = true
          Fs.rmdirSync(join(root, "tree/inner"))
          Fs.symlinkSync(join(outside, "inner"), join(root, "tree/inner"))
        }
        return "pass"
      }
      yield* Effect.exit(remove("tree"))
      assert.isTrue(isReplaced)
      assert.strictEqual(Fs.readFileSync(join(outside, "inner/file"), "utf8"), "kept")
    }).pipe(Effect.scoped)
  )

  it.live("fails at the directory that another program fills again", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* planted(3)
      between.onRequest = ({ bytes, type }) => {
        if (type === Type.rmdir && bytes.toString().endsWith("/below")) Fs.writeFileSync(join(root, "tree/below/new"), "new")
        return "pass"
      }
      const error = yield* Effect.flip(fs.delete("tree", { recursive: true }))
      assert.strictEqual(error._tag, "DirectoryNotEmpty")
      assert.strictEqual("path" in error ? (error.path as string) : undefined, "tree/below")
      assert.deepStrictEqual(Fs.readdirSync(join(root, "tree/below")), ["new"])
    }).pipe(Effect.scoped)
  )

  it.live("sends no further removals after an interruption", () =>
    Effect.gen(function* () {
      const { between, fs, root } = yield* planted(500)
      const isHeld = yield* Deferred.make<void>()
      const isReleased = yield* Deferred.make<void>()
      const removals = new Set<number>()
      between.onRequest = ({ id, type }) => {
        if (type === Type.remove) removals.add(id)
        return "pass"
      }
      between.onAnswer = async ({ id }) => {
        if (removals.has(id)) {
          Deferred.doneUnsafe(isHeld, Effect.void)
          await Effect.runPromise(Deferred.await(isReleased))
        }
        return "pass" as const
      }
      const removing = yield* Effect.forkChild(fs.delete("tree", { recursive: true }))
      yield* Deferred.await(isHeld)
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(removing))
      for (let nth = 0; nth < 20; nth++) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      const sent = removals.size
      yield* Deferred.succeed(isReleased, undefined)
      yield* Fiber.join(interrupting)
      yield* fs.exists("x")
      yield* fs.exists("x")
      assert.strictEqual(removals.size, sent)
      assert.strictEqual(Fs.readdirSync(join(root, "tree/below")).length, 500 - sent)
    }).pipe(Effect.scoped)
  )
})
