/** Names and paths at and above the limits of the kernel: 255 bytes for a name, 4,095 for a path. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Algebra } from "../../src/filesystem/Filesystem.ts"
import type { FsError } from "../../src/model/FsError.ts"
import * as Limits from "../../src/model/Limits.ts"
import { fastDirectory, host, losingNothing, picture } from "./ground.ts"

const unlimited = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Limits.Limits, Limits.unlimited)

const longest = ["a".repeat(255), "é".repeat(127) + "a", "😀".repeat(63) + "abc"]
const tooLong = ["a".repeat(256), "é".repeat(128), "😀".repeat(64)]

const makes: ReadonlyArray<readonly [string, (fs: Algebra, name: string) => Effect.Effect<unknown, FsError>]> = [
  ["create", (fs, name) => fs.write(name, "x", { mode: "create" })],
  ["overwrite", (fs, name) => fs.write(`p/${name}`, "x")],
  ["a stream", (fs, name) => Stream.run(Stream.make(Uint8Array.of(120)), fs.sink(`p/${name}`))],
  ["append", (fs, name) => fs.write(`p/${name}`, "x", { mode: "append" })],
  ["append, a stream", (fs, name) => Stream.run(Stream.make(Uint8Array.of(120)), fs.sink(`p/${name}`, { mode: "append" }))],
  ["a file below it", (fs, name) => fs.write(`p/${name}/f`, "x")],
  ["mkdir", (fs, name) => fs.mkdir(`p/${name}`)],
  ["symlink", (fs, name) => fs.symlink(`p/${name}`, "../f")],
  ["copy", (fs, name) => fs.copy("f", `p/${name}`)],
  ["copy over a file", (fs, name) => Effect.andThen(fs.copy("f", `p/${name}`), fs.copy("f", `p/${name}`, { overwrite: true }))],
  ["copy of a tree", (fs, name) => fs.copy("d", `p/${name}`)],
  ["move", (fs, name) => fs.move("f", `p/${name}`)]
]

describe("a name", () => {
  for (const [what, run] of makes) {
    it.live(`of 255 bytes works for ${what}; one of 256 bytes fails with PathTooLong and changes nothing`, () =>
      losingNothing(
        Effect.gen(function* () {
          const root = yield* fastDirectory
          const fs = yield* host(root)
          for (const name of tooLong) {
            Fs.writeFileSync(join(root, "f"), "x")
            Fs.mkdirSync(join(root, "d"), { recursive: true })
            const before = picture(root)
            const error = yield* Effect.flip(unlimited(run(fs, name)))
            assert.strictEqual(error._tag, "PathTooLong", error.message)
            assert.deepStrictEqual(picture(root), before)
          }
          for (const name of longest) {
            Fs.writeFileSync(join(root, "f"), "x")
            yield* run(fs, name)
            assert.include(Object.keys(picture(root)).join("/"), name)
            const at = Fs.existsSync(join(root, name)) ? name : `p/${name}`
            assert.isTrue(yield* fs.exists(at))
            yield* fs.delete(at, { recursive: true })
            assert.notInclude(JSON.stringify(picture(root)), ".~fsa-")
          }
        })
      )
    )
  }

  it.live("that is too long fails with PathTooLong or NotFound when it is read, deleted or moved", () =>
    losingNothing(
      Effect.gen(function* () {
        const fs = yield* host(yield* fastDirectory)
        for (const name of tooLong) {
          assert.isFalse(yield* unlimited(fs.exists(name)))
          for (const call of [fs.stat(name), fs.readString(name), fs.list(name), fs.delete(name), fs.move(name, "to")]) {
            const error = yield* Effect.flip(unlimited<unknown, FsError, never>(call))
            assert.include(["PathTooLong", "NotFound"], error._tag)
          }
        }
      })
    )
  )
})

describe("a tree deeper than the longest path (6,000 bytes)", () => {
  const deep = Array.from({ length: 30 }, (_, i) => `${i}-`.padEnd(200, "n")).join("/")

  it.live("that another program made is walked or fails with PathTooLong, and can be removed", () =>
    losingNothing(
      Effect.gen(function* () {
        const root = yield* fastDirectory
        const script = deep.split("/").map((name) => `mkdir ${name} && cd ${name}`)
        execFileSync("bash", ["-c", `cd "$0" && ${script.join(" && ")} && echo -n deep > f`, root])
        const fs = yield* host(root)
        const found = yield* Effect.result(unlimited(Stream.runCollect(fs.walk("."))))
        if (fs.port.info.confinement === "race-free") assert.strictEqual(found._tag, "Success")
        if (found._tag === "Failure") assert.strictEqual(found.failure._tag, "PathTooLong")
        else assert.strictEqual(found.success.at(-1)?.path, `${deep}/f`)
        const { deleted, directories } = yield* fs.delete(deep.slice(0, 200), { recursive: true })
        assert.deepStrictEqual([deleted, directories], [1, 30])
        assert.deepStrictEqual(Fs.readdirSync(root), [])
      })
    )
  )

  it.live(
    "can be written, read, listed, moved and removed on a race-free host; elsewhere its creation fails with PathTooLong",
    () =>
      losingNothing(
        Effect.gen(function* () {
          const root = yield* fastDirectory
          const fs = yield* host(root)
          const made = yield* Effect.result(unlimited(fs.write(`${deep}/f`, "deep")))
          if (fs.port.info.confinement !== "race-free") {
            assert.strictEqual(made._tag === "Failure" && made.failure._tag, "PathTooLong")
            return assert.deepStrictEqual(Fs.readdirSync(root), [])
          }
          assert.strictEqual(made._tag, "Success", String(made._tag === "Failure" && made.failure))
          assert.strictEqual(yield* unlimited(fs.readString(`${deep}/f`)), "deep")
          yield* unlimited(fs.write(`${deep}/f`, "er", { mode: "append" }))
          yield* unlimited(fs.edit(`${deep}/f`, { oldText: "deeper", newText: "deepest" }))
          yield* unlimited(fs.move(`${deep}/f`, `${deep}/g`))
          assert.deepStrictEqual(
            (yield* unlimited(fs.list(deep))).map(({ name }) => name),
            ["g"]
          )
          yield* unlimited(fs.copy(`${deep}/g`, "shallow"))
          assert.strictEqual(Fs.readFileSync(join(root, "shallow"), "utf8"), "deepest")
          yield* unlimited(fs.delete(`${deep}/g`))
          yield* fs.delete(deep.slice(0, 200), { recursive: true })
          assert.deepStrictEqual(Fs.readdirSync(root), ["shallow"])
        })
      )
  )

  it.live("cannot be created with the default limits: PathTooLong", () =>
    losingNothing(
      Effect.gen(function* () {
        const root = yield* fastDirectory
        const fs = yield* host(root)
        assert.strictEqual((yield* Effect.flip(fs.write(`${deep}/f`, "x")))._tag, "PathTooLong")
        assert.deepStrictEqual(Fs.readdirSync(root), [])
      })
    )
  )
})
