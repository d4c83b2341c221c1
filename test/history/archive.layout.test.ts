/**
 * The two layouts of a ZIP archive: `files/` with a manifest, as this library writes by default, and the tree at the top level,
 * as other tools write.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, make as derive } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { has, needs } from "../faults/ground.ts"
import { shapeOf } from "./archiveTrees.ts"
import { build, manifest } from "./zipBuilder.ts"

const hasPython = needs("plain archives beside Python's", () => has("python3"), "apt-get install python3")
const hasUnzip = needs("plain archives beside unzip", () => has("unzip"), "apt-get install unzip")

const memory: Effect.Effect<Algebra> = Effect.map(InMemory.make(), derive)

const imported = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const fs = yield* memory
  yield* fs.write("before", "goes")
  const count = yield* Archive.importBytesOf(fs, bytes)
  return { count, fs, names: Object.keys(yield* shapeOf(fs)) }
})

const extension = JSON.stringify({ manifest_version: 3, name: "An extension", version: "1.0.3", files: ["a.js"] })

const theirs: ReadonlyArray<readonly [what: string, content: string | Uint8Array]> = [
  ["of a browser extension", extension],
  ["of a web application", JSON.stringify({ name: "App", start_url: "/", icons: [] })],
  ["that is not JSON", "{"],
  ["that is a list", "[]"],
  ["that is null", "null"],
  ["that is not UTF-8", Buffer.from([0x22, 0xff, 0x22])],
  ["of two mebibytes", JSON.stringify({ file_count: 1, total_bytes: 4 }) + " ".repeat(2 * 1024 * 1024)]
]

describe("an archive of another tool", () => {
  for (const [what, content] of theirs) {
    it.effect(`is imported from its top level, even with a manifest.json ${what}`, () =>
      Effect.gen(function* () {
        const { count, names } = yield* imported(
          build([
            { name: "manifest.json", content },
            { name: "files/a.js", content: "good" }
          ])
        )
        assert.strictEqual(count, 2)
        assert.deepStrictEqual(names, ["files", "files/a.js", "manifest.json"])
      })
    )
  }

  it.effect("is imported without a manifest.json, or with a directory or link of that name", () =>
    Effect.gen(function* () {
      const file = { name: "files/a", content: "x" }
      assert.deepStrictEqual((yield* imported(build([file]))).names, ["files", "files/a"])
      const named = { name: "manifest.json/", mode: 0o40755 }
      assert.deepStrictEqual((yield* imported(build([file, named]))).names, ["files", "files/a", "manifest.json"])
      const link = { name: "manifest.json", content: "files/a", mode: 0o120777 }
      const { fs } = yield* imported(build([file, link]))
      assert.strictEqual(yield* fs.readLink("manifest.json"), "files/a")
    })
  )

  it.effect("without entries below files/ is imported from its top level, even with a manifest.json that has counts", () =>
    Effect.gen(function* () {
      const { names } = yield* imported(build([manifest(1, 1), { name: "a", content: "x" }]))
      assert.deepStrictEqual(names, ["a", "manifest.json"])
    })
  )

  it.effect("is refused for unsafe names, unsafe links and duplicate names", () =>
    Effect.gen(function* () {
      const hostile = [
        [{ name: "../x", content: "x" }],
        [{ name: "/x", content: "x" }],
        [{ name: "a\\b", content: "x" }],
        [{ name: "l", content: "../x", mode: 0o120777 }],
        [{ name: "l", content: "/etc/passwd", mode: 0o120777 }],
        [
          { name: "README", content: "x" },
          { name: "Readme", content: "x" }
        ],
        []
      ]
      for (const parts of hostile) {
        const error = yield* Effect.flip(imported(build([...parts])))
        assert.strictEqual(error._tag, "ArchiveError", JSON.stringify(parts))
      }
    })
  )
})

describe("a plain archive", () => {
  const plain = (fs: Algebra) => Archive.exportBytesOf(fs, { layout: "plain" })

  it.effect("is imported as the same tree", () =>
    Effect.gen(function* () {
      const fs = yield* memory
      yield* fs.write("src/deep/a.ts", "export {}\n")
      yield* fs.write("Ä b", "ü")
      yield* fs.mkdir("empty/inside")
      yield* fs.symlink("src/link", "../Ä b")
      const again = yield* memory
      yield* Archive.importBytesOf(again, yield* plain(fs))
      assert.deepStrictEqual(yield* shapeOf(again), yield* shapeOf(fs))
    })
  )

  it.effect("contains the manifest.json and the files/ of the tree like any other entry, and may be empty", () =>
    Effect.gen(function* () {
      const fs = yield* memory
      yield* fs.write("files/a", "good")
      yield* fs.write("manifest.json", Buffer.from(manifest(1, 4).content as string).toString())
      const { names } = yield* imported(yield* plain(fs))
      assert.deepStrictEqual(names, ["files", "files/a", "manifest.json"])
      const bare = yield* memory
      yield* bare.write("manifest.json", Buffer.from(manifest(0, 0).content as string).toString())
      assert.deepStrictEqual((yield* imported(yield* plain(bare))).names, ["manifest.json"])
      assert.deepStrictEqual((yield* imported(yield* plain(yield* memory))).names, [])
    })
  )

  const exported = (top: string) =>
    Effect.gen(function* () {
      const fs = yield* memory
      yield* fs.write("src/a.ts", "export {}\n")
      yield* fs.write("manifest.json", extension)
      yield* fs.symlink("link", "src/a.ts")
      yield* fs.mkdir("empty")
      const path = join(top, "out.zip")
      assert.strictEqual(yield* Archive.exportArchiveOf(fs, path, { layout: "plain" }), 3)
      return path
    })

  it.live.runIf(hasUnzip)("is unpacked by unzip, including symlinks", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const top = yield* fastDirectory
        execFileSync("unzip", ["-q", yield* exported(top), "-d", join(top, "out")])
        assert.deepStrictEqual(Fs.readdirSync(join(top, "out")).sort(), ["empty", "link", "manifest.json", "src"])
        assert.strictEqual(Fs.readlinkSync(join(top, "out/link")), "src/a.ts")
      })
    )
  )

  it.live.runIf(hasPython)("is read by Python, and an archive that Python writes is imported", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const top = yield* fastDirectory
        const path = yield* exported(top)
        execFileSync("python3", ["-m", "zipfile", "-t", path])
        execFileSync("python3", ["-m", "zipfile", "-e", path, join(top, "out")])
        assert.deepStrictEqual(Fs.readdirSync(join(top, "out")).sort(), ["empty", "link", "manifest.json", "src"])
        execFileSync("python3", ["-m", "zipfile", "-c", "../again.zip", "src", "manifest.json", "empty"], {
          cwd: join(top, "out")
        })
        const again = yield* memory
        yield* Archive.importArchiveOf(again, join(top, "again.zip"))
        assert.deepStrictEqual(Object.keys(yield* shapeOf(again)), ["empty", "manifest.json", "src", "src/a.ts"])
        assert.strictEqual(yield* again.readString("manifest.json"), extension)
      })
    )
  )
})
