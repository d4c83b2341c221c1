/** The directory of a session removes directories that become empty. Changes of several files must work nevertheless. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import { extras, seven } from "../../src/agent/tools.ts"
import type { ToolResult } from "../../src/agent/ToolResult.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { around } from "../../src/port/Backend.ts"
import { capture, type Files, picture } from "../../src/testing/Files.ts"
import { workspace } from "./vfsStates.ts"

const shape = ({ port }: Algebra) => Effect.orDie(capture(port))

const archiveOf = (fs: Algebra) => Effect.provideService(Archive.exportBytes, Filesystem, fs)
const become = (fs: Algebra, bytes: Uint8Array) => Effect.provideService(Archive.importBytes(bytes), Filesystem, fs)

const call = (fs: Algebra, name: string, input: unknown): Effect.Effect<ToolResult<unknown>> => {
  const tool = [...seven, ...extras].find((one) => one.name === name)!
  return Effect.provideService(invokeUnknown(tool, input, { memory: Memory.make() }), Filesystem, fs) as Effect.Effect<
    ToolResult<unknown>
  >
}

const patch = (...lines: ReadonlyArray<string>) => ({ patch: ["*** Begin Patch", ...lines, "*** End Patch"].join("\n") })

describe("an import into the directory of a session", () => {
  it.effect("renames the only file of a directory back, and keeps directories that were empty", () =>
    Effect.gen(function* () {
      const { fs } = yield* workspace()
      yield* fs.write("d/old.txt", "1")
      yield* fs.mkdir("empty/deep")
      const [before, archive] = [yield* shape(fs), yield* archiveOf(fs)]
      yield* fs.move("d/old.txt", "d/new.txt")
      yield* fs.write("empty/deep/file", "x")
      yield* become(fs, archive)
      assert.deepStrictEqual(yield* shape(fs), before)
    }).pipe(Effect.scoped)
  )

  it.effect("keeps the current files when any rename fails", () =>
    Effect.gen(function* () {
      const { fs } = yield* workspace()
      yield* fs.write("d/old.txt", "1")
      yield* fs.write("z/old.txt", "1")
      const archive = yield* archiveOf(fs)
      yield* fs.move("d/old.txt", "d/new.txt")
      yield* fs.move("z/old.txt", "y/new.txt")
      const before = yield* shape(fs)
      let isThrough = false
      let failed = 0
      for (let nth = 1; !isThrough; nth++) {
        let renames = 0
        const faulty = make(
          around(fs.port, (operation, next) =>
            operation._tag === "Rename" && ++renames === nth
              ? (Effect.fail<Fault>({ _tag: "IoError", code: "EIO", detail: "the disk" }) as typeof next)
              : next
          )
        )
        isThrough = Exit.isSuccess(yield* Effect.exit(become(faulty, archive)))
        if (isThrough) break
        failed++
        assert.deepStrictEqual(yield* shape(fs), before, `rename ${nth}`)
      }
      assert.isAtLeast(failed, 4)
    }).pipe(Effect.scoped)
  )
})

describe("tools that change several files in the directory of a session", () => {
  const files: Files = { "d/old.txt": "1\n2\n", "e/gone.txt": "x\n", "f/g/h.txt": "h", "a.txt": "one\n" }

  it.effect("rename the only file of a directory in a patch, and remove directories that become empty", () =>
    Effect.gen(function* () {
      const { fs } = yield* workspace()
      for (const [path, text] of Object.entries(files)) yield* fs.write(path, text as string)
      const { message, success } = yield* call(
        fs,
        "apply_patch",
        patch(
          "*** Update File: a.txt",
          "@@",
          "-one",
          "+two",
          "*** Delete File: e/gone.txt",
          "*** Update File: d/old.txt",
          "*** Move to: d/new.txt",
          "@@",
          " 1",
          "-2",
          "+two"
        )
      )
      assert.isTrue(success, message)
      assert.deepStrictEqual(yield* shape(fs), picture({ "a.txt": "two\n", "d/new.txt": "1\ntwo\n", "f/g/h.txt": "h" }))
    }).pipe(Effect.scoped)
  )

  it.effect("remove directories that become empty in a patch, even without accelerations", () =>
    Effect.gen(function* () {
      const { fs } = yield* workspace()
      for (const [path, text] of Object.entries(files)) yield* fs.write(path, text as string)
      const plain = make(around(fs.port, (_, next) => next))
      yield* call(plain, "apply_patch", patch("*** Delete File: e/gone.txt", "*** Delete File: f/g/h.txt"))
      assert.deepStrictEqual(yield* shape(fs), picture({ "a.txt": "one\n", "d/old.txt": "1\n2\n" }))
    }).pipe(Effect.scoped)
  )

  it.effect("remove the parents of a removed directory that become empty", () =>
    Effect.gen(function* () {
      const { fs } = yield* workspace()
      for (const [path, text] of Object.entries(files)) yield* fs.write(path, text as string)
      assert.isTrue((yield* call(fs, "rm", { path: "f/g" })).success)
      assert.deepStrictEqual(yield* shape(fs), picture({ "a.txt": "one\n", "d/old.txt": "1\n2\n", "e/gone.txt": "x\n" }))
    }).pipe(Effect.scoped)
  )
})
