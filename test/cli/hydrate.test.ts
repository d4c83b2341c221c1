import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { displayWidth } from "effect/cli/CliOutput"
import { stripVTControlCharacters } from "node:util"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import { copyTree } from "../../src/cli/workspace.ts"
import { type Algebra, make, versioning } from "../../src/filesystem/Filesystem.ts"
import { AccessDenied } from "../../src/model/FsError.ts"
import { agent, Limits } from "../../src/model/Limits.ts"
import { shell, shellOver } from "./terminal.ts"

const memory = (tree: InMemory.Tree) => Effect.map(InMemory.make({ tree }), make)

const paths = (fs: Algebra) => Effect.map(Stream.runCollect(fs.walk()), (entries) => entries.map(({ path }) => path))

const unreadable = (fs: Algebra, path: string): Algebra => ({
  ...fs,
  readBytes: versioning((asked, options) =>
    asked === path
      ? Effect.fail(new AccessDenied({ operation: "readBytes", path, why: "permission" }))
      : fs.readBytes(asked, options)
  )
})

describe("the copy of --backend memory", () => {
  it.effect("has the bytes, empty directories, links, permissions and times of the original", () =>
    Effect.gen(function* () {
      const from = yield* memory({
        a: { "b.bin": new Uint8Array([0, 255]), link: { link: "b.bin" }, ahead: { link: "../z" } },
        empty: {},
        z: "z"
      })
      const modifiedAt = DateTime.makeUnsafe("2001-02-03T04:05:06.789Z")
      yield* from.setAttributes("a/b.bin", { mode: 0o750, modifiedAt })
      yield* from.setAttributes("a", { mode: 0o700, modifiedAt })
      const to = yield* memory({})
      const copied = yield* copyTree(from, to)
      assert.deepStrictEqual(copied, { files: 2, directories: 2, links: 2, bytes: 3, truncated: false, leftOut: [] })
      assert.deepStrictEqual(yield* paths(to), yield* paths(from))
      assert.deepStrictEqual([...(yield* to.readBytes("a/b.bin")).content], [0, 255])
      assert.strictEqual(yield* to.readLink("a/link"), "b.bin")
      for (const path of ["a/b.bin", "a"]) {
        const { mode, modifiedAt } = yield* to.stat(path)
        const before = yield* from.stat(path)
        assert.deepStrictEqual([mode, modifiedAt], [before.mode, before.modifiedAt])
      }
    })
  )
  it.effect("skips and reports unreadable files, and contains the others", () =>
    Effect.gen(function* () {
      const from = unreadable(yield* memory({ a: "a", secret: "s", z: "z" }), "secret")
      const to = yield* memory({})
      const { files, leftOut } = yield* copyTree(from, to)
      assert.strictEqual(files, 2)
      assert.deepStrictEqual(
        leftOut.map(({ path }) => path),
        ["secret"]
      )
      assert.include(leftOut[0]!.why, "permit")
      assert.deepStrictEqual(yield* paths(to), ["a", "z"])
    })
  )
  it.effect("is used by the command even if files are skipped", () =>
    Effect.gen(function* () {
      const { fs } = yield* shell({ a: "a", secret: "s" })
      const ran = yield* shellOver(unreadable(fs, "secret")).run(["ls", "--backend", "memory"])
      assert.deepStrictEqual([ran.code, ran.out], [0, "a\n"])
      assert.match(ran.err, /^note: {2}left out of the copy, 1 entry:\n {2}secret: /)
    })
  )
  it.effect("stops before it exceeds its limits", () =>
    Effect.gen(function* () {
      const from = yield* memory({ a: "12345", b: "12345", c: "1", d: "1" })
      const byBytes = yield* memory({})
      const copied = yield* copyTree(from, byBytes, { upTo: { files: 10, bytes: 7 } })
      assert.deepInclude(copied, { truncated: true, bytes: 7, files: 3 })
      const byFiles = yield* memory({})
      assert.deepInclude(yield* copyTree(from, byFiles, { upTo: { files: 2, bytes: 100 } }), { truncated: true, files: 2 })
    })
  )
  it.effect("follows .gitignore only on request", () =>
    Effect.gen(function* () {
      const from = yield* memory({ ".gitignore": "out\n", out: { x: "" }, ".git": { HEAD: "" }, a: "" })
      const all = yield* memory({})
      yield* copyTree(from, all)
      assert.deepStrictEqual(yield* paths(all), yield* paths(from))
      const some = yield* memory({})
      yield* copyTree(from, some, { gitignore: true })
      assert.deepStrictEqual(yield* paths(some), [".gitignore", "a"])
    })
  )
  it.effect("ignores the limits of its caller", () =>
    Effect.gen(function* () {
      const from = yield* memory({ big: "x".repeat(agent.maxFileSize + 1) })
      const to = yield* memory({})
      const { files } = yield* Effect.provideService(copyTree(from, to), Limits, agent)
      assert.strictEqual(files, 1)
    })
  )
})

describe("the tour", () => {
  it.effect("edits its own sample files if the directory has no text, and leaves the directory unchanged", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell({ "image.bin": new Uint8Array([0, 1, 2]) })
      const ran = yield* run([])
      assert.strictEqual(ran.code, 0, ran.err)
      assert.include(ran.out, "greeter/README.md")
      assert.include(ran.out, "Conflict on greeter/README.md")
      assert.deepStrictEqual(yield* paths(fs), ["image.bin"])
    })
  )

  it.effect("prints no line wider than the terminal, with or without colours", () =>
    Effect.gen(function* () {
      const line = `# ${"字".repeat(34)}`
      const { run } = yield* shell({ "README.md": `${line}\n\n${"text ".repeat(60)}TODO\n` })
      for (const colors of [false, true]) {
        const { out } = yield* run([], { isTerminal: true, colors, columns: 60 })
        const bare = stripVTControlCharacters(out.slice(0, out.indexOf("Where to go next"))).split("\n")
        assert.isTrue(bare.some((line) => line.endsWith("…") && line.includes("字")))
        for (const line of bare.slice(3)) assert.isAtMost(displayWidth(line), 60, line)
        assert.strictEqual(out.includes("\u001b["), colors)
      }
    })
  )
})
