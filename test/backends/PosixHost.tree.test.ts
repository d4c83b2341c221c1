import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { Backend } from "../../src/port/Backend.ts"
import * as Names from "../runtime/names.ts"
import { failing, systemError } from "./posixFailures.ts"
import { fastDirectory, faultOf, host, openDescriptors, p, tree } from "./posixHost.ts"
import { performed } from "../performed.ts"

const removeTree = (port: Backend, path: string) => performed(port, { _tag: "RemoveTree", path: p(path) })

/** Creates `levels` nested directories, whose path may be too long for the system, with a file in the first of each thousand. */
const dig = (top: string, levels: number, name: string): void => {
  let here = Fs.openSync(top, Fs.constants.O_DIRECTORY)
  for (let i = 0; i < levels; i++) {
    const below = `/proc/self/fd/${here}/${name}`
    Fs.mkdirSync(below)
    const next = Fs.openSync(below, Fs.constants.O_DIRECTORY)
    Fs.closeSync(here)
    if (i % 1000 === 0) Fs.writeFileSync(`/proc/self/fd/${next}/file`, "")
    here = next
  }
  Fs.closeSync(here)
}
const canDig = Fs.existsSync("/proc/self/fd")

describe("removing a tree", () => {
  it.effect("removes every entry, and counts all except our own temporary files", () =>
    Effect.gen(function* () {
      const { outside, port, root } = yield* host()
      Fs.writeFileSync(join(outside, "f"), "kept")
      Fs.mkdirSync(join(root, "t/a/b"), { recursive: true })
      Fs.mkdirSync(join(root, "t/empty"))
      for (const name of ["t/f", "t/a/g", "t/a/b/h", `t/a/${Names.signed(Names.dead())}`, "t/a/.~fsa-0.tmp", "t/.hidden"])
        Fs.writeFileSync(join(root, name), "")
      Fs.symlinkSync(outside, join(root, "t/a/out"))
      Fs.symlinkSync("nowhere", join(root, "t/dangling"))
      for (const name of [Buffer.from([0xff]), Buffer.from("a\nb")]) {
        const odd = Buffer.concat([Buffer.from(`${root}/t/`), name])
        Fs.mkdirSync(odd)
        Fs.writeFileSync(Buffer.concat([odd, Buffer.from("/inner")]), "")
      }
      Fs.mkdirSync(join(root, "beside"))
      assert.deepStrictEqual(yield* removeTree(port, "t"), { deleted: 9, directories: 6 })
      assert.deepStrictEqual(tree(root), { beside: "directory" })
      assert.deepStrictEqual(tree(outside), { f: "kept" })
    })
  )

  it.effect("fails with NotFound if the tree is missing, and removes only the entry itself if it is a file or a link", () =>
    Effect.gen(function* () {
      const { outside, port, root } = yield* host()
      Fs.writeFileSync(join(outside, "f"), "kept")
      Fs.writeFileSync(join(root, "f"), "")
      Fs.symlinkSync(outside, join(root, "l"))
      for (const path of ["none", "none/x", "f/x", "l/f"]) {
        assert.strictEqual((yield* faultOf(removeTree(port, path)))._tag, "NotFound", path)
      }
      assert.deepStrictEqual(yield* removeTree(port, "f"), { deleted: 1, directories: 0 })
      assert.deepStrictEqual(yield* removeTree(port, "l"), { deleted: 1, directories: 0 })
      assert.deepStrictEqual(tree(outside), { f: "kept" })
    })
  )

  it.live("with many entries yields to the event loop", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "t"))
      for (let i = 0; i < 5000; i++) Fs.writeFileSync(join(root, "t", `a-rather-long-name-for-a-file-${i}`), "")
      let turns = 0
      const counting = setInterval(() => turns++, 0)
      const removed = yield* Effect.ensuring(
        removeTree(port, "t"),
        Effect.sync(() => clearInterval(counting))
      )
      assert.deepStrictEqual(removed, { deleted: 5000, directories: 1 })
      assert.isAbove(turns, 5)
    })
  )

  it.live.skipIf(!canDig)("of 10,000 levels overflows no stack, exhausts no descriptors and needs no long paths", () =>
    Effect.gen(function* () {
      const root = yield* fastDirectory
      const port = yield* PosixHost.make({ root })
      Fs.mkdirSync(join(root, "t"))
      dig(join(root, "t"), 10_000, "d")
      const before = openDescriptors()
      assert.deepStrictEqual(yield* removeTree(port, "t"), { deleted: 10, directories: 10_001 })
      assert.deepStrictEqual(tree(root), {})
      assert.strictEqual(openDescriptors(), before)
    })
  )

  it.live.skipIf(!canDig)("of 300 levels with names of 250 bytes works, also below a long path", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      let long = root
      let path = ""
      for (let i = 0; i < 13; i++) {
        long = join(long, "n".repeat(240))
        path += `${i === 0 ? "" : "/"}${"n".repeat(240)}`
      }
      Fs.mkdirSync(join(long, "t"), { recursive: true })
      dig(join(long, "t"), 300, "d".repeat(250))
      assert.deepStrictEqual(yield* removeTree(port, `${path}/t`), { deleted: 1, directories: 301 })
      assert.deepStrictEqual(Fs.readdirSync(long), [])
    })
  )

  it.effect("that fails names the entry that could not be removed and leaves its content whole", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "t/a/b"), { recursive: true })
      Fs.writeFileSync(join(root, "t/a/b/stuck"), "whole")
      yield* failing("unlinkSync", (path: string) =>
        path.endsWith("/stuck") ? systemError("EACCES", -13, "unlink") : undefined
      )
      assert.deepStrictEqual(yield* faultOf(removeTree(port, "t")), {
        _tag: "AccessDenied",
        why: "permission",
        path: p("t/a/b/stuck")
      })
      assert.strictEqual(tree(root)["t/a/b/stuck"], "whole")
    })
  )

  it.effect("that fails in a deep directory reports the path of the entry from the root", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const deep = Array.from({ length: 120 }, (_, i) => `d${i}`).join("/")
      Fs.mkdirSync(join(root, "t", deep), { recursive: true })
      Fs.writeFileSync(join(root, "t", deep, "stuck"), "whole")
      yield* failing("unlinkSync", (path: string) =>
        path.endsWith("/stuck") ? systemError("EACCES", -13, "unlink") : undefined
      )
      assert.strictEqual((yield* faultOf(removeTree(port, "t")))["path"], `t/${deep}/stuck`)
    })
  )

  it.live("can be interrupted between entries; the remaining entries are complete and can be removed", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      for (let d = 0; d < 20; d++) {
        Fs.mkdirSync(join(root, "t", `${d}`), { recursive: true })
        for (let i = 0; i < 200; i++) Fs.writeFileSync(join(root, "t", `${d}`, `${i}`), "whole")
      }
      const before = openDescriptors()
      const fiber = yield* Effect.forkChild(removeTree(port, "t"), { startImmediately: true })
      for (let i = 0; i < 3; i++) yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      const left = Object.values(tree(root)).filter((content) => content !== "directory")
      assert.isAbove(left.length, 0)
      assert.isBelow(left.length, 4000)
      for (const content of left) assert.strictEqual(content, "whole")
      assert.strictEqual(openDescriptors(), before)
      assert.strictEqual((yield* removeTree(port, "t"))?.deleted, left.length)
    })
  )

  it.live("succeeds or fails with DirectoryNotEmpty while another fiber adds entries", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "t"))
      for (let i = 0; i < 1000; i++) Fs.writeFileSync(join(root, "t", `${i}`), "")
      let count = 0
      const filling = Effect.gen(function* () {
        for (; count < 200; count++) {
          if (Fs.existsSync(join(root, "t"))) Fs.writeFileSync(join(root, "t", `more${count}`), "")
          yield* Effect.yieldNow
        }
      })
      const [result] = yield* Effect.all([Effect.result(removeTree(port, "t")), filling], { concurrency: 2 })
      if (result._tag === "Success") assert.isFalse(Fs.existsSync(join(root, "t")))
      else assert.strictEqual(result.failure._tag, "DirectoryNotEmpty")
    })
  )
})
