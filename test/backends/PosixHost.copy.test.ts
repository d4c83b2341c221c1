import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { basename, join } from "node:path"
import { make } from "../../src/filesystem/Filesystem.ts"
import { around } from "../../src/port/Backend.ts"
import { replacing, systemError } from "./posixFailures.ts"
import { host, tree } from "./posixHost.ts"

const { rmSync, writeFileSync } = Fs

describe("a copy of a tree", () => {
  it.effect("uses the stat that each write returned, and does not stat a written file again", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "d"))
      for (const name of ["f", "g"]) Fs.writeFileSync(join(root, "d", name), name)
      const written = new Set<string>()
      const looks: Array<string> = []
      const fs = make(
        around(port, (operation, next) => {
          if (operation._tag === "Write") written.add(operation.path)
          if (operation._tag === "Stat" && written.has(operation.path)) looks.push(operation.path)
          return next
        })
      )
      yield* fs.copy("d", "to")
      assert.deepStrictEqual(written, new Set(["to/f", "to/g"]))
      assert.deepStrictEqual(looks, [])
    })
  )

  it.effect(
    "that fails removes the files that it created, but keeps a file with which another process replaced one of them",
    () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        Fs.mkdirSync(join(root, "d"))
        for (const name of ["f", "g", "h"]) Fs.writeFileSync(join(root, "d", name), name)
        const targets: Array<string> = []
        yield* replacing("linkSync", (link) => (from, to) => {
          targets.push(basename(to))
          if (targets.length < 3) return link(from, to)
          const first = join(root, "to", targets[0]!)
          rmSync(first)
          writeFileSync(first, "another's")
          throw systemError("EIO", -5, "link")
        })
        assert.strictEqual((yield* Effect.flip(make(port).copy("d", "to")))._tag, "IoError")
        assert.strictEqual(targets.length, 3)
        assert.deepStrictEqual(tree(join(root, "to")), { [targets[0]!]: "another's" })
      })
  )
})

describe("a copy on a disk that refuses chmod", () => {
  const planted = Effect.map(host(), (made) => {
    Fs.mkdirSync(join(made.root, "d/closed"), { recursive: true })
    Fs.writeFileSync(join(made.root, "d/run"), "run")
    Fs.chmodSync(join(made.root, "d/run"), 0o755)
    Fs.chmodSync(join(made.root, "d/closed"), 0o700)
    return made
  })
  const refusing = (code: string, errno: number) =>
    replacing("chmodSync", () => () => {
      throw systemError(code, errno, "chmod")
    })
  const bitsOf = (path: string): number => Fs.statSync(path).mode & 0o777

  for (const [code, errno] of [
    ["EPERM", -1],
    ["ENOTSUP", -95],
    ["ENOSYS", -38]
  ] as const) {
    it.effect(`omits the permission bits after ${code}`, () =>
      Effect.gen(function* () {
        const { port, root } = yield* planted
        const fs = make(port)
        yield* refusing(code, errno)
        yield* fs.copy("d", "to")
        yield* fs.copy("d/run", "one")
        assert.deepStrictEqual(tree(join(root, "to")), { closed: "directory", run: "run" })
        assert.strictEqual(Fs.readFileSync(join(root, "one"), "utf8"), "run")
        for (const path of ["to/run", "one"]) assert.strictEqual(bitsOf(join(root, path)) & 0o111, 0)
      })
    )
  }

  it.effect("fails after any other error of chmod, names the file and leaves nothing behind", () =>
    Effect.gen(function* () {
      const { port, root } = yield* planted
      yield* refusing("EIO", -5)
      const error = yield* Effect.flip(make(port).copy("d/run", "one"))
      assert.include(error, { _tag: "IoError", code: "EIO", path: "one" })
      assert.isFalse(Fs.existsSync(join(root, "one")))
    })
  )
})
